"""Winograd's convolutions mean what a direct convolution does, up to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.windows import Windows, convolved
from tilewright.tensor.build import func, placeholder, size
from tilewright.tensor.interpret import interpret
from tilewright.tensor.library.winograd import (
    Tiles,
    convolve_winograd,
    plain_weights,
    winograd_weights,
)
from tilewright.tensor.validate import validate
from tilewright.tensor.verify import verify


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def tiles_for(rank: int, taps: int, results: int) -> Tiles:
    """Tiles along the last two dimensions."""
    return Tiles((taps,) * rank, (0,) * (rank - 2) + (results,) * 2)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tiles, Windows]:
    """Tiles and windows: two or three dimensions, the first of three with strides and gaps."""
    rank = draw(st.sampled_from((2, 2, 3)))
    plain = rank - 2
    taps = (*([draw(st.integers(1, 3))] * plain), *draw(st.tuples(*[st.integers(2, 5)] * 2)))
    results = (*([0] * plain), *draw(st.tuples(*[st.sampled_from((1, 2, 4, 6))] * 2)))
    strides = (*([draw(st.integers(1, 2))] * plain), 1, 1)
    dilations = (*([draw(st.integers(1, 2))] * plain), 1, 1)
    pads = tuple(draw(st.integers(0, 2)) for _ in range(2 * rank))
    reach = [(t - 1) * d + 1 for t, d in zip(taps, dilations, strict=True)]
    least = [max(1, r - pads[d] - pads[rank + d]) for d, r in enumerate(reach)]
    space = tuple(draw(st.integers(n, n + 6)) for n in least)
    return Tiles(taps, results), Windows(space, taps, strides, dilations, pads)


@given(case=cases(), groups=st.sampled_from((1, 1, 2, 3)), seed=st.integers(0, 2**16))
def test_convolution(case: tuple[Tiles, Windows], groups: int, seed: int):
    tiles, w = case
    x = numbers(seed, 1, *w.space, 2 * groups)
    weights = numbers(seed + 1, 3 * groups, 2, *w.kernel)
    transformed = winograd_weights(weights, tiles)
    data, kernel = placeholder("X", x.shape), placeholder("U", transformed.shape)
    y = convolve_winograd(data, kernel, tiles, w.pads, w.strides, w.dilations, groups)
    program = verify(func("program", [data, kernel], [y]))
    validate(program)
    found = interpret(program, {"X": x, "U": transformed})["Y"]
    np.testing.assert_allclose(found, convolved(x, weights, w, groups), atol=1e-3)


@pytest.mark.parametrize("results", [2, 4, 6])
def test_weights_can_be_taken_back(results):
    for rank, taps in ((2, 3), (3, 3), (2, 2)):
        weights, tiles = numbers(1, 5, 4, *[taps] * rank), tiles_for(rank, taps, results)
        transformed = winograd_weights(weights, tiles)
        size = results + taps - 1
        assert transformed.shape == (size, size, *[taps] * (rank - 2), 4, 5)
        assert transformed.dtype == np.float32
        np.testing.assert_allclose(plain_weights(transformed, tiles), weights, atol=1e-6)


@pytest.mark.parametrize("results", [(4,), (4, 4, 4), (0, 4)])
def test_two_dimensions_are_tiled(results):
    with pytest.raises(ValueError, match="do not fit"):
        Tiles((3,) * len(results), results)


def test_tiled_dimensions_have_no_strides():
    x, u = placeholder("X", (1, 8, 8, 2)), placeholder("U", (6, 6, 2, 3))
    with pytest.raises(ValueError, match="neither strides nor gaps"):
        convolve_winograd(x, u, tiles_for(2, 3, 4), strides=(2, 2))


def test_symbolic_space_keeps_its_size():
    h, tiles = size("h"), tiles_for(2, 3, 4)
    x, u = placeholder("X", (1, h, 8, 2)), placeholder("U", (6, 6, 2, 3))
    y = convolve_winograd(x, u, tiles, (1, 1, 1, 1))
    assert y.shape[1] == h
    arrays = numbers(1, 1, 5, 8, 2), numbers(2, 3, 2, 3, 3)
    program = func("program", [x, u], [y])
    found = interpret(program, {"X": arrays[0], "U": winograd_weights(arrays[1], tiles)})["Y"]
    w = Windows((5, 8), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    np.testing.assert_allclose(found, convolved(*arrays, w, 1), atol=1e-4)
