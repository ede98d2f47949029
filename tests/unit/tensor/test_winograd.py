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
    RESULTS,
    convolve_winograd,
    plain_weights,
    winograd_weights,
)
from tilewright.tensor.validate import validate
from tilewright.tensor.verify import verify


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


@given(
    space=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    pads=st.tuples(*[st.integers(1, 2)] * 4),
    results=st.sampled_from(RESULTS),
    seed=st.integers(0, 2**16),
)
def test_convolution(space: tuple[int, int], pads: tuple[int, ...], results: int, seed: int):
    w = Windows(space, (3, 3), (1, 1), (1, 1), pads)
    x, weights = numbers(seed, 1, *space, 2), numbers(seed + 1, 3, 2, 3, 3)
    transformed = winograd_weights(weights, results)
    data, kernel = placeholder("X", x.shape), placeholder("U", transformed.shape)
    program = verify(func("program", [data, kernel], [convolve_winograd(data, kernel, pads)]))
    validate(program)
    found = interpret(program, {"X": x, "U": transformed})["Y"]
    np.testing.assert_allclose(found, convolved(x, weights, w, 1), atol=1e-4)


@pytest.mark.parametrize("results", RESULTS)
def test_weights_can_be_taken_back(results):
    weights = numbers(1, 5, 4, 3, 3)
    transformed = winograd_weights(weights, results)
    assert transformed.shape == (results + 2, results + 2, 4, 5)
    assert transformed.dtype == np.float32
    np.testing.assert_allclose(plain_weights(transformed), weights, atol=1e-6)


def test_symbolic_space_keeps_its_size():
    h = size("h")
    x, u = placeholder("X", (1, h, 8, 2)), placeholder("U", (6, 6, 2, 3))
    y = convolve_winograd(x, u, (1, 1, 1, 1))
    assert y.shape[1] == h
    arrays = numbers(1, 1, 5, 8, 2), numbers(2, 3, 2, 3, 3)
    found = interpret(
        func("program", [x, u], [y]), {"X": arrays[0], "U": winograd_weights(arrays[1])}
    )["Y"]
    w = Windows((5, 8), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    np.testing.assert_allclose(found, convolved(*arrays, w, 1), atol=1e-4)
