"""Convolutions by every algorithm: errors, how far elements spread, the ends of the range.

Kernels are compiled; `CONVOLUTIONS` has the limits. The second half is about whole models: strict
accuracy is that of the direct algorithm.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from scripts import winograd_errors as script
from tests.numeric import convolution_cases as cases
from tests.numeric.accuracy_cases import Case, wide
from tests.numeric.convolution_cases import ALGORITHMS, Convolution, U, name_of, tiles_of
from tilewright.dtypes import f32
from tilewright.graph.ops.window import Conv
from tilewright.graph.ops.winograd import WinogradConv
from tilewright.layouts.algorithms import algorithms_of
from tilewright.testing.accuracy import CONVOLUTIONS, growth, worst

LARGEST = float(np.finfo(np.float32).max)
TINY = float(np.finfo(np.float32).tiny)
each_algorithm = pytest.mark.parametrize(("taps", "results"), ALGORITHMS)
minimal = pytest.mark.parametrize(("taps", "results"), [a for a in ALGORITHMS if a[1]])


@cache
def kernel_of(taps: int, results: int) -> Convolution:
    """One with normal weights for eight channels."""
    return Convolution(cases.normal_weights(taps, 8), tiles_of(taps, results), 24)


def places(results: int) -> list[tuple[int, int]]:
    """Elements of a tile in the middle of a picture, one of each row and column."""
    return [(9 + i, 9 + (5 * i + 2) % max(results, 1)) for i in range(max(results, 1))]


@each_algorithm
@pytest.mark.parametrize("channels", [16, 512])
def test_ordinary_data_are_within_the_limits(taps, results, channels):
    """A side that tiles do not divide, data of both signs and of one."""
    kernel = Convolution(cases.normal_weights(taps, channels, 16), tiles_of(taps, results), 15)
    limits = CONVOLUTIONS[name_of(kernel.tiles)]
    for rectified in (False, True):
        x = cases.picture(np.random.default_rng(5), 15, channels, rectified=rectified)
        largest, mean = cases.errors(kernel(x), kernel.exact(x))
        assert largest <= limits.largest
        assert mean <= limits.mean


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_limits_would_notice_less_precision(name):
    """Results of 11 bits of mantissa are outside of both."""
    exact = np.random.default_rng(1).standard_normal(5000)
    coarse = (exact.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)
    largest, mean = cases.errors(coarse, exact)
    assert largest > CONVOLUTIONS[name].largest
    assert mean > CONVOLUTIONS[name].mean


@minimal
def test_all_data_are_within_the_bound_of_the_matrices(taps, results):
    tiles, rng = tiles_of(taps, results), np.random.default_rng(11)
    single = Convolution(cases.single_taps(taps, 1), tiles, 24)
    mixed = Convolution(wide(rng, (8, 4, taps, taps)), tiles, 24)
    hard = [(single, cases.signs(rng, 24, 1)) for _ in range(8)]
    hard += [(mixed, wide(rng, (24, 24, 4))), (mixed, cases.alternating(24, 4))]
    for kernel, x in hard:
        assert script.in_units(kernel, x) <= worst(tiles, x.shape[-1])


@each_algorithm
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_spreads_as_the_matrices_say(taps, results, value):
    """Never beyond its tiles: all other results keep their bits."""
    kernel = kernel_of(taps, results)
    x = cases.picture(np.random.default_rng(2), 24, 8)
    before = kernel(x)
    for place in places(results):
        changed = x.copy()
        changed[(*place, 3)] = value
        found, (seen, spread) = kernel(changed), kernel.seen_by(place)
        finite = np.isfinite(found)
        np.testing.assert_array_equal(finite.any(2), ~spread)
        np.testing.assert_array_equal(finite.all(2), ~spread)
        np.testing.assert_array_equal(found[~spread], before[~spread])
        assert not (seen & ~spread).any()


@minimal
def test_inner_elements_of_a_tile_reach_all_of_its_results(taps, results):
    """And outer ones only the results at their edge."""
    first, *inner, last = cases.reach(tiles_of(taps, results).filters[0]).T
    assert np.all(inner)
    assert np.flatnonzero(first).tolist() == [0]
    assert np.flatnonzero(last).tolist() == [results - 1]


@each_algorithm
@pytest.mark.parametrize("huge", [1e6, 1e8])
def test_errors_beside_a_huge_element(taps, results, huge):
    """Results that share a tile with it lose what the table says, others nothing."""
    kernel = kernel_of(taps, results)
    limit = CONVOLUTIONS[name_of(kernel.tiles)].beside
    unit = U * huge * float(np.abs(kernel.weights).max())
    ones = np.ones((24, 24, 8), np.float32)
    before, found = kernel(ones), []
    for place in places(results):
        error, count = cases.beside(kernel, place, huge)
        found.append(count)
        assert error <= limit * unit
        x = ones.copy()
        x[(*place, 0)] = huge
        _, spread = kernel.seen_by(place)
        np.testing.assert_array_equal(kernel(x)[~spread], before[~spread])
    assert (max(found) > 0) == (limit > 0)


@minimal
def test_transforms_overflow_where_their_growth_says(taps, results):
    tiles, weights = tiles_of(taps, results), cases.single_taps(taps, 1) * np.float32(1e-12)
    kernel, direct = (Convolution(weights, how, 24) for how in (tiles, None))
    for part, finite in ((0.99, True), (1.01, False)):
        x = cases.largest_transform(tiles, 24, 1, part * LARGEST / growth(tiles))
        assert np.isfinite(direct(x)).all()
        assert np.isfinite(kernel(x)).all() == finite


@each_algorithm
def test_subnormal_data_are_not_lost(taps, results):
    kernel = kernel_of(taps, results)
    whole = np.random.default_rng(3).integers(-9999, 10000, (24, 24, 8))
    x = (whole * 2.0**-149).astype(np.float32)
    found, bound = kernel(x), worst(kernel.tiles, 8) if kernel.tiles else taps * taps * 8
    sizes = float(np.abs(kernel.weights).sum((1, 2, 3)).max())
    assert np.abs(found - kernel.exact(x)).max() <= bound * U * TINY * sizes
    assert np.mean(found != 0) > 0.9


def test_every_algorithm_that_may_be_chosen_has_limits():
    names = set()
    for taps in range(2, 10):
        op = Conv((1, 1), (1, 1), (0, 0, 0, 0), 1, f32)
        weights = np.zeros((1, 1, taps, taps), np.float32)
        names |= {a.name for a in algorithms_of(op, weights, strict=False)}
    assert names == CONVOLUTIONS.keys()
    assert names == {name_of(tiles_of(*which)) for which in ALGORITHMS}


@pytest.mark.parametrize("factor", ["1/2", "4/3"])
def test_filters_at_other_points_mean_the_same(factor):
    """The page compares them."""
    tiles = script.AtPoints((3, 3), (4, 4), script.Fraction(factor))
    kernel = Convolution(cases.normal_weights(3, 4), tiles, 12)
    x = cases.picture(np.random.default_rng(4), 12, 4)
    assert cases.errors(kernel(x), kernel.exact(x))[0] <= 1e-4


def test_the_page_has_the_limits():
    page = Path(script.__file__).parents[1] / "docs" / "accuracy.md"
    text = page.read_text(encoding="utf-8")
    assert script.INTRODUCTION + script.promised() + script.MEASURED in text
    assert text.count(script.TITLE) == 1


@cache
def direct_of(taps: int) -> Convolution:
    """A convolution of 16 channels whose models are below."""
    return Convolution(cases.normal_weights(taps, 16, 64), None, 40)


@cache
def model_of(taps: int, accuracy: str) -> tw.Module:
    """A model of one node, with the weights of `direct_of`."""
    convolution = direct_of(taps)
    shape = (1, convolution.weights.shape[1], convolution.side, convolution.side)
    before, behind = convolution.pads
    attributes = {"pads": [before, before, behind, behind]}
    x, w = {"x": np.zeros(shape, np.float32)}, {"w": convolution.weights}
    case = Case("winograd", "model", "Conv", x, lambda *arrays: arrays[:2], w, attributes)
    return tw.compile(case.model(), cache=False, threads=1, accuracy=accuracy)


def run(module: tw.Module, x: np.ndarray) -> np.ndarray:
    """Y[y, x, o] for X[y, x, c]."""
    (found,) = module.run({"x": np.ascontiguousarray(x.transpose(2, 0, 1)[None])})
    return np.asarray(found)[0].transpose(1, 2, 0)


def chosen_tiles(module: tw.Module) -> list[cases.Tiles]:
    ops = [node.op for node in module.graph.nodes]
    return [op.tiles for op in ops if isinstance(op, WinogradConv)]


@pytest.mark.parametrize("taps", [2, 3, 5])
def test_strict_models_have_the_errors_of_the_direct_algorithm(taps):
    direct, module = direct_of(taps), model_of(taps, "strict")
    assert not chosen_tiles(module)
    x = cases.picture(np.random.default_rng(6), 40, 16)
    largest, mean = cases.errors(run(module, x), direct.exact(x))
    assert largest <= CONVOLUTIONS["direct"].largest
    assert mean <= CONVOLUTIONS["direct"].mean
    hard = wide(np.random.default_rng(7), x.shape)
    away = np.abs(run(module, hard) - direct.exact(hard))
    assert (away <= U * direct.weights[0].size * direct.sizes(hard)).all()


@pytest.mark.parametrize("taps", [2, 3, 5])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e8])
def test_strict_models_keep_elements_within_their_windows(taps, value):
    direct, module = direct_of(taps), model_of(taps, "strict")
    x = cases.picture(np.random.default_rng(8), 40, 16)
    before, changed = run(module, x), x.copy()
    changed[17, 22, 5] = value
    found, (seen, _) = run(module, changed), direct.seen_by((17, 22))
    np.testing.assert_array_equal((found != before).any(2), seen)
    np.testing.assert_array_equal(np.isfinite(found).all(2), ~seen | np.isfinite(value))


def test_default_models_keep_elements_within_their_tiles():
    module = model_of(3, "default")
    (tiles,) = chosen_tiles(module)
    kernel = Convolution(direct_of(3).weights, tiles, 40)
    x = cases.picture(np.random.default_rng(9), 40, 16)
    largest, mean = cases.errors(run(module, x), kernel.exact(x))
    limits = CONVOLUTIONS[name_of(tiles)]
    assert largest <= limits.largest
    assert mean <= limits.mean
    x[17, 22, 5] = np.nan
    np.testing.assert_array_equal(np.isnan(run(module, x)).all(2), kernel.seen_by((17, 22))[1])
