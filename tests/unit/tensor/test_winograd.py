"""Winograd's convolutions mean what a direct convolution does, up to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.windows import Windows, convolved
from tilewright.dtypes import f32
from tilewright.graph.ops.window import ConvTranspose
from tilewright.tensor.build import func, placeholder, size
from tilewright.tensor.interpret import interpret
from tilewright.tensor.library.tile_weights import (
    plain_spread_weights,
    plain_weights,
    spread_weights,
    winograd_weights,
)
from tilewright.tensor.library.tiles import SpreadTiles, Tiles
from tilewright.tensor.library.winograd import convolve_spread, convolve_winograd
from tilewright.tensor.validate import validate
from tilewright.tensor.verify import verify


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def tiles_for(rank: int, taps: int, results: int) -> Tiles:
    """Tiles along the last two dimensions."""
    return Tiles((taps,) * rank, (0,) * (rank - 2) + (results,) * 2)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tiles, Windows]:
    """Tiles along the last one or two of up to three dimensions; strides or gaps anywhere."""
    rank = draw(st.sampled_from((1, 2, 2, 2, 3)))
    tiled = draw(st.integers(1, min(rank, 2)))
    plain = rank - tiled
    sizes = (1, 2, 3, 5, 7, 9) if rank == 1 else (1, 2, 3, 3, 4)
    taps = tuple(draw(st.sampled_from(sizes if d >= plain else (1, 2, 3))) for d in range(rank))
    results = tuple(draw(st.sampled_from((1, 2, 3, 4))) if d >= plain else 0 for d in range(rank))
    steps = [draw(st.sampled_from(((1, 1), (2, 1), (1, 2), (2, 2), (4, 2), (3, 1)))) for _ in taps]
    strides, dilations = (tuple(step[k] for step in steps) for k in (0, 1))
    pads = tuple(draw(st.integers(0, 2)) for _ in range(2 * rank))
    reach = [(t - 1) * d + 1 for t, d in zip(taps, dilations, strict=True)]
    least = [max(1, r - pads[d] - pads[rank + d]) for d, r in enumerate(reach)]
    space = tuple(draw(st.integers(n, n + (6 if rank < 3 else 3))) for n in least)
    return Tiles(taps, results, strides, dilations), Windows(space, taps, strides, dilations, pads)


@examples(12)
@given(case=cases(), groups=st.sampled_from((1, 1, 2, 3)), seed=st.integers(0, 2**16))
def test_convolution(case: tuple[Tiles, Windows], groups: int, seed: int):
    tiles, w = case
    x = numbers(seed, 1, *w.space, 2 * groups)
    weights = numbers(seed + 1, 3 * groups, 2, *w.kernel)
    transformed = winograd_weights(weights, tiles)
    data, kernel = placeholder("X", x.shape), placeholder("U", transformed.shape)
    y = convolve_winograd(data, kernel, tiles, w.pads, groups)
    program = verify(func("program", [data, kernel], [y]))
    validate(program)
    found = interpret(program, {"X": x, "U": transformed})["Y"]
    np.testing.assert_allclose(found, convolved(x, weights, w, groups), atol=1e-3)


def test_long_windows_are_cut():
    tiles = Tiles((7, 7), (3, 2), (1, 1), (1, 2))
    assert [(line.taps, line.pieces) for line in tiles.lines.values()] == [(4, 2), (4, 2)]
    x, weights = numbers(1, 1, 8, 15, 2), numbers(2, 3, 2, 7, 7)
    transformed = winograd_weights(weights, tiles)
    assert transformed.shape == (6, 5, 2, 2, 2, 3)
    data, kernel = placeholder("X", x.shape), placeholder("U", transformed.shape)
    program = func("program", [data, kernel], [convolve_winograd(data, kernel, tiles)])
    found = interpret(program, {"X": x, "U": transformed})["Y"]
    w = Windows((8, 15), (7, 7), (1, 1), (1, 2), (0, 0, 0, 0))
    np.testing.assert_allclose(found, convolved(x, weights, w, 1), atol=1e-3)


@pytest.mark.parametrize("results", [2, 4, 6])
def test_weights_can_be_taken_back(results):
    for rank, taps in ((2, 3), (3, 3), (2, 2)):
        weights, tiles = numbers(1, 5, 4, *[taps] * rank), tiles_for(rank, taps, results)
        transformed = winograd_weights(weights, tiles)
        size = results + taps - 1
        assert transformed.shape == (size, size, *[taps] * (rank - 2), 4, 5)
        assert transformed.dtype == np.float32
        np.testing.assert_allclose(plain_weights(transformed, tiles), weights, atol=1e-6)


@given(case=cases(), seed=st.integers(0, 2**16))
def test_weights_of_all_geometries_can_be_taken_back(case: tuple[Tiles, Windows], seed: int):
    tiles, w = case
    weights = numbers(seed, 3, 2, *w.kernel)
    transformed = winograd_weights(weights, tiles)
    assert transformed.shape[: len(tiles.tiled)] == tuple(f.tile for f in tiles.filters)
    np.testing.assert_allclose(plain_weights(transformed, tiles), weights, atol=1e-5)


@pytest.mark.parametrize("results", [(4, 4, 4), (0, 0), (4, 4)])
def test_tiles_fit_windows(results):
    with pytest.raises(ValueError, match="do not fit"):
        Tiles((3, 3, 3) if len(results) == 2 and any(results) else (3,) * len(results), results)


def test_stride_and_gaps_without_a_common_factor_are_refused():
    assert Tiles((3,), (4,), (4,), (2,)).lines[0].phases == 2
    with pytest.raises(ValueError, match="no tiles for a stride of 2 with gaps of 3"):
        Tiles((3, 3), (4, 4), (2, 1), (3, 1))


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 3), (4, 2), (3, 1)])
@pytest.mark.parametrize("height", [5, 8, 9, 13])
def test_symbolic_space_keeps_its_size(stride, dilation, height):
    h, tiles = size("h"), Tiles((3, 3), (4, 4), (stride, 1), (dilation, 1))
    arrays = numbers(1, 1, height, 8, 2), numbers(2, 3, 2, 3, 3)
    transformed = winograd_weights(arrays[1], tiles)
    x, u = placeholder("X", (1, h, 8, 2)), placeholder("U", transformed.shape)
    program = func("program", [x, u], [convolve_winograd(x, u, tiles, (1, 1, 1, 1))])
    found = interpret(program, {"X": arrays[0], "U": transformed})["Y"]
    w = Windows((height, 8), (3, 3), (stride, 1), (dilation, 1), (1, 1, 1, 1))
    np.testing.assert_allclose(found, convolved(*arrays, w, 1), atol=1e-4)


@st.composite
def spread_cases(draw: st.DrawFn) -> tuple[SpreadTiles, tuple[int, ...], tuple[int, ...]]:
    """Tiles of a transposed convolution in one or two dimensions, space, results cut off after."""
    rank = draw(st.integers(1, 2))
    taps = tuple(draw(st.integers(1, 6)) for _ in range(rank))
    strides = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    results = tuple(draw(st.sampled_from((1, 2, 3, 4))) for _ in range(rank))
    before = tuple(draw(st.integers(0, min(2, t - 1))) for t in taps)
    tiles = SpreadTiles(taps, results, strides, (), before)
    sizes = zip(taps, before, strict=True)
    after = tuple(draw(st.integers(-2, min(2, t - b - 1))) for t, b in sizes)
    return tiles, tuple(draw(st.integers(1, 7)) for _ in range(rank)), after


@examples(4)
@given(case=spread_cases(), groups=st.sampled_from((1, 1, 2)), data=st.data())
def test_transposed_convolution(case, groups: int, data: st.DataObject):
    tiles, space, after = case
    x, weights = numbers(1, 2, *space, 2 * groups), numbers(2, 2 * groups, 3, *tiles.taps)
    transformed = spread_weights(weights, tiles, groups)
    np.testing.assert_allclose(plain_spread_weights(transformed, tiles, groups), weights, atol=1e-5)
    first = size("h") if data.draw(st.booleans(), label="symbolic") else space[0]
    shape = (2, first, *space[1:], x.shape[-1])
    source, kernel = placeholder("X", shape), placeholder("U", transformed.shape)
    y = convolve_spread(source, kernel, tiles, after, groups)
    program = verify(func("program", [source, kernel], [y]))
    validate(program)
    found = interpret(program, {"X": x, "U": transformed})["Y"]
    extra, ones = tuple(max(0, -a) for a in after), (1,) * len(space)
    pads = (*tiles.before, *(max(0, a) for a in after))
    plain = ConvTranspose(tiles.strides, ones, pads, extra, groups, f32)
    (expected,) = plain.evaluate([x, weights], lambda _: 0)
    np.testing.assert_allclose(found, expected, atol=1e-3)
