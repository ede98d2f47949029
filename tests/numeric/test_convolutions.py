"""Convolutions by every algorithm: errors, how far elements spread, the ends of the range.

Kernels are compiled; `CONVOLUTIONS` has the limits. The second half is about whole models: strict
accuracy is that of the direct algorithm.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from scripts import winograd_errors as script
from tests.numeric import convolution_cases as cases
from tests.numeric.accuracy_cases import Case, wide
from tests.numeric.convolution_cases import (
    ALGORITHMS,
    GEOMETRIES,
    SHOWN,
    Convolution,
    Layer,
    U,
    square,
)
from tilewright.dtypes import f32
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.ops.winograd import WinogradConv
from tilewright.layouts.algorithms import algorithms_of
from tilewright.tensor.library.tiles import SpreadTiles, Tiles
from tilewright.testing.accuracy import CONVOLUTIONS, growth, rounding, worst

LARGEST = float(np.finfo(np.float32).max)
TINY = float(np.finfo(np.float32).tiny)
UNEVEN = Layer((3, 3), (2, 2), (2, 2))  # a phase of the data has two elements of a window, one one
FILTERS = tuple(layer for layer in ALGORITHMS if layer.results)
SOME = tuple(layer for layer in SHOWN if layer.results)
LAYERS = (*ALGORITHMS, *GEOMETRIES, UNEVEN)
each_filter = pytest.mark.parametrize("layer", FILTERS, ids=str)


def side_of(layer: Layer) -> int:
    """Several tiles along each dimension."""
    return 10 if layer.rank == 3 else 24


@pytest.fixture(scope="module", params=LAYERS, ids=str)
def kernel(request: pytest.FixtureRequest) -> Convolution:
    """One with normal weights for eight channels, for all tests of a layer."""
    layer: Layer = request.param
    return Convolution(cases.normal_weights(layer, 8), layer, side_of(layer))


def places(layer: Layer) -> list[tuple[int, ...]]:
    """Elements of tiles in the middle of a picture, one of each row and column."""
    middle, count = side_of(layer) * 3 // 8, max(layer.results, default=1)
    ways = range(2, 2 + layer.rank)
    return [tuple(middle + (5 * i + k) % max(count, 1) for k in ways) for i in range(count)]


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_ordinary_data_are_within_the_limits(layer):
    """A side that tiles do not divide, data of both signs and of one."""
    side = 9 if layer.rank == 3 else 15
    kernel = Convolution(cases.normal_weights(layer, 512, 16), layer, side)
    limits = rounding(layer.tiles)
    for rectified in (False, True):
        x = cases.picture(np.random.default_rng(5), kernel.shape, rectified=rectified)
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


def test_limits_of_two_filters_are_between_those_of_each():
    mixed = rounding(Layer((3, 5), (4, 4)).tiles)
    low, high = CONVOLUTIONS["F(4, 3)"], CONVOLUTIONS["F(4, 5)"]
    assert low.largest < mixed.largest < high.largest
    assert low.mean < mixed.mean < high.mean
    assert mixed.beside == max(low.beside, high.beside)


def test_limits_grow_with_the_root_of_what_is_summed_up():
    whole, parts = rounding(square(3, 4).tiles), rounding(Layer((6, 6), (4, 4), (2, 2)).tiles)
    assert parts.mean == pytest.approx(2 * whole.mean)
    assert rounding(Layer((4, 3, 3), (0, 4, 4)).tiles).mean == pytest.approx(2 * whole.mean)


@pytest.mark.parametrize("layer", [a for a in FILTERS if not a.tiles.parts], ids=str)
def test_limits_of_equal_filters_are_those_of_the_table(layer):
    limits, found = CONVOLUTIONS[layer.algorithm], rounding(layer.tiles)
    assert astuple(found) == pytest.approx(astuple(limits))


@pytest.mark.parametrize("layer", [*SOME, *GEOMETRIES], ids=str)
def test_all_data_are_within_the_bound_of_the_matrices(layer):
    rng, side = np.random.default_rng(11), side_of(layer)
    single = Convolution(cases.single_taps(layer, 1), replace(layer, groups=1), side)
    mixed = Convolution(wide(rng, (8, 4, *layer.taps)), layer, side)
    hard = [(single, cases.signs(rng, single.shape)) for _ in range(8)]
    hard += [(mixed, wide(rng, mixed.shape)), (mixed, cases.alternating(mixed.shape))]
    for kernel, x in hard:
        assert script.in_units(kernel, x) <= worst(layer.tiles, kernel.weights.shape[1])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_spreads_as_the_matrices_say(kernel, value):
    """Never beyond its tiles: all other results keep their bits."""
    x = cases.picture(np.random.default_rng(2), kernel.shape)
    before, group = kernel(x), kernel.filters_of(3)
    for place in places(kernel.layer):
        changed = x.copy()
        changed[(*place, 3)] = value
        found, (seen, spread) = kernel(changed), kernel.seen_by(place)
        finite = np.isfinite(found[..., group])
        np.testing.assert_array_equal(finite.any(-1), ~spread)
        np.testing.assert_array_equal(finite.all(-1), ~spread)
        found[spread, group] = before[spread, group]
        np.testing.assert_array_equal(found, before)
        assert seen.any()
        assert not (seen & ~spread).any()


@each_filter
def test_inner_elements_of_a_tile_reach_all_of_its_results(layer):
    """And outer ones only the results at their edge; the first, if 0 is one of the points."""
    one = layer.tiles.filters[0]
    first, *inner, last = cases.reach(one).T
    assert np.all(inner)
    assert np.flatnonzero(last).tolist() == [one.results - 1]
    if one.tile in (5, 7):
        assert np.all(first)
    else:
        assert np.flatnonzero(first).tolist() == [0]


@pytest.mark.parametrize("huge", [1e6, 1e8])
def test_errors_beside_a_huge_element(kernel, huge):
    """Results that share a tile with it lose what the table says, others nothing."""
    limit = rounding(kernel.tiles).beside
    unit = U * huge * float(np.abs(kernel.weights).max())
    ones = np.ones(kernel.shape, np.float32)
    before, found = kernel(ones), []
    for place in places(kernel.layer):
        error, count = cases.beside(kernel, place, huge)
        found.append(count)
        assert error <= limit * unit
        x = ones.copy()
        x[(*place, 0)] = huge
        _, spread = kernel.seen_by(place)
        np.testing.assert_array_equal(kernel(x)[~spread], before[~spread])
    assert (max(found) > 0) == (limit > 0)


@pytest.mark.parametrize("layer", SOME, ids=str)
def test_transforms_overflow_where_their_growth_says(layer):
    weights = cases.single_taps(layer, 1) * np.float32(1e-12)
    kernel, direct = (Convolution(weights, how, 24) for how in (layer, layer.direct))
    for part, finite in ((0.99, True), (1.01, False)):
        x = cases.largest_transform(kernel, part * LARGEST / growth(layer.tiles))
        assert np.isfinite(direct(x)).all()
        assert np.isfinite(kernel(x)).all() == finite


def test_subnormal_data_are_not_lost(kernel):
    whole = np.random.default_rng(3).integers(-9999, 10000, kernel.shape)
    x = (whole * 2.0**-149).astype(np.float32)
    found, terms = kernel(x), kernel.weights[0].size
    bound = worst(kernel.tiles, kernel.weights.shape[1]) if kernel.tiles else terms
    sizes = kernel.unit(np.ones(1))
    assert np.abs(found - kernel.exact(x)).max() <= bound * U * TINY * sizes
    assert np.mean(found != 0) > 0.9


STEPS = [(1, 1), (2, 1), (3, 1), (1, 2), (1, 3), (2, 2), (4, 2), (2, 4)]
"""Strides and gaps."""

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17, 31)
"""Of windows."""


def chosen_for(taps: tuple[int, ...]) -> Iterator[Tiles]:
    """The tiles of all algorithms for windows of a size, with any steps."""
    rank = len(taps)
    for stride, gaps in STEPS:
        steps, pads = ((stride,) * rank, (gaps,) * rank), (0,) * (2 * rank)
        weights = np.zeros((1, 1, *taps), np.float32)
        ways = [algorithms_of(Conv(*steps, pads, 1, f32), weights, strict=False)]
        transposed = ConvTranspose(*steps, pads, (0,) * rank, 1, f32)
        ways.append(algorithms_of(transposed, weights, strict=False))
        yield from (way.tiles for way in itertools.chain(*ways) if way.tiles is not None)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_every_algorithm_that_may_be_chosen_has_limits(rank):
    """For windows of any size, strides and gaps, and each filter is one of those tested here."""
    found = {"direct"}
    for first, last in itertools.product(SIZES, repeat=2):
        for tiles in chosen_for((3, first, last)[-rank:]):
            assert rounding(tiles).mean < rounding(tiles).largest < 1e-3
            assert not isinstance(tiles, SpreadTiles) or not tiles.of_one_image.parts
            found |= {f"F({f.results}, {f.taps})" for f in tiles.filters}
    assert found == CONVOLUTIONS.keys()
    assert found == {layer.algorithm for layer in ALGORITHMS}


@pytest.mark.parametrize("factor", ["1/2", "4/3"])
def test_filters_at_other_points_mean_the_same(factor):
    """The page compares them."""
    layer = script.LayerAtPoints((3, 3), (4, 4), factor=script.Fraction(factor))
    assert layer.tiles.filters != square(3, 4).tiles.filters
    kernel = Convolution(cases.normal_weights(layer, 4), layer, 12)
    x = cases.picture(np.random.default_rng(4), kernel.shape)
    assert cases.errors(kernel(x), kernel.exact(x))[0] <= 1e-4


def test_the_page_has_the_limits():
    page = Path(script.__file__).parents[1] / "docs" / "accuracy.md"
    text = page.read_text(encoding="utf-8")
    assert script.INTRODUCTION + script.promised() + script.MEASURED in text
    assert text.count(script.TITLE) == 1


@cache
def direct_of(taps: int) -> Convolution:
    """A convolution of 16 channels whose models are below."""
    return Convolution(cases.normal_weights(square(taps), 16, 64), square(taps), 40)


@cache
def model_of(taps: int, accuracy: str) -> tw.Module:
    """A model of one node, with the weights of `direct_of`."""
    convolution = direct_of(taps)
    shape = (1, convolution.weights.shape[1], convolution.side, convolution.side)
    attributes = {"pads": [*convolution.layer.before, *convolution.layer.behind]}
    x, w = {"x": np.zeros(shape, np.float32)}, {"w": convolution.weights}
    case = Case("winograd", "model", "Conv", x, lambda *arrays: arrays[:2], w, attributes)
    return tw.compile(case.model(), cache=False, threads=1, accuracy=accuracy)


def run(module: tw.Module, x: np.ndarray) -> np.ndarray:
    """Y[y, x, o] for X[y, x, c]."""
    (found,) = module.run({"x": np.ascontiguousarray(x.transpose(2, 0, 1)[None])})
    return np.asarray(found)[0].transpose(1, 2, 0)


def chosen_tiles(module: tw.Module) -> list[Tiles]:
    ops = [node.op for node in module.graph.nodes]
    return [op.tiles for op in ops if isinstance(op, WinogradConv)]


@pytest.mark.parametrize("taps", [2, 3, 5])
def test_strict_models_have_the_errors_of_the_direct_algorithm(taps):
    direct, module = direct_of(taps), model_of(taps, "strict")
    assert not chosen_tiles(module)
    x = cases.picture(np.random.default_rng(6), direct.shape)
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
    x = cases.picture(np.random.default_rng(8), direct.shape)
    before, changed = run(module, x), x.copy()
    changed[17, 22, 5] = value
    found, (seen, _) = run(module, changed), direct.seen_by((17, 22))
    np.testing.assert_array_equal((found != before).any(2), seen)
    np.testing.assert_array_equal(np.isfinite(found).all(2), ~seen | np.isfinite(value))


def test_default_models_keep_elements_within_their_tiles():
    module = model_of(3, "default")
    layers = [Layer(tiles.taps, tiles.results) for tiles in chosen_tiles(module)]
    (layer,) = layers or [square(3)]  # where no tiles pay
    kernel = Convolution(direct_of(3).weights, layer, 40)
    x = cases.picture(np.random.default_rng(9), kernel.shape)
    largest, mean = cases.errors(run(module, x), kernel.exact(x))
    limits = rounding(layer.tiles)
    assert largest <= limits.largest
    assert mean <= limits.mean
    x[17, 22, 5] = np.nan
    np.testing.assert_array_equal(np.isnan(run(module, x)).all(2), kernel.seen_by((17, 22))[1])
