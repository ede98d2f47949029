"""Measure how convolutions round by algorithm, and print it or write a section of docs/accuracy.md.

`python scripts/winograd_errors.py` prints the section "Convolutions"; `--page docs/accuracy.md`
writes it into the page. Kernels are compiled, for one thread and with channels last; results are
compared with a direct convolution in double precision. What is promised comes from
`tilewright.testing.accuracy`, the data from the tests, with fixed seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.numeric import convolution_cases as cases
from tests.numeric.accuracy_cases import wide
from tests.numeric.convolution_cases import ALGORITHMS, SHOWN, Convolution, U, name_of, tiles_of
from tilewright.tensor.library.minimal_filters import Filter
from tilewright.tensor.library.winograd import Tiles
from tilewright.testing.accuracy import CONVOLUTIONS, amplification, growth, worst

Array = np.ndarray[Any, Any]
SIDE, HARD_CHANNELS = 24, 16
CHANNELS = (16, 64, 256, 512)
HUGE = (1e6, 1e8)
LARGEST = float(np.finfo(np.float32).max)
TITLE = "## Convolutions\n"

INTRODUCTION = f"""{TITLE}
`accuracy="strict"` promises that every convolution is summed up directly: the error of each result
is at most n·u·Σ|terms| of its own window. A huge element, an infinity or NaN then changes no result
but those whose windows see it, and nothing overflows before a sum of terms does.

By default convolutions of `f32` with stride 1 may run by minimal filters F(m, r), which compute
tiles of m×m results of windows of r×r from t×t elements, t = m + r - 1. Their errors are relative
to the largest elements of a tile instead of a window. For all data they are at most
(4·t + channels)·α·u·max|x|·max Σ|w|, with the channels of a group, where α follows from the
matrices: it is the largest Σ|A|·|G|·Σ|B|, squared for two dimensions. "Growth" is the largest Σ|B|,
squared: transformed data overflow from the largest float divided by it, where direct results may
still be small. Nothing overflows while max|x| times growth, and α·max|x|·max Σ|w|, are below the
largest float.

The limits on the right hold for ordinary data and weights of up to 512 channels, and tests keep to
them: the largest error relative to the largest result, and the root of the mean square relative to
that of the results. "Beside" is the error of results to which a huge element spreads although their
windows do not see it, in u·|element|·max|w|. F(2, r) has no such results. F(4, r) and F(6, r) have:
NaN or an infinity in an element makes all results NaN that share a tile with it, unless it is the
first or the last of the tile along a dimension; then only those of the tile's edge. No element
reaches results of other tiles.

"""

MEASURED = """
Measured by `python scripts/winograd_errors.py --page docs/accuracy.md`: the largest error relative
to the largest result / root of mean square relative to that of the results, by channels.

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
Tiles of six elements have five points beside infinity. Those taken, 0, ±3/4, ±3/2, are compared
with others of the same proportions, for 64 channels of normal data: largest error relative to the
largest result / root of mean square, and α.

