"""Convolutions as compiled kernels with their exact results, and data that are hard on them.

A kernel has one algorithm and constant weights, runs on one thread with channels last, and has a
border that keeps the size of the picture. What minimal filters do to an element that is huge or not
a number follows from their matrices: `reach` says to which results it spreads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.layouts.algorithms import Algorithm
from tilewright.tensor.build import func, placeholder
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.library.minimal_filters import Filter
from tilewright.tensor.library.winograd import Tiles, convolve_winograd, winograd_weights

Array = np.ndarray[Any, Any]
U = 2.0**-24
SHOWN = ((3, 0), (3, 2), (3, 4), (3, 6), (5, 0), (5, 2), (5, 4), (2, 0), (2, 2), (2, 4))
ALGORITHMS = (*SHOWN, (2, 6), (4, 2), (4, 4), (6, 2), (7, 2))
"""Taps and results of a tile along each dimension; 0 is the direct algorithm. The page shows what
it measures of some."""


def tiles_of(taps: int, results: int) -> Tiles | None:
    return Tiles((taps, taps), (results, results)) if results else None


def name_of(tiles: Tiles | None) -> str:
    """As in the table of tolerances: `direct` or `F(4, 3)`."""
    return Algorithm(tiles).name


@dataclass(frozen=True)
class Convolution:
    """One kernel for pictures of `side` × `side`; `weights` are W[o, c, i, j]."""

    weights: Array
    tiles: Tiles | None
    side: int

    @property
    def taps(self) -> int:
        return int(self.weights.shape[-1])

    @property
    def pads(self) -> tuple[int, int]:
        """The border before and behind."""
        return (self.taps - 1) // 2, self.taps // 2

    @cached_property
    def kernel(self) -> tw.Kernel:
        channels = self.weights.shape[1]
        x = placeholder("x", (1, self.side, self.side, channels))
        constant = self.weights
        before, behind = self.pads
        pads = (before, before, behind, behind)
        if self.tiles is None:
            w = placeholder("w", constant.shape)
            y = convolve(x, w, pads=pads, name="y")
        else:
            constant = winograd_weights(self.weights, self.tiles)
            w = placeholder("w", constant.shape)
            y = convolve_winograd(x, w, self.tiles, pads, name="y")
        return tw.build(func("convolution", [x, w], [y]), threads=1, constants={"w": constant})

    def __call__(self, x: Array) -> Array:
        """Y[y, x, o] for X[y, x, c]."""
        found = np.empty((1, self.side, self.side, len(self.weights)), np.float32)
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
        return float(np.abs(x).max()) * float(np.abs(self.weights).sum((1, 2, 3)).max())

    def _direct(self, x: Array, weights: Array) -> Array:
        wide = np.pad(x, [self.pads, self.pads, (0, 0)])
        views = np.lib.stride_tricks.sliding_window_view(wide, (self.taps, self.taps), (0, 1))
        return np.tensordot(views, weights, ((2, 3, 4), (1, 2, 3)))

    def seen_by(self, place: tuple[int, int]) -> tuple[Array, Array]:
        """[y, x]: results whose windows see an element, and those that it spreads to."""
        before, behind = self.pads
        shape, filters = (self.side, self.side), self.tiles.filters if self.tiles else ()
        seen, spread = np.zeros(shape, bool), np.zeros(shape, bool)
        seen[tuple(slice(max(0, p - behind), p + before + 1) for p in place)] = True
        lines = [_spread(f, p + before) for f, p in zip(filters, place, strict=False)]
        if not lines:
            return seen, seen
        inside = [[i for i in line if i < self.side] for line in lines]
        spread[np.ix_(*inside)] = True
        return seen, spread


def _spread(one: Filter, at: int) -> list[int]:
    """Results along a dimension that an element spreads to; it has a place in the bordered data."""
    first = max(0, -((one.tile - 1 - at) // one.results))
    tiles = range(first, at // one.results + 1)
    reached = reach(one)
    return [
        tile * one.results + int(i)
        for tile in tiles
        for i in np.flatnonzero(reached[:, at - tile * one.results])
    ]


def reach(one: Filter) -> Array:
    """[i, k]: whether element k of a tile is a term of result i, be it one that cancels out."""
    back, data = (np.array(m, np.float64) != 0 for m in (one.back, one.data))
    return (back.astype(int) @ data.astype(int)) > 0


def errors(found: Array, exact: Array) -> tuple[float, float]:
    """The largest relative to the largest result, and of root mean squares."""
    away = np.abs(found - exact)
    mean = np.linalg.norm(away) / np.linalg.norm(exact)
    return float(away.max() / np.abs(exact).max()), float(mean)


def beside(kernel: Convolution, place: tuple[int, int], huge: float) -> tuple[float, int]:
    """A huge element in a picture of ones: what it does beyond the windows that see it.

    The largest error of results that share a tile with it but do not see it, and their number.
    """
    x = np.ones((kernel.side, kernel.side, kernel.weights.shape[1]), np.float32)
    x[(*place, 0)] = huge
    seen, spread = kernel.seen_by(place)
    beyond = spread & ~seen
    away = np.abs(kernel(x) - kernel.exact(x))[beyond]
    return float(away.max(initial=0)), int(beyond.sum())


def normal_weights(taps: int, channels: int, filters: int = 32, seed: int = 0) -> Array:
    rng = np.random.default_rng([seed, taps, channels])
    return rng.standard_normal((filters, channels, taps, taps)).astype(np.float32)


def picture(
    rng: np.random.Generator, side: int, channels: int, *, rectified: bool = False
) -> Array:
    """Normal numbers, or what ReLU leaves of them."""
    x = rng.standard_normal((side, side, channels)).astype(np.float32)
    return np.maximum(x, np.float32(0)) if rectified else x


def alternating(side: int, channels: int) -> Array:
    """Ones whose signs change from pixel to pixel: values of polynomials at -1."""
    y, x = np.indices((side, side))
    return np.repeat((1 - 2 * ((y + x) % 2))[..., None], channels, 2).astype(np.float32)


def signs(rng: np.random.Generator, side: int, channels: int) -> Array:
    """Numbers of nearly one size and of random signs."""
    sizes = rng.uniform(0.9, 1, (side, side, channels))
    return (sizes * rng.choice([-1, 1], sizes.shape)).astype(np.float32)


def single_taps(taps: int, channels: int) -> Array:
    """A filter for each place of the window that has weights there only: nothing averages out."""
    rng = np.random.default_rng(taps)
    made = np.zeros((taps * taps, channels, taps, taps), np.float32)
    for o, (i, j) in enumerate(np.ndindex(taps, taps)):
        made[o, :, i, j] = rng.uniform(0.5, 1, channels)
    return made


def cancelling_weights(taps: int, channels: int) -> Array:
    """Weights whose sum over each window is nearly zero."""
    made = normal_weights(taps, channels)
    return made - made.mean((2, 3), keepdims=True)


def largest_transform(tiles: Tiles, side: int, channels: int, size: float) -> Array:
    """Data of one size whose signs are those of the largest row of B, in one tile."""
    one, _ = tiles.filters
    row = max(one.data, key=lambda r: sum(map(abs, r)))
    line = np.array([-1.0 if c < 0 else 1.0 for c in row])
    first = 2 * one.results - (one.taps - 1) // 2  # of the third tile, which has no border
    made, where = np.zeros((side, side, channels), np.float32), slice(first, first + one.tile)
    made[where, where] = (size * np.outer(line, line))[..., None]
    return made
