"""Convolutions as compiled kernels with their exact results, and data that are hard on them.

A kernel computes one `Layer`, a geometry with an algorithm, with constant weights, on one thread
and with channels last; its border keeps the size of the picture, up to strides. What minimal
filters do to an element that is huge or not a number follows from their matrices: `reach` says to
which results it spreads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.layouts.algorithms import Algorithm
from tilewright.target import Target
from tilewright.tensor.build import func, placeholder
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.library.minimal_filters import Filter
from tilewright.tensor.library.tile_weights import spread_weights, winograd_weights
from tilewright.tensor.library.tiles import Line, SpreadLine, SpreadTiles, Tiles
from tilewright.tensor.library.winograd import convolve_spread, convolve_winograd

Array = np.ndarray[Any, Any]
U = 2.0**-24


@dataclass(frozen=True)
class Layer:
    """A geometry, and `results` of a tile along each dimension; without them it is direct."""

    taps: tuple[int, ...]
    results: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    groups: int = 1
    transposed: bool = False

    def __post_init__(self) -> None:
        ones = (1,) * self.rank
        object.__setattr__(self, "strides", self.strides or ones)
        object.__setattr__(self, "dilations", self.dilations or ones)

    @property
    def rank(self) -> int:
        return len(self.taps)

    @property
    def tiles(self) -> Tiles | None:
        if not self.results:
            return None
        shape = (self.taps, self.results, self.strides, self.dilations)
        return SpreadTiles(*shape, self.before) if self.transposed else Tiles(*shape)

    @property
    def direct(self) -> Layer:
        """The same without tiles."""
        return replace(self, results=())

    @property
    def reach(self) -> tuple[int, ...]:
        """How many elements a window spans."""
        return tuple((t - 1) * d + 1 for t, d in zip(self.taps, self.dilations, strict=True))

    @property
    def before(self) -> tuple[int, ...]:
        """The border in front; what is cut off, of a transposed convolution."""
        return tuple((r - 1) // 2 for r in self.reach)

    @property
    def behind(self) -> tuple[int, ...]:
        return tuple(r // 2 for r in self.reach)

    @property
    def algorithm(self) -> str:
        """As a choice is shown: `direct`, `F(4, 3)`, `F(4, 3)×F(4, 5)`."""
        return Algorithm(self.tiles).name

    @property
    def window(self) -> str:
        """`3×3`, `5 stride 2`, `3×3 gaps 2`, `3×3 of 4 groups`, `4×4 stride 2 transposed`."""
        shown = [_by(self.taps)]
        for name, steps in (("stride", self.strides), ("gaps", self.dilations)):
            if set(steps) != {1}:
                shown.append(f"{name} {_by(steps if len(set(steps)) > 1 else steps[:1])}")
        if self.groups > 1:
            shown.append(f"of {self.groups} groups")
        return " ".join((*shown, "transposed") if self.transposed else shown)

    def __str__(self) -> str:
        return f"{self.window} {self.algorithm}"


def _by(sizes: Sequence[int]) -> str:
    return "×".join(map(str, sizes))


def square(taps: int, results: int = 0) -> Layer:
    """Windows and tiles of two equal dimensions; 0 results are the direct algorithm."""
    return Layer((taps, taps), (results, results) if results else ())


SHOWN = tuple(
    square(taps, results)
    for taps, choice in ((3, (0, 2, 4, 6)), (5, (0, 2, 4)), (2, (0, 2, 4)))
    for results in choice
)
"""Of these the page shows all that it measures."""

ALGORITHMS = (
    *SHOWN,
    *(square(2, results) for results in (3, 5, 6)),
    *(square(3, results) for results in (3, 5)),
    *(square(4, results) for results in (2, 3, 4, 5)),
    *(square(5, results) for results in (3,)),
    *(square(6, results) for results in (2, 3)),
    Layer((14, 14), (2, 2), (2, 2)),  # without a stride, windows of seven are cut
)
"""All minimal filters that may be chosen, along two dimensions."""

GEOMETRIES = (
    Layer((3, 5), (4, 4)),
    Layer((5, 2), (2, 2)),
    Layer((1, 7), (0, 4)),
    Layer((9, 9), (4, 4)),
    Layer((3, 1), (6, 0)),
    Layer((3,), (4,)),
    Layer((5,), (4,)),
    Layer((3, 3, 3), (0, 2, 2)),
    Layer((3, 3, 3), (0, 4, 4)),
    Layer((2, 3, 3), (0, 6, 6)),
    Layer((3, 3), (4, 4), groups=4),
    Layer((5, 5), (2, 2), groups=2),
    Layer((3, 3), (4, 4), (2, 2)),
    Layer((7, 7), (4, 4), (2, 2)),
    Layer((5, 3), (4, 4), (2, 1)),
    Layer((5,), (6,), (2,)),
    Layer((3, 3), (4, 4), dilations=(2, 2)),
    Layer((3, 3), (6, 6), dilations=(3, 3)),
    Layer((4, 4), (4, 4), (2, 2), transposed=True),
    Layer((3, 3), (4, 4), transposed=True),
    Layer((5,), (2,), (2,), transposed=True),
)
"""Windows that are not square, are long or have steps, one or three dimensions, groups, transposed
convolutions."""


@dataclass(frozen=True)
class Convolution:
    """One kernel for pictures of so many places along each side; `weights` are W[o, c, window…]."""

    weights: Array
    layer: Layer
    side: int
    target: str | Target = "host"

    @property
    def tiles(self) -> Tiles | None:
        return self.layer.tiles

    @property
    def channels(self) -> int:
        """Those of all groups."""
        return int(self.weights.shape[1]) * self.layer.groups

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the data: space, then channels."""
        return (*[self.side] * self.layer.rank, self.channels)

    @property
    def space(self) -> tuple[int, ...]:
        """How many results there are along each dimension."""
        if self.layer.transposed:
            return tuple((self.side - 1) * s + 1 for s in self.layer.strides)
        return tuple((self.side - 1) // s + 1 for s in self.layer.strides)

    @cached_property
    def kernel(self) -> tw.Kernel:
        layer, tiles, constant = self.layer, self.tiles, self.weights
        x, pads = placeholder("x", (1, *self.shape)), (*layer.before, *layer.behind)
        if isinstance(tiles, SpreadTiles):
            constant = spread_weights(self.weights.swapaxes(0, 1), tiles, layer.groups)
            w = placeholder("w", constant.shape)
            y = convolve_spread(x, w, tiles, layer.behind, layer.groups, name="y")
        elif tiles is not None:
            constant = winograd_weights(self.weights, tiles)
            w = placeholder("w", constant.shape)
            y = convolve_winograd(x, w, tiles, pads, layer.groups, name="y")
        else:
            w = placeholder("w", constant.shape)
            y = convolve(x, w, layer.strides, layer.dilations, pads, layer.groups, name="y")
        program = func("convolution", [x, w], [y])
        return tw.build(program, target=self.target, threads=1, constants={"w": constant})

    def __call__(self, x: Array) -> Array:
        """Y[space…, o] for X[space…, c]."""
        found = np.empty((1, *self.space, len(self.weights)), np.float32)
        self.kernel(np.ascontiguousarray(x[None]), found)
        return found[0]

    def exact(self, x: Array) -> Array:
        """The same in double precision, directly."""
        return self._direct(x.astype(np.float64), self.weights.astype(np.float64))

    def sizes(self, x: Array) -> Array:
        """Σ|terms| of each result."""
        return self._direct(np.abs(x.astype(np.float64)), np.abs(self.weights.astype(np.float64)))

    def unit(self, x: Array) -> float:
        """max|x| · max Σ|w|: what no result exceeds."""
        sums = np.abs(self.weights).reshape(len(self.weights), -1).sum(1)
        return float(np.abs(x).max()) * float(sums.max())

    def _direct(self, x: Array, weights: Array) -> Array:
        layer, dims = self.layer, tuple(range(self.layer.rank))
        borders, steps = zip(layer.before, layer.behind, strict=True), layer.strides
        if layer.transposed:  # zeros between the data, and windows the other way round
            borders, steps = zip(layer.behind, layer.before, strict=True), (1,) * layer.rank
            spread = np.zeros((*self.space, x.shape[-1]))
            spread[tuple(slice(None, None, s) for s in layer.strides)] = x
            x, weights = spread, np.flip(weights, tuple(2 + d for d in dims))
        wide = np.pad(x, [*borders, (0, 0)])
        views = np.lib.stride_tricks.sliding_window_view(wide, layer.reach, dims)
        every = (*steps, 1, *layer.dilations)  # views are [space…, c, window…]
        views = views[tuple(slice(None, None, step) for step in every)]
        parts = zip(
            np.split(views, layer.groups, layer.rank), np.split(weights, layer.groups), strict=True
        )
        summed = tuple(range(layer.rank, views.ndim)), tuple(range(1, weights.ndim))
        return np.concatenate([np.tensordot(v, w, summed) for v, w in parts], -1)

    def seen_by(self, place: tuple[int, ...]) -> tuple[Array, Array]:
        """[space…]: results whose windows see an element, and those that it spreads to."""
        layer, lines = self.layer, self.tiles.lines if self.tiles else {}
        seen, spread = [], []
        for d, p in enumerate(place):
            results, step = np.arange(self.space[d]), layer.strides[d]
            away = p + layer.before[d] - step * results
            if layer.transposed:
                away = results + layer.before[d] - step * p
            inside = (away >= 0) & (away < layer.reach[d]) & (away % layer.dilations[d] == 0)
            seen.append(inside)
            line = lines.get(d)
            if isinstance(line, SpreadLine):
                inside = _spread(line, p + line.taps - 1, len(results))
            elif line is not None:
                inside = _spread(line, p + layer.before[d], len(results))
            spread.append(inside)
        return reduce(np.logical_and.outer, seen), reduce(np.logical_and.outer, spread)

    def filters_of(self, channel: int) -> slice:
        """The results that a channel belongs to."""
        each = len(self.weights) // self.layer.groups
        group = channel // self.weights.shape[1]
        return slice(group * each, (group + 1) * each)


def _spread(line: Line, at: int, size: int) -> Array:
    """Results along a dimension that an element spreads to; it has a place in the bordered data."""
    made, reached = np.zeros(size, bool), reach(line.filter)
    for phase, piece, image in np.ndindex(line.phases, line.pieces, line.images):
        for result in range(-(-size // line.images)):
            tile, i = divmod(result, line.results)
            first = tile * line.results + piece * line.taps
            elements = [line.at(first + k, phase, image) for k in range(line.filter.tile)]
            where = result * line.images + image
            if where < size and at in elements and reached[i, elements.index(at)]:
                made[where] = True
    return made


def reach(one: Filter) -> Array:
    """[i, k]: whether element k of a tile is a term of result i, be it one that cancels out."""
    back, data = (np.array(m, np.float64) != 0 for m in (one.back, one.data))
    return (back.astype(int) @ data.astype(int)) > 0


def errors(found: Array, exact: Array) -> tuple[float, float]:
    """The largest relative to the largest result, and of root mean squares."""
    away = np.abs(found - exact)
    mean = np.linalg.norm(away) / np.linalg.norm(exact)
    return float(away.max() / np.abs(exact).max()), float(mean)


def beside(kernel: Convolution, place: tuple[int, ...], huge: float) -> tuple[float, int]:
    """A huge element in a picture of ones: what it does beyond the windows that see it.

    The largest error of results that share a tile with it but do not see it, and their number.
    """
    x = np.ones(kernel.shape, np.float32)
    x[(*place, 0)] = huge
    seen, spread = kernel.seen_by(place)
    beyond = spread & ~seen
    away = np.abs(kernel(x) - kernel.exact(x))[beyond]
    return float(away.max(initial=0)), int(beyond.sum())


def normal_weights(layer: Layer, channels: int, filters: int = 32) -> Array:
    rng = np.random.default_rng([0, layer.taps[-1], channels])
    shape = (filters, channels // layer.groups, *layer.taps)
    return rng.standard_normal(shape).astype(np.float32)


def picture(rng: np.random.Generator, shape: tuple[int, ...], *, rectified: bool = False) -> Array:
    """Normal numbers, or what ReLU leaves of them."""
    x = rng.standard_normal(shape).astype(np.float32)
    return np.maximum(x, np.float32(0)) if rectified else x


def alternating(shape: tuple[int, ...]) -> Array:
    """Ones whose signs change from place to place: values of polynomials at -1."""
    *space, channels = shape
    signs = 1 - 2 * (np.indices(space).sum(0) % 2)
    return np.repeat(signs[..., None], channels, -1).astype(np.float32)


def signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers of nearly one size and of random signs."""
    sizes = rng.uniform(0.9, 1, shape)
    return (sizes * rng.choice([-1, 1], sizes.shape)).astype(np.float32)


def single_taps(layer: Layer, channels: int) -> Array:
    """A filter for each place of the window that has weights there only: nothing averages out."""
    rng = np.random.default_rng(layer.taps[-1])
    made = np.zeros((prod(layer.taps), channels, *layer.taps), np.float32)
    for o, place in enumerate(np.ndindex(layer.taps)):
        made[(o, slice(None), *place)] = rng.uniform(0.5, 1, channels)
    return made


def cancelling_weights(layer: Layer, channels: int) -> Array:
    """Weights whose sum over each window is nearly zero."""
    made = normal_weights(layer, channels)
    return made - made.mean(tuple(range(2, made.ndim)), keepdims=True)


def largest_transform(kernel: Convolution, size: float) -> Array:
    """Data of one size whose signs are those of the largest rows of B, in a tile without border."""
    assert kernel.tiles is not None
    where, values = [], []
    for before, line in zip(kernel.layer.before, kernel.tiles.lines.values(), strict=True):
        row = max(line.filter.data, key=lambda r: sum(map(abs, r)))
        first = -(-before // (line.results * line.step)) * line.results
        where.append([(first + i) * line.step - before for i in range(len(row))])
        values.append([-1.0 if c < 0 else 1.0 for c in row])
    made = np.zeros(kernel.shape, np.float32)
    made[np.ix_(*where)] = (size * reduce(np.multiply.outer, map(np.array, values)))[..., None]
    return made
