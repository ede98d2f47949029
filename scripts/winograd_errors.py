"""Measure how convolutions round by algorithm, and print it or write a section of docs/accuracy.md.

`python scripts/winograd_errors.py` prints the section "Convolutions"; `--page docs/accuracy.md`
writes it into the page. Kernels are compiled, for one thread and with channels last; results are
compared with a direct convolution in double precision. What is promised comes from
`tilewright.testing.accuracy`, the data from the tests, with fixed seeds.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import astuple, dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.pages import table
from tests.numeric import convolution_cases as cases
from tests.numeric.accuracy_cases import wide
from tests.numeric.convolution_cases import ALGORITHMS, GEOMETRIES, SHOWN, Convolution, Layer, U
from tilewright.tensor.library.minimal_filters import Filter
from tilewright.tensor.library.tiles import Line, Tiles
from tilewright.testing.accuracy import (
    CONVOLUTIONS,
    UNEVEN,
    amplification,
    growth,
    rounding,
    worst,
)

Array = np.ndarray[Any, Any]
SIDE, HARD_CHANNELS = 24, 16
SIDES = {1: 96, 2: SIDE, 3: 9}
"""By the number of dimensions."""

CHANNELS = (16, 64, 256, 512)
HUGE = (1e6, 1e8)
LARGEST = float(np.finfo(np.float32).max)
TITLE = "## Convolutions\n"

INTRODUCTION = f"""{TITLE}
`accuracy="strict"` promises that every convolution is summed up directly: the error of each result
is at most n·u·Σ|terms| of its own window. A huge element, an infinity or NaN then changes no result
but those whose windows see it, and nothing overflows before a sum of terms does.

By default convolutions of `f32` may run by minimal filters F(m, r), along one or two dimensions of
space: they compute tiles of m results of windows of r elements from t = m + r - 1 elements. A long
window is cut into parts, and strides divide it among as many; the parts are summed up like
channels. Gaps divide the results among as many images, and so do the strides of a transposed
convolution, where each has a part of the window. r is the size of a part. Dimensions of space
beyond two are summed up directly.

Errors are relative to the largest elements of a tile instead of a window. For all data they are at
most (4·t + k)·α·u·max|x|·max Σ|w|, where k is what one product of a tile sums up: the channels of a
group, times the parts, times the window along dimensions without tiles. α follows from the
matrices: it is the largest Σ|A|·|G|·Σ|B|, squared for two dimensions. "Growth" is the largest Σ|B|,
squared: transformed data overflow from the largest float divided by it, where direct results may
still be small. Nothing overflows while max|x| times growth, and α·max|x|·max Σ|w|, are below the
largest float. If two dimensions differ, α and growth are the products of both, and 4·t is twice the
sum; for one dimension they are the roots, and it is 2·t.

The limits on the right hold for ordinary data and weights of up to 512 channels, and tests keep to
them: the largest error relative to the largest result, and the root of the mean square relative to
that of the results. If two dimensions differ, the limits are the geometric means of both, and one
dimension without tiles counts as direct. With p parts, or as many elements of the window along
dimensions without tiles, they are √p times as large.

"Beside" is the error of results to which a huge element spreads although their windows do not see
it, in u·|element|·max|w|. NaN or an infinity in an element makes all results NaN that share a tile
with it, unless it is the last of the tile along a dimension, or the first, for t other than 5 and
7: then only those of the tile's edge. No element reaches results of other tiles. F(2, r) with such
t has no results beside, except where parts of a window differ in size: errors of these are up to
{UNEVEN}.

"""

MEASURED = """
Measured by `python scripts/winograd_errors.py --page docs/accuracy.md`: the largest error relative
to the largest result / root of mean square relative to that of the results, by channels.

"""

OTHERS = """
The same for other windows and normal data: those that are not square, are long, or have strides or
gaps, groups, pictures of one and three dimensions, transposed convolutions.

"""

HARD = f"""
Data that are hard, of {HARD_CHANNELS} channels, as largest errors in u·max|x|·max Σ|w|: sizes from
10⁻⁶ to 10⁶ of random signs, signs that change from pixel to pixel, constant data with weights whose
sums are zero, and the worst known: weights at one place of the window and one channel, data of
random signs, which is also given as part of the bound.

"""

HUGE_TEXT = """
One huge element in a picture of ones, of 8 channels with normal weights: how many results it
spreads to beyond the windows that see it, where it is worst, and their largest errors; exact
results there are below 40. "Overflow" is the least size of data, relative to the largest float,
whose results are not finite though all direct ones are tiny, for the worst signs. "Subnormal" is
the largest error for data that are all subnormal, in multiples of the least positive float.