"""


@dataclass(frozen=True)
class AtPoints(Tiles):
    """Tiles whose minimal filters have all points times a factor."""

    factor: Fraction = Fraction(1)

    @property
    def filters(self) -> tuple[Filter, Filter]:
        """Columns and rows of the matrices times powers of the factor."""
        first, second = super().filters
        return _moved(first, self.factor), _moved(second, self.factor)


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
    found = []
    for taps, results in ALGORITHMS:
        tiles = tiles_of(taps, results)
        limits = CONVOLUTIONS[name_of(tiles)]
        if tiles is None and taps != ALGORITHMS[0][0]:
            continue  # direct algorithms share their limits
        of_tile = ["-", "1", "1"]
        if tiles is not None:
            of_tile = [f"{tiles.filters[0].tile}", f"{growth(tiles):.3g}"]
            of_tile.append(f"{amplification(tiles):.4g}")
        shown = [f"{v:g}" for v in (limits.largest, limits.mean, limits.beside)]
        found.append([name_of(tiles), *of_tile, *shown])
    titles = ["algorithm", "t", "growth", "α", "largest error", "mean error", "beside"]
    return _table(titles, found)


def section() -> str:
    """The whole section, measured now."""
    parts = [INTRODUCTION, promised(), MEASURED, ordinary(), HARD, hard()]
    return "".join([*parts, HUGE_TEXT, outliers(), POINTS, points()])


def ordinary() -> str:
    """Normal data, and what ReLU leaves of them."""
    found: dict[tuple[bool, str], list[str]] = {
        (rectified, _shown(*which)): [] for rectified in (False, True) for which in SHOWN
    }
    for channels in CHANNELS:
        rng = np.random.default_rng(channels)
        pictures = [cases.picture(rng, SIDE, channels, rectified=kind) for kind in (False, True)]
        known: dict[int, list[Array]] = {}
        for taps, results in SHOWN:
            weights = cases.normal_weights(taps, channels)
            kernel = Convolution(weights, tiles_of(taps, results), SIDE)
            exact = known.get(taps) or [kernel.exact(x) for x in pictures]
            known[taps] = exact
            for rectified, x in enumerate(pictures):
                row = found[bool(rectified), _shown(taps, results)]
                row.append(_pair(kernel(x), exact[rectified]))
    rows = [["ReLU" if kind else "normal", name, *row] for (kind, name), row in found.items()]
    return _table(["data", "algorithm", *map(str, CHANNELS)], rows)


def hard() -> str:
    """Wide range, alternating signs, cancelling weights, weights at single places."""
    found = []
    for taps, results in SHOWN:
        tiles, rng = tiles_of(taps, results), np.random.default_rng(7)
        shape = (SIDE, SIDE, HARD_CHANNELS)
        plain = Convolution(cases.normal_weights(taps, HARD_CHANNELS), tiles, SIDE)
        zero = Convolution(cases.cancelling_weights(taps, HARD_CHANNELS), tiles, SIDE)
        single = Convolution(cases.single_taps(taps, 1), tiles, SIDE)
        errors = [
            in_units(plain, wide(rng, shape)),
            in_units(plain, cases.alternating(SIDE, HARD_CHANNELS)),
            in_units(zero, np.full(shape, 0.7, np.float32)),
            max(in_units(single, cases.signs(rng, SIDE, 1)) for _ in range(20)),
        ]
        part = errors[-1] / (worst(tiles, 1) if tiles else taps * taps)
        row = [f"{error:.2g}" for error in errors]
        found.append([_shown(taps, results), *row, f"{part:.2g}"])
    kinds = ["wide range", "alternating", "cancelling", "single weights", "of the bound"]
    return _table(["algorithm", *kinds], found)


def outliers() -> str:
    """Huge elements, data near the largest float, subnormal data."""
    found = []
    for taps, results in SHOWN:
        tiles = tiles_of(taps, results)
        kernel = Convolution(cases.normal_weights(taps, 8), tiles, SIDE)
        places = [(6 + i, 6 + j) for i, j in np.ndindex(results or 1, results or 1)]
        spread = [max(cases.beside(kernel, place, huge) for place in places) for huge in HUGE]
        factor = spread[0][0] / (U * HUGE[0] * float(np.abs(kernel.weights).max()))
        row = [str(spread[0][1]), *(f"{error:.2g}" for error, _ in spread), f"{factor:.2g}"]
        tiny = np.random.default_rng(3).integers(-9999, 10000, (SIDE, SIDE, 8)) * 2.0**-149
        x = tiny.astype(np.float32)
        least = float(np.abs(kernel(x) - kernel.exact(x)).max()) / 2.0**-149
        found.append([_shown(taps, results), *row, _overflow(taps, tiles), f"{least:.2g}"])
    titles = ["results beyond", *(f"beside {h:.0e}" for h in HUGE), "in u·10⁶·max\\|w\\|"]
    return _table(["algorithm", *titles, "overflow", "subnormal"], found)


def points() -> str:
    """Five points and their multiples."""
    found = []
    for factor in map(Fraction, ("1/2", "3/4", "1", "4/3", "2")):
        inner = factor * Fraction(3, 4)
        row = [f"0, ±{inner}, ±{2 * inner}"]
        for taps, results in ((3, 4), (5, 2)):
            tiles = AtPoints((taps, taps), (results, results), factor)
            kernel = Convolution(cases.normal_weights(taps, 64), tiles, SIDE)
            x = cases.picture(np.random.default_rng(64), SIDE, 64)
            row += [_pair(kernel(x), kernel.exact(x)), f"{amplification(tiles):.4g}"]
        found.append(row)
    return _table(["points", "F(4, 3)", "α", "F(2, 5)", "α"], found)


def in_units(kernel: Convolution, x: Array) -> float:
    """The largest error in u·max|x|·max Σ|w|."""
    return float(np.abs(kernel(x) - kernel.exact(x)).max()) / (U * kernel.unit(x))


def _overflow(taps: int, tiles: Tiles | None) -> str:
    """The size of data from which results are not finite, by bisection."""
    if tiles is None:
        return "-"
    kernel = Convolution(cases.single_taps(taps, 1) * np.float32(1e-12), tiles, SIDE)
    low, high = 1.0, 2.0**10
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        y = kernel(cases.largest_transform(tiles, SIDE, 1, LARGEST / middle))
        low, high = (low, middle) if np.isfinite(y).all() else (middle, high)
    return f"1/{low:.3g}"


def _pair(found: Array, exact: Array) -> str:
    largest, mean = cases.errors(found, exact)
    return f"{largest:.1e} / {mean:.1e}"


def _shown(taps: int, results: int) -> str:
    name = name_of(tiles_of(taps, results))
    return name if results else f"{name} {taps}×{taps}"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


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
