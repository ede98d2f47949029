"""What a layer costs with each algorithm, in cycles, from the model of the machine.

Products are priced by the plan of the contraction recipe, which counts arithmetic and what streams
from each level of memory; around them, transforms cost by element, and what they leave between the
stages moves through the nearest level that holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import Final, Protocol

from tilewright.schedule.recipes.contraction.plan import (
    ContractionShape,
    bytes_per_cycle,
    home_of,
    plan_contraction,
)
from tilewright.layouts.forms import FIRST, Form
from tilewright.target import Target
from tilewright.tensor.library.winograd import Tiles

__all__ = [
    "ConvShape",
    "Machine",
    "bordered_cycles",
    "bytes_per_store",
    "converted_cycles",
    "depthwise_cycles",
    "direct_cycles",
    "laid_out_cycles",
    "winograd_cycles",
]

# Cycles to transform one vector of the elements of a tile, loads and stores in the first cache
# included, for tiles of up to six and of more elements along a dimension.
_TRANSFORM: Final = {4: 5.0, 6: 6.5, 8: 7.5}

# Cycles to bring one vector of places together: where they are neighbours, and where they are not.
_PACKED: Final = 2.0
_GATHERED: Final = 8.0

# How much slower vectors are read that lie across lines of the cache.
_UNALIGNED: Final = 1.3

# How much slower data are moved from one order to another than copied.
_TRANSPOSED: Final = 1.5

# The part of a block of tiles that is reused, which the recipe keeps in the second cache.
_NEAR: Final = 0.5


class Priced(Protocol):
    """An algorithm: the tiles it has, if any, and what it costs with channels in vectors."""

    @property
    def tiles(self) -> Tiles | None: ...

    def cycles(self, conv: ConvShape, machine: Machine) -> float: ...


@dataclass(frozen=True)
class Machine:
    """A target, and how many threads share the work."""

    target: Target
    threads: int


@dataclass(frozen=True)
class ConvShape:
    """A convolution in numbers: sizes of its result, channels and windows of a group."""

    batch: int
    space: tuple[int, ...]
    channels: int
    filters: int
    taps: tuple[int, ...]
    groups: int = 1
    element_bytes: int = 4

    @property
    def places(self) -> int:
        """How many results each filter has."""
        return self.batch * prod(self.space)


def direct_cycles(conv: ConvShape, machine: Machine) -> float:
    """A product of all windows with the filters of each group."""
    shape = ContractionShape(
        batch=conv.groups,
        rows=conv.places,
        columns=max(1, conv.filters // conv.groups),
        reduce=prod(conv.taps) * conv.channels // conv.groups,
        element_bytes=conv.element_bytes,
        right_is_constant=True,
        threads=machine.threads,
        density=min(1.0, 1.3 / prod(conv.taps)) if prod(conv.taps) > 1 else 1.0,
    )
    return plan_contraction(shape, machine.target).cycles


def winograd_cycles(conv: ConvShape, tiles: Tiles, machine: Machine) -> float:
    """Transforms of the data and of the products, and the products themselves."""
    counts = [
        ceil(size / m) if m else size for size, m in zip(conv.space, tiles.results, strict=True)
    ]
    places = conv.batch * prod(counts)
    first, second = tiles.filters
    elements = first.tile * second.tile
    shape = ContractionShape(
        batch=elements,
        rows=places,
        columns=conv.filters,
        reduce=prod(tiles.taps[d] for d in tiles.plain) * conv.channels,
        element_bytes=conv.element_bytes,
        right_is_constant=True,
        threads=machine.threads,
    )
    target = machine.target
    products = plan_contraction(shape, target).cycles
    lanes = max(1, target.lanes(conv.element_bytes))
    per_vector = _TRANSFORM.get(max(first.tile, second.tile), _TRANSFORM[8])
    vectors = ceil(conv.channels / lanes) + ceil(conv.filters / lanes)
    transforms = places * elements * vectors * per_vector / machine.threads
    between = elements * places * (conv.channels + conv.filters) * conv.element_bytes
    weights = elements * shape.reduce * conv.filters * conv.element_bytes
    return products + transforms + _between_cycles(between, weights, machine)


def _between_cycles(between: float, weights: float, machine: Machine) -> float:
    """What moves between the stages: all at once, or in blocks that read the weights again."""
    target = machine.target
    at_once = 2 * between / bytes_per_cycle(target, home_of(target, between))
    near = _NEAR * target.cache(2).share_bytes
    passes = max(1, ceil(between / near))
    again = (passes - 1) * weights / bytes_per_cycle(target, home_of(target, weights)) / 4
    in_blocks = 2 * between / bytes_per_cycle(target, "L2") + again
    return min(at_once, in_blocks) / machine.threads


def laid_out_cycles(
    algorithm: Priced,
    conv: ConvShape,
    strides: tuple[int, ...],
    source: Form,
    result: Form,
    machine: Machine,
) -> float | None:
    """A convolution whose data and result have these forms; None for what has no recipe.

    Filters in vectors: data are read element by element, so that their form hardly matters.
    Channels first without blocks have places in vectors, and data that are packed for them.
    """
    if not result.first or result.block:
        return algorithm.cycles(conv, machine)
    if algorithm.tiles is not None or conv.groups > 1:
        return None
    moved = prod(conv.taps) * conv.channels * conv.places
    packed = ContractionShape(
        batch=1,
        rows=conv.filters,
        columns=conv.places,
        reduce=prod(conv.taps) * conv.channels,
        element_bytes=conv.element_bytes,
        right_is_constant=False,
        threads=machine.threads,
    )
    cycles = plan_contraction(packed, machine.target).cycles
    lanes = machine.target.lanes(conv.element_bytes)
    gathered = any(s != 1 for s in strides) or not source.first or source.block
    per_vector = _PACKED if not gathered else _GATHERED
    return cycles + moved / lanes * per_vector / machine.threads


def depthwise_cycles(
    conv: ConvShape, strides: tuple[int, ...], form: Form, machine: Machine
) -> float:
    """Windows of single channels, channels or places in vectors."""
    lanes = machine.target.lanes(conv.element_bytes)
    along = conv.channels if form != FIRST else conv.space[-1]
    others = conv.places * conv.channels // along
    vectors = others * ceil(along / lanes)
    per_vector = prod(conv.taps) * (1.0 if form != FIRST else _UNALIGNED)
    if form == FIRST and any(s != 1 for s in strides):
        per_vector = prod(conv.taps) * _GATHERED
    arithmetic = vectors * per_vector
    memory = converted_cycles(conv.places * conv.channels, machine) * machine.threads / _TRANSPOSED
    return max(arithmetic, memory) / machine.threads


def converted_cycles(elements: float, machine: Machine, element_bytes: int = 4) -> float:
    """Reading so many elements in one order and writing them in another."""
    target, size = machine.target, elements * element_bytes
    moved = 2 * size / bytes_per_cycle(target, home_of(target, 2 * size))
    return _TRANSPOSED * moved / machine.threads


def bordered_cycles(elements: float, machine: Machine, element_bytes: int = 4) -> float:
    """Copying so many elements into the middle of zeros."""
    target, size = machine.target, elements * element_bytes
    return 2 * size / bytes_per_cycle(target, home_of(target, 2 * size)) / machine.threads


def bytes_per_store(machine: Machine) -> float:
    """What a core writes per cycle at best."""
    return float(machine.target.core.store_bytes * machine.target.core.store_ports)
