"""What a layer costs with each algorithm, in cycles, from the model of the machine.

Products are priced by the plan of the contraction recipe, which counts arithmetic and what streams
from each level of memory; around them, transforms cost by element, and what they leave between the
stages moves through the nearest level that holds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, prod
from typing import Final, Protocol

from tilewright.layouts.forms import FIRST, LAST, Form
from tilewright.schedule.recipes.contraction.cycles import draft_contraction
from tilewright.schedule.recipes.contraction.space import ContractionShape
from tilewright.target import Target
from tilewright.tensor.library.tiles import Tiles

__all__ = [
    "ConvShape",
    "Machine",
    "bordered_cycles",
    "bytes_per_store",
    "converted_cycles",
    "depthwise_cycles",
    "direct_cycles",
    "direct_product",
    "laid_out_cycles",
    "winograd_cycles",
    "winograd_product",
]

# Cycles to transform one vector of the elements of a tile, loads and stores in the first cache
# included, for tiles of up to so many elements along a dimension.
_TRANSFORM: Final = {4: 5.0, 6: 6.5, 8: 7.5}

# How much slower the product of a convolution is if its rows are windows that overlap.
_SLIDING: Final = 1.08

# How much slower a convolution is with its data in another order than channels last: in general;
# with groups, which blocks of channels cut; where blocks of channels lie whole pages apart, and so
# share lines of the first cache; and where every channel has a line of its own, if these lines stay
# in the first cache or do not.
_OTHER_ORDER: Final = 1.005
_GROUPS_CUT: Final = 1.15
_PAGES_APART: Final = 1.08
_SCATTERED_NEAR: Final = 1.08
_SCATTERED_FAR: Final = 1.45

_PAGE: Final = 4096

# The same if the product runs along places: along the whole image if it is whole vectors, else
# along lines, which must have so many of them at least. Threads share the vectors of an image, of
# which each must have so many.
_ALONG_IMAGE: Final = 1.02
_PANELS: Final = 8
_ALONG_LINES: Final = 1.12
_LONG_LINE: Final = 28

# The same for results in blocks of channels that come out of tiles.
_BLOCKED_TILES: Final = 1.1

# The part of a conversion that is left if it happens while a result is written.
_ON_THE_WAY: Final = 0.7

# Cycles for an element of a window and a vector of channels; in blocks of channels, where lines of
# an image lie side by side; how much slower both are if windows move by several places; and for a
# vector of places.
_TAP: Final = 1.0
_TAP_BLOCKED: Final = 0.75
_STRIDED: Final = 1.55
_TAP_ALONG: Final = 0.62

# Cycles to copy a vector of places, as they are and sorted by phases, and to begin and end a line.
_COPIED: Final = 0.6
_SORTED: Final = 1.6
_LINE: Final = 3.5

# Bytes per cycle that change their order at best, reading and writing counted: in the second cache,
# and beyond.
_CONVERTED_NEAR: Final = 14.0
_CONVERTED_FAR: Final = 11.0

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
    """A convolution in numbers: sizes of its result, channels, windows; is there a border?"""

    batch: int
    space: tuple[int, ...]
    channels: int
    filters: int
    taps: tuple[int, ...]
    groups: int = 1
    element_bytes: int = field(default=4, kw_only=True)
    bordered: bool = False

    @property
    def places(self) -> int:
        """How many results each filter has."""
        return self.batch * prod(self.space)


def direct_cycles(conv: ConvShape, machine: Machine) -> float:
    """A product of all windows with the filters of each group."""
    _, cycles = draft_contraction(direct_product(conv, machine), machine.target)
    return cycles * _SLIDING if prod(conv.taps) > 1 else cycles


def direct_product(conv: ConvShape, machine: Machine) -> ContractionShape:
    """The product that a direct convolution is."""
    return ContractionShape(
        batch=conv.groups,
        rows=conv.places,
        columns=max(1, conv.filters // conv.groups),
        reduce=prod(conv.taps) * conv.channels // conv.groups,
        element_bytes=conv.element_bytes,
        right_is_constant=True,
        threads=machine.threads,
        density=min(1.0, 1.3 / prod(conv.taps)) if prod(conv.taps) > 1 else 1.0,
    )


def winograd_cycles(conv: ConvShape, tiles: Tiles, machine: Machine) -> float:
    """Transforms of the data and of the products, and the products themselves."""
    shape, target = winograd_product(conv, tiles, machine), machine.target
    _, products = draft_contraction(shape, target)
    lanes = max(1, target.lanes(conv.element_bytes))
    size = max(f.tile for f in tiles.filters)
    per_vector = next(c for most, c in _TRANSFORM.items() if size <= most)
    parts, rows = prod(tiles.parts), shape.rows * tiles.own
    vectors = parts * ceil(conv.channels / lanes) + ceil(conv.filters / lanes)
    transforms = rows * tiles.elements * vectors * per_vector / machine.threads
    each = tiles.elements * conv.element_bytes
    between = each * rows * (parts * conv.channels + conv.filters)
    weights = each * tiles.own * shape.reduce * conv.filters
    return products + transforms + _between_cycles(between, weights, machine)


def winograd_product(conv: ConvShape, tiles: Tiles, machine: Machine) -> ContractionShape:
    """The products between the transforms: one for each element of a tile."""
    within = prod(tiles.taps[d] for d in tiles.plain) * prod(tiles.parts)
    return ContractionShape(
        batch=tiles.elements * tiles.own * conv.groups,
        rows=conv.batch * prod(tiles.rows(conv.space)) // tiles.own,
        columns=max(1, conv.filters // conv.groups),
        reduce=within * conv.channels // conv.groups,
        element_bytes=conv.element_bytes,
        right_is_constant=True,
        threads=machine.threads,
    )


def _between_cycles(between: float, weights: float, machine: Machine) -> float:
    """What moves between the stages: all at once, or in blocks that read the weights again."""
    target = machine.target
    at_once = 2 * between / target.machine.home_of(between).read
    near = _NEAR * target.cache(2).share_bytes
    passes = max(1, ceil(between / near))
    again = (passes - 1) * weights / target.machine.home_of(weights).read / 4
    in_blocks = 2 * between / target.machine.level(2).read + again
    return min(at_once, in_blocks) / machine.threads


def laid_out_cycles(
    algorithm: Priced, conv: ConvShape, source: Form, result: Form, machine: Machine
) -> float | None:
    """A convolution whose data and result have these forms; None for what has no recipe.

    Data are read element by element, so that their form matters little: channels first take a line
    of the cache for every channel, unless a border is made on the way. A result is written in
    another order than it is computed in at a part of the cost of a conversion.
    """
    cycles = algorithm.cycles(conv, machine)
    along = _runs_along(conv, machine)
    if source == result == FIRST and along is not None:
        return cycles * along
    if source == FIRST and not conv.bordered:
        lines = conv.channels // conv.groups * machine.target.cache(1).line_bytes
        near = lines * prod(conv.taps[:-1]) <= machine.target.cache(1).share_bytes / 4
        cycles *= _SCATTERED_NEAR if near else _SCATTERED_FAR
    elif source != LAST:
        block = prod(conv.space) * source.block * conv.element_bytes
        apart = _PAGES_APART if block and block % _PAGE == 0 else 1.0
        cycles *= max(apart, _other_order(conv, source))
    if result == FIRST:
        if algorithm.tiles is not None:
            return None
        written = converted_cycles(conv.places * conv.filters * conv.element_bytes, machine)
        cycles += _ON_THE_WAY * written
    elif result != LAST:
        cycles *= _other_order(conv, result) if algorithm.tiles is None else _BLOCKED_TILES
    return cycles


def _other_order(conv: ConvShape, form: Form) -> float:
    """How much slower another order than channels last is: blocks may cut groups."""
    return _GROUPS_CUT if form.block and conv.groups > 1 else _OTHER_ORDER


def _runs_along(conv: ConvShape, machine: Machine) -> float | None:
    """How much slower windows of one element run along places, weights in registers; None: much."""
    if not prod(conv.taps) == conv.groups == 1:
        return None
    lanes = machine.target.lanes(conv.element_bytes)
    if prod(conv.space) % lanes == 0 and prod(conv.space) >= _PANELS * lanes * machine.threads:
        return _ALONG_IMAGE
    return _ALONG_LINES if conv.space[-1] >= _LONG_LINE else None


def depthwise_cycles(
    conv: ConvShape, strides: tuple[int, ...], form: Form, machine: Machine
) -> float:
    """Windows of single channels, channels or places in vectors."""
    lanes, taps = machine.target.lanes(conv.element_bytes), prod(conv.taps)
    moves = prod(strides)  # places of the data for one of the result
    if form != FIRST:
        vectors = conv.places * ceil(conv.channels / lanes)
        per_tap = (_TAP_BLOCKED if form.block else _TAP) * (_STRIDED if moves > 1 else 1.0)
        return vectors * taps * per_tap / machine.threads
    lines = conv.places * conv.channels // conv.space[-1]
    copied = moves * (_SORTED if strides[-1] > 1 else _COPIED)
    vectors = ceil(conv.space[-1] / lanes)
    per_line = vectors * (taps * _TAP_ALONG + copied) + _LINE * (1 + moves // strides[-1])
    return lines * per_line / machine.threads


def converted_cycles(size: float, machine: Machine) -> float:
    """Reading so many bytes in one order and writing them in another."""
    target = machine.target
    near = size <= target.cache(2).share_bytes
    best = _CONVERTED_NEAR if near else _CONVERTED_FAR
    return 2 * size / min(best, target.machine.home_of(size).read) / machine.threads


def bordered_cycles(size: float, machine: Machine) -> float:
    """Copying so many bytes into the middle of zeros."""
    target = machine.target
    return 2 * size / target.machine.home_of(2 * size).read / machine.threads


def bytes_per_store(machine: Machine) -> float:
    """What a core writes per cycle at best."""
    return float(machine.target.core.store_bytes * machine.target.core.store_ports)
