"""What a layer costs with each algorithm, in cycles, from the model of the machine.

Products are priced by the plan of the contraction recipe, which counts arithmetic and what streams
from each level of memory; around them, transforms cost by element, and what they leave between the
stages moves through the nearest level that holds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil, prod
from typing import Final, Protocol

from tilewright.graph.ir import Value
from tilewright.graph.sizes import count
from tilewright.layouts.forms import FIRST, LAST, Form
from tilewright.schedule.recipes.contraction.cycles import draft_contraction
from tilewright.schedule.recipes.contraction.space import ContractionShape
from tilewright.schedule.recipes.recipe import draft_point
from tilewright.schedule.recipes.sharing import Nest
from tilewright.schedule.recipes.tile_blocks import TILE_BLOCKS
from tilewright.schedule.recipes.tile_costs import TileBlockShape, transform_cycles
from tilewright.schedule.recipes.transpose import TRANSPOSE
from tilewright.schedule.recipes.transpose_shape import TransposeShape
from tilewright.target import MachineModel, Target
from tilewright.tensor.library.tiles import Tiles

__all__ = [
    "ConvShape",
    "Machine",
    "PRICE_OF_WEIGHTS",
    "Picture",
    "bordered_cycles",
    "bytes_per_store",
    "converted_cycles",
    "direct_cycles",
    "direct_product",
    "far_part",
    "kept_cycles",
    "laid_out_cycles",
    "lines_cycles",
    "lines_product",
    "streamed_cycles",
    "turned_cycles",
    "winograd_cycles",
    "winograd_product",
    "winograd_shape",
]


PRICE_OF_WEIGHTS: Final = 0.75
"""Part of the time to read weights from memory that a layer pays for having them. A policy, not a
figure of the machine: how much time may be lost to save memory."""


@dataclass(frozen=True)
class Picture:
    """A value in numbers: how many pictures, their places and channels."""

    batch: int
    places: int
    channels: int
    element_bytes: int

    @classmethod
    def of(cls, value: Value) -> Picture:
        """A value (batch, space…, channels); what is not known counts as one, as in layers."""
        sizes = [count((d,), symbolic=1) for d in value.shape]
        batch, *space, channels = [1] * (2 - len(sizes)) + sizes
        return cls(batch, prod(space), channels, value.dtype.size_bytes)


class Priced(Protocol):
    """An algorithm: the tiles it has, if any, or lines; what it costs with data as it likes."""

    @property
    def tiles(self) -> Tiles | None: ...

    @property
    def lines(self) -> int: ...

    def cycles(self, conv: ConvShape, machine: Machine) -> float: ...


@dataclass(frozen=True)
class Machine:
    """A target, how many threads share the work, and what is known of the weights of a model.

    `far_weights` is the part of all weights that no cache holds, `other_weights` the bytes of those
    that other layers have.
    """

    target: Target
    threads: int
    far_weights: float = 0.0
    other_weights: float = 0.0

    def beside(self, weights: float) -> Machine:
        """As the layer sees it that has so many of all these bytes itself."""
        return replace(self, other_weights=self.other_weights - weights)

    @property
    def model(self) -> MachineModel:
        """What things cost there for each of the threads."""
        return self.target.machine.shared_by(self.threads)


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
    strides: tuple[int, ...] = field(default=(), kw_only=True)
    """Of the windows; 1 where nothing is said."""
    phases: tuple[int, ...] = field(default=(), kw_only=True)
    """Images that a transposed convolution consists of, along each dimension."""
    window: int = field(default=0, kw_only=True)
    """Elements of the window that images share, if they see different parts of it."""

    @property
    def places(self) -> int:
        """How many results each filter has."""
        return self.batch * prod(self.space)

    @property
    def steps(self) -> int:
        """Products that a result sums up, on average."""
        seen = self.window / prod(self.phases) if self.window else prod(self.taps)
        return max(1, round(seen * self.channels / self.groups))


def direct_cycles(conv: ConvShape, machine: Machine) -> float:
    """A product of all windows with the filters of each group."""
    _, cycles = draft_contraction(direct_product(conv, machine), machine.target)
    return cycles * machine.model.convolutions.sliding if prod(conv.taps) > 1 else cycles


def _apart_cycles(conv: ConvShape, machine: Machine) -> float:
    """What it costs that every channel has lines of its own, of which a step reads a few elements.

    Channels last, the rows of a register tile have a line each, which lasts for several steps. If
    all that a tile walks along stays in the first cache, other panels of columns find it there.
    """
    shape, model = direct_product(conv, machine), machine.model
    point, _ = draft_contraction(shape, machine.target)
    first, second = model.level(1), model.level(2)
    walk = conv.channels // conv.groups * prod(conv.taps[:-1]) * first.line_bytes
    panels = ceil(shape.columns / point.tile_columns) if 2 * walk > first.size_bytes else 1
    own = (point.tile_rows - 1) * conv.element_bytes
    more = max(0, first.line_bytes + own - point.tile_rows * conv.element_bytes)
    tiles = shape.batch * ceil(shape.rows / point.tile_rows) * panels
    return tiles * shape.reduce * more / second.read * second.exposed / machine.threads


def direct_product(conv: ConvShape, machine: Machine) -> ContractionShape:
    """The product that a direct convolution is."""
    taps = prod(conv.taps)
    shared = machine.model.convolutions.window_density
    density = min(1.0, shared / taps) if taps > 1 else 1.0
    return ContractionShape(
        batch=conv.groups,
        rows=conv.places,
        columns=max(1, conv.filters // conv.groups),
        reduce=conv.steps,
        element_bytes=conv.element_bytes,
        right_is_constant=True,
        threads=machine.threads,
        density=density,
    )


def lines_cycles(conv: ConvShape, multiple: int, machine: Machine) -> float:
    """A product of the filters with the windows of each line, whose places are in vectors."""
    _, cycles = draft_contraction(lines_product(conv, multiple, machine), machine.target)
    return cycles


def lines_product(conv: ConvShape, multiple: int, machine: Machine) -> ContractionShape:
    """The product that a convolution along lines is: weights stand at the left.

    Lines are as long as a multiple of some places.
    """
    size, ones = conv.element_bytes, (1,) * len(conv.space)
    phases, strides = conv.phases or ones, conv.strides or ones
    *outer, line = (ceil(n / p) for n, p in zip(conv.space, phases, strict=True))
    line = ceil(line / multiple) * multiple
    steps = zip((*outer, line), strides, conv.taps, phases, strict=True)
    read = [(n - 1) * s + t + (p > 1) for n, s, t, p in steps]  # images may begin one later
    return ContractionShape(
        batch=conv.batch * prod(phases) * prod(outer),
        rows=conv.filters,
        columns=line,
        reduce=conv.steps,
        element_bytes=size,
        right_is_constant=False,
        threads=machine.threads,
        walk=(conv.channels, *(t for t in reversed(conv.taps) if t > 1)),
        right_pitch_bytes=prod(read) * size,
        column_pitch_bytes=strides[-1] * size if strides[-1] > 1 else 0,
        panel_density=min(1.0, read[-1] / (line * conv.taps[-1])),
        left_bytes=conv.filters * conv.steps * prod(phases) * size,
        right_bytes=conv.batch * conv.channels * prod(read) * size,
    )


@lru_cache(maxsize=1024)
def winograd_cycles(conv: ConvShape, tiles: Tiles, machine: Machine) -> float:
    """Transforms of the data and of the products, and the products between them."""
    shape = winograd_shape(conv, tiles, machine)
    _, products = draft_point(TILE_BLOCKS, shape, machine.target)
    return products + sum(_transforms(conv, tiles, machine))


@lru_cache(maxsize=1024)
def _transforms(conv: ConvShape, tiles: Tiles, machine: Machine) -> tuple[float, float]:
    """Cycles of the transforms of the data, and of the products."""
    shape = winograd_shape(conv, tiles, machine)
    lanes = max(1, machine.target.lanes(conv.element_bytes))
    sizes = ((shape.data_bytes, conv.channels), (shape.product_bytes, conv.filters))
    data, made = (size / conv.element_bytes / n * ceil(n / lanes) for size, n in sizes)
    passes = len(tiles.filters)
    before = data * transform_cycles(machine.model, passes, _data_adds(tiles))
    after = made * transform_cycles(machine.model, passes, _back_adds(tiles))
    return before / machine.threads, after / machine.threads


def winograd_shape(conv: ConvShape, tiles: Tiles, machine: Machine) -> TileBlockShape:
    """The product between the transforms with all that it is blocked by."""
    product = winograd_product(conv, tiles, machine)
    lines = columns = 1  # batches, several images, and tiles along one dimension are not blocked
    if conv.batch == 1 and len(tiles.filters) == 2 and not tiles.images:
        lines, columns = (tiles.counts(conv.space)[d] for d in tiles.tiled)
    rows = product.rows * tiles.own * prod(tiles.parts)
    for d in tiles.plain:
        reach = (tiles.taps[d] - 1) * tiles.dilations[d] + 1
        rows = rows * (tiles.strides[d] * (conv.space[d] - 1) + reach) // conv.space[d]
    return TileBlockShape(
        lines=lines,
        columns=columns,
        outer=max(1, product.rows // (lines * columns)),
        product=product,
        data_bytes=tiles.elements * conv.channels * conv.element_bytes * rows,
        shared_by=machine.threads,
    )


def _data_adds(tiles: Tiles) -> float:
    """Additions for each element of a tile of the data."""
    return sum(f.data_adds / f.tile for f in tiles.filters)


def _back_adds(tiles: Tiles) -> float:
    """Additions for each product of a tile: along columns of it, and along rows of what is left."""
    found, rest = 0.0, 1.0
    for f in tiles.filters:
        found += rest * f.back_adds / f.tile
        rest *= f.results / f.tile
    return found


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


def kept_cycles(product: ContractionShape, machine: Machine) -> float:
    """The price of constant weights: each run reads them once, and they take memory all the time.

    All weights of a model together are seldom in a cache, whatever those of one layer are; those
    of one algorithm may be several times those of another, and drive others out. Arithmetic hides
    most of the reading, so this is more than the time it takes: the rest pays for the memory.
    Without it, layers take tiles with twice the weights for a few percent of time.
    """
    weights = product.batch * product.reduce * product.columns * product.element_bytes
    beside = far_part(machine.other_weights + weights, machine.target)
    price = PRICE_OF_WEIGHTS * max(machine.far_weights, beside)
    return price * weights / machine.model.memory.read / machine.threads


def far_part(size: float, target: Target) -> float:
    """Of so many bytes that every run reads, the part that does not stay in the last cache."""
    cache = max(c.share_bytes for c in target.caches)
    return max(0.0, 1.0 - cache / size) if size else 0.0


def laid_out_cycles(
    algorithm: Priced, conv: ConvShape, source: Form, result: Form, machine: Machine
) -> float | None:
    """A convolution whose data and result have these forms; None for what has no recipe.

    Data are read element by element, so that their form matters little. With tiles, forms concern
    the transforms at both ends alone. A result is written in another order than it is computed in
    at a part of the cost of a conversion.
    """
    if source.tiles or result.tiles:
        found = laid_out_cycles(algorithm, conv, source.uncut, result.uncut, machine)
        return None if found is None else found * machine.model.convolutions.other_order
    cycles = algorithm.cycles(conv, machine)
    if algorithm.lines:
        return cycles + turned_cycles(conv, source, result, machine)
    along = _runs_along(conv, machine)
    if source == result == FIRST and along is not None:
        return cycles * along
    before, after = cycles, cycles
    if algorithm.tiles is not None:
        before, after = _transforms(conv, algorithm.tiles, machine)
    found = cycles
    if source == FIRST and not conv.bordered and algorithm.tiles is None:
        found += _apart_cycles(conv, machine)
    if source != LAST:
        found += before * (_read_slower(conv, source, machine) - 1)
    if result == FIRST:
        if algorithm.tiles is not None:
            return None
        picture = Picture(conv.batch, prod(conv.space), conv.filters, conv.element_bytes)
        written = converted_cycles(picture, machine)
        return found + machine.model.copies.on_the_way * written
    if result != LAST:
        is_product = algorithm.tiles is None
        costs = machine.model.convolutions
        slower = _other_order(conv, result, machine) if is_product else costs.blocked_tiles
        found += after * (slower - 1)
    return found


def turned_cycles(conv: ConvShape, source: Form, result: Form, machine: Machine) -> float:
    """What it costs that lines are read and written by something that is not channels first."""
    places = prod(conv.space) * prod(conv.strides) // prod(conv.phases)
    found = 0.0
    if source.plain != FIRST:
        data = Picture(conv.batch, places, conv.channels, conv.element_bytes)
        found += converted_cycles(data, machine)
    if result.plain != FIRST:
        made = Picture(conv.batch, prod(conv.space), conv.filters, conv.element_bytes)
        found += machine.model.copies.on_the_way * converted_cycles(made, machine)
    return found


def _read_slower(conv: ConvShape, source: Form, machine: Machine) -> float:
    """How much slower data are read that are not channels last."""
    costs = machine.model.convolutions
    block = prod(conv.space) * source.block * conv.element_bytes
    apart = costs.pages_apart if block and block % machine.model.page_bytes == 0 else 1.0
    return max(apart, _other_order(conv, source, machine))


def _other_order(conv: ConvShape, form: Form, machine: Machine) -> float:
    """How much slower another order than channels last is: blocks may cut groups."""
    costs = machine.model.convolutions
    return costs.groups_cut if form.block and conv.groups > 1 else costs.other_order


def _runs_along(conv: ConvShape, machine: Machine) -> float | None:
    """How much slower windows of one element run along places, weights in registers; None: much."""
    if not prod(conv.taps) == conv.groups == 1:
        return None
    lanes = machine.target.lanes(conv.element_bytes)
    costs, places = machine.model.convolutions, prod(conv.space)
    if places % lanes == 0 and places >= costs.image_panels * lanes * machine.threads:
        return costs.along_image
    return costs.along_lines if conv.space[-1] >= costs.long_line else None


def converted_cycles(picture: Picture, machine: Machine) -> float:
    """Reading a picture in one order and writing it in another: the mean of both directions."""
    ways = ((picture.places, picture.channels), (picture.channels, picture.places))
    return sum(_turned(picture, *way, machine) for way in ways) / 2


def _turned(picture: Picture, rows: int, columns: int, machine: Machine) -> float:
    """A transposing copy, as its recipe would do it."""
    size = picture.element_bytes
    shape = TransposeShape(
        around=Nest((picture.batch,), (True,)),
        across=1,
        rows=rows,
        columns=columns,
        is_known=True,
        lanes=machine.target.lanes(size),
        element_bytes=size,
        source_step=rows * size,
        result_step=columns * size,
        operations=0,
        threads=machine.threads,
    )
    _, cycles = draft_point(TRANSPOSE, shape, machine.target)
    return cycles


def bordered_cycles(size: float, machine: Machine) -> float:
    """Copying so many bytes into the middle of zeros."""
    return streamed_cycles(2 * size, machine)


def streamed_cycles(size: float, machine: Machine) -> float:
    """Reading so many bytes from the level of memory that holds them."""
    return size / machine.model.home_of(size).read / machine.threads


def bytes_per_store(machine: Machine) -> float:
    """What a core writes per cycle at best."""
    return machine.model.vector_stores * machine.target.vector_bytes