"""

POINTS = """
Tiles of six elements have five points besides infinity. Those taken, 0, ±3/4, ±3/2, are compared
with others of the same proportions, for 64 channels of normal data: largest error relative to the
largest result / root of mean square, and α.

"""


@dataclass(frozen=True)
class LineAtPoints(Line):
    """Tiles whose minimal filter has all points times a factor."""

    factor: Fraction

    @property
    def filter(self) -> Filter:
        """Columns and rows of the matrices times powers of the factor."""
        return _moved(super().filter, self.factor)


@dataclass(frozen=True)
class AtPoints(Tiles):
    """The same along all tiled dimensions."""

    factor: Fraction = Fraction(1)

    @property
    def lines(self) -> dict[int, Line]:
        """Those of other tiles, with other filters."""
        return {d: LineAtPoints(*astuple(line), self.factor) for d, line in super().lines.items()}


@dataclass(frozen=True)
class LayerAtPoints(Layer):
    """The same as a layer."""

    factor: Fraction = Fraction(1)

    @property
    def tiles(self) -> Tiles | None:
        """Never the direct algorithm."""
        return AtPoints(self.taps, self.results, self.strides, self.dilations, self.factor)


def _moved(one: Filter, factor: Fraction) -> Filter:
    """The same filter at points times a factor; the last point stays at infinity."""
    last = one.tile - 1
    back = [
        [a * (factor**i if j < last else 1) for j, a in enumerate(row)]
        for i, row in enumerate(one.back)
    ]
    weights = [
        [g * (factor ** (k - last + 1) if j < last else 1) for k, g in enumerate(row)]
        for j, row in enumerate(one.weights)
    ]
    data = [
        [b * factor ** (last - (j < last) - i) for i, b in enumerate(row)]
        for j, row in enumerate(one.data)
    ]
    made = (tuple(map(tuple, matrix)) for matrix in (back, weights, data))
    return Filter(one.results, one.taps, *made)


def promised() -> str:
    """The limits by algorithm, which a test compares with the page."""
    found, layers = [], {layer.algorithm: layer for layer in ALGORITHMS}
    for name, limits in CONVOLUTIONS.items():
        tiles = layers[name].tiles
        of_tile = ["-", "1", "1"]
        if tiles is not None:
            of_tile = [f"{tiles.filters[0].tile}", f"{growth(tiles):.3g}"]
            of_tile.append(f"{amplification(tiles):.4g}")
        shown = [f"{v:g}" for v in (limits.largest, limits.mean, limits.beside)]
        found.append([name, *of_tile, *shown])
    titles = ["algorithm", "t", "growth", "α", "largest error", "mean error", "beside"]
    return table(titles, found)


def section() -> str:
    """The whole section, measured now."""
    parts = [INTRODUCTION, promised(), MEASURED, ordinary(), OTHERS, others(), HARD, hard()]
    return "".join([*parts, HUGE_TEXT, outliers(), POINTS, points()])


def ordinary() -> str:
    """Normal data, and what ReLU leaves of them."""
    found: dict[tuple[bool, str], list[str]] = {
        (rectified, _shown(layer)): [] for rectified in (False, True) for layer in SHOWN
    }
    for channels in CHANNELS:
        known: dict[Layer, list[Array]] = {}
        for layer in SHOWN:
            kernel = Convolution(cases.normal_weights(layer, channels), layer, SIDE)
            rng = np.random.default_rng(channels)
            pictures = [cases.picture(rng, kernel.shape, rectified=r) for r in (False, True)]
            exact = known.get(layer.direct) or [kernel.exact(x) for x in pictures]
            known[layer.direct] = exact
            for rectified, x in enumerate(pictures):
                found[bool(rectified), _shown(layer)].append(_pair(kernel(x), exact[rectified]))
    rows = [["ReLU" if kind else "normal", name, *row] for (kind, name), row in found.items()]
    return table(["data", "algorithm", *map(str, CHANNELS)], rows, words=2)


def others() -> str:
    """Normal data in windows of other geometries, by minimal filters."""
    found = []
    for layer in GEOMETRIES:
        row = [layer.window, layer.algorithm]
        for channels in CHANNELS:
            weights = cases.normal_weights(layer, channels)
            kernel = Convolution(weights, layer, SIDES[layer.rank])
            x = cases.picture(np.random.default_rng(channels), kernel.shape)
            row.append(_pair(kernel(x), kernel.exact(x)))
        limits = rounding(layer.tiles)
        found.append([*row, f"{limits.largest:.1e} / {limits.mean:.1e}"])
    return table(["window", "algorithm", *map(str, CHANNELS), "limits"], found, words=2)


def hard() -> str:
    """Wide range, alternating signs, cancelling weights, weights at single places."""
    found = []
    for layer in SHOWN:
        rng = np.random.default_rng(7)
        plain = Convolution(cases.normal_weights(layer, HARD_CHANNELS), layer, SIDE)
        zero = Convolution(cases.cancelling_weights(layer, HARD_CHANNELS), layer, SIDE)
        single = Convolution(cases.single_taps(layer, 1), layer, SIDE)
        errors = [
            in_units(plain, wide(rng, plain.shape)),
            in_units(plain, cases.alternating(plain.shape)),
            in_units(zero, np.full(plain.shape, 0.7, np.float32)),
            max(in_units(single, cases.signs(rng, single.shape)) for _ in range(20)),
        ]
        part = errors[-1] / (worst(layer.tiles, 1) if layer.tiles else prod(layer.taps))
        row = [f"{error:.2g}" for error in errors]
        found.append([_shown(layer), *row, f"{part:.2g}"])
    kinds = ["wide range", "alternating", "cancelling", "single weights", "of the bound"]
    return table(["algorithm", *kinds], found)


def outliers() -> str:
    """Huge elements, data near the largest float, subnormal data."""
    found = []
    for layer in SHOWN:
        kernel = Convolution(cases.normal_weights(layer, 8), layer, SIDE)
        places = [(6 + i, 6 + j) for i, j in np.ndindex(layer.results or (1, 1))]
        spread = [max(cases.beside(kernel, place, huge) for place in places) for huge in HUGE]
        factor = spread[0][0] / (U * HUGE[0] * float(np.abs(kernel.weights).max()))
        row = [str(spread[0][1]), *(f"{error:.2g}" for error, _ in spread), f"{factor:.2g}"]
        tiny = np.random.default_rng(3).integers(-9999, 10000, kernel.shape) * 2.0**-149
        x = tiny.astype(np.float32)
        least = float(np.abs(kernel(x) - kernel.exact(x)).max()) / 2.0**-149
        found.append([_shown(layer), *row, _overflow(layer), f"{least:.2g}"])
    titles = ["results beyond", *(f"beside {h:.0e}" for h in HUGE), "in u·10⁶·max\\|w\\|"]
    return table(["algorithm", *titles, "overflow", "subnormal"], found)


def points() -> str:
    """Five points and their multiples."""
    found = []
    for factor in map(Fraction, ("1/2", "3/4", "1", "4/3", "2")):
        inner = factor * Fraction(3, 4)
        row = [f"0, ±{inner}, ±{2 * inner}"]
        for taps, results in ((3, 4), (5, 2)):
            layer = LayerAtPoints((taps, taps), (results, results), factor=factor)
            kernel = Convolution(cases.normal_weights(layer, 64), layer, SIDE)
            x = cases.picture(np.random.default_rng(64), kernel.shape)
            assert kernel.tiles is not None
            row += [_pair(kernel(x), kernel.exact(x)), f"{amplification(kernel.tiles):.4g}"]
        found.append(row)
    return table(["points", "F(4, 3)", "α", "F(2, 5)", "α"], found)


def in_units(kernel: Convolution, x: Array) -> float:
    """The largest error in u·max|x|·max Σ|w|."""
    return float(np.abs(kernel(x) - kernel.exact(x)).max()) / (U * kernel.unit(x))


def _overflow(layer: Layer) -> str:
    """The size of data from which results are not finite, by bisection."""
    if layer.tiles is None:
        return "-"
    kernel = Convolution(cases.single_taps(layer, 1) * np.float32(1e-12), layer, SIDE)
    low, high = 1.0, 2.0**10
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        y = kernel(cases.largest_transform(kernel, LARGEST / middle))
        low, high = (low, middle) if np.isfinite(y).all() else (middle, high)
    return f"1/{low:.3g}"


def _pair(found: Array, exact: Array) -> str:
    largest, mean = cases.errors(found, exact)
    return f"{largest:.1e} / {mean:.1e}"


def _shown(layer: Layer) -> str:
    return layer.algorithm if layer.results else f"{layer.algorithm} {layer.window}"


def main() -> None:
    """Measure, then print or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, help="write the section into this file")
    options = parser.parse_args()
    text = section()
    if options.page is None:
        print(text, end="")
        return
    before, _, _ = options.page.read_text(encoding="utf-8").partition(f"\n{TITLE}")
    options.page.write_text(f"{before.rstrip()}\n\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()
