"""NumPy checks convolutions and pooling over channels-last data, for windows of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.windows import Windows, convolved, transposed, windows, windows_of
from tilewright.dtypes import bf16, f16, f32, i8
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, func, placeholder, size
from tilewright.tensor.interpret import interpret
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.library.pool import (
    average_pool,
    global_average_pool,
    pool,
    with_partial_windows,
)
from tilewright.tensor.library.transposed import convolve_transposed
from tilewright.tensor.validate import validate
from tilewright.tensor.verify import verify

seeds = st.integers(0, 2**16)


def run(result: Tensor, inputs: list[Tensor], *arrays: np.ndarray) -> np.ndarray:
    program = verify(func("program", inputs, [result]))
    validate(program)
    names = (t.buffer.name for t in inputs)
    return interpret(program, dict(zip(names, arrays, strict=True)))[result.buffer.name]


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


@given(w=windows(), groups=st.sampled_from((1, 1, 2, 3)), per=st.integers(1, 2), seed=seeds)
def test_convolution(w: Windows, groups: int, per: int, seed: int):
    x = numbers(seed, 1, *w.space, groups * per)
    weights = numbers(seed + 1, groups * 2, per, *w.kernel)
    data, kernel = placeholder("X", x.shape), placeholder("W", weights.shape)
    y = convolve(data, kernel, *w.geometry, groups)
    assert np.array_equal(run(y, [data, kernel], x, weights), convolved(x, weights, w, groups))


@given(w=windows((2,)), seed=seeds)
def test_depthwise_convolution_sums_over_windows_only(w: Windows, seed: int):
    x, weights = numbers(seed, 2, *w.space, 3), numbers(seed + 1, 3, 1, *w.kernel)
    data, kernel = placeholder("X", x.shape), placeholder("W", weights.shape)
    y = convolve(data, kernel, *w.geometry, 3)
    assert np.array_equal(run(y, [data, kernel], x, weights), convolved(x, weights, w, 3))
    steps = [it for it in _block(y).iters if it.kind is tir.IterKind.REDUCE]
    assert len(steps) == sum(k > 1 for k in w.kernel)


def _block(tensor: Tensor) -> tir.Block:
    nest = tensor.nest
    while isinstance(nest, tir.For):
        nest = nest.body
    assert isinstance(nest, tir.Block)
    return nest


@given(w=windows(largest=4), data=st.data(), seed=seeds)
def test_transposed_convolution(w: Windows, data: st.DataObject, seed: int):
    extra = tuple(data.draw(st.integers(0, s - 1), label="extra") for s in w.strides)
    groups, per = data.draw(st.sampled_from((1, 1, 2))), data.draw(st.integers(1, 2))
    x = numbers(seed, 1, *w.space, groups * per)
    weights = numbers(seed + 1, groups * per, 2, *w.kernel)
    expected = transposed(x, weights, w, extra, groups)
    assume(min(expected.shape) > 0)
    given_x, kernel = placeholder("X", x.shape), placeholder("W", weights.shape)
    y = convolve_transposed(given_x, kernel, *w.geometry, extra, groups)
    assert np.array_equal(run(y, [given_x, kernel], x, weights), expected)


@given(w=windows(), fold=st.sampled_from((tir.Fold.MAX, tir.Fold.MIN, tir.Fold.ADD)), seed=seeds)
def test_pool(w: Windows, fold: tir.Fold, seed: int):
    x = numbers(seed, 2, *w.space, 2)
    numpy, fill = {
        tir.Fold.MAX: (np.max, -np.inf),
        tir.Fold.MIN: (np.min, np.inf),
        tir.Fold.ADD: (np.sum, 0),
    }[fold]
    data = placeholder("X", x.shape)
    y = pool(data, fold, w.kernel, *w.geometry)
    expected = numpy(windows_of(x, w, fill), axis=tuple(range(-w.rank, 0)))
    assert np.array_equal(run(y, [data], x), expected)


@given(w=windows(), seed=seeds, counts_border=st.booleans(), partial=st.booleans())
def test_average_pool(w: Windows, seed: int, counts_border: bool, partial: bool):
    x = numbers(seed, 1, *w.space, 2)
    pads = with_partial_windows(w.space, w.kernel, *w.geometry) if partial else w.pads
    whole = Windows(w.space, w.kernel, w.strides, w.dilations, pads)
    border = w.pads if counts_border else (0,) * (2 * w.rank)
    counted = _counts(whole, border)
    assume(counted.min() > 0)
    data = placeholder("X", x.shape)
    y = average_pool(
        data, w.kernel, w.strides, w.dilations, pads, count_border=w.pads if counts_border else None
    )
    total = windows_of(x, whole, 0).sum(axis=tuple(range(-w.rank, 0)))
    np.testing.assert_allclose(run(y, [data], x), total / counted[..., None], rtol=1e-6)


def _counts(w: Windows, border: tuple[int, ...]) -> np.ndarray:
    """How many elements of each window lie in space with this border, one window at a time."""
    result = np.zeros(w.counts(), int)
    for at in np.ndindex(*w.counts()):
        for r in np.ndindex(*w.kernel):
            inside = True
            for d, (a, b) in enumerate(zip(at, r, strict=True)):
                place = a * w.strides[d] + b * w.dilations[d] - w.pads[d]
                inside &= -border[d] <= place < w.space[d] + border[w.rank + d]
            result[at] += inside
    return result[None]


@given(w=windows())
def test_partial_windows_begin_inside(w: Windows):
    pads = with_partial_windows(w.space, w.kernel, *w.geometry)
    assert pads[: w.rank] == w.pads[: w.rank]
    for d, count in enumerate(w.counts(pads)):
        wide = w.space[d] + w.pads[d] + w.pads[w.rank + d]
        ceil = -(-(wide - w.reach[d]) // w.strides[d]) + 1
        last = (ceil - 1) * w.strides[d] < w.space[d] + w.pads[d]
        assert count == (ceil if last else ceil - 1)


def test_global_average_pool_of_symbolic_space():
    h, w = size("h"), size("w")
    data = placeholder("X", (2, h, w, 3))
    x = numbers(3, 2, 5, 4, 3)
    found = run(global_average_pool(data), [data], x)
    np.testing.assert_allclose(found, x.mean((1, 2), keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("dtype", [f16, bf16, i8])
def test_narrow_types_are_summed_up_in_32_bits(dtype):
    x, w = placeholder("X", (1, 4, 4, 2), dtype), placeholder("W", (3, 2, 3, 3), dtype)
    assert convolve(x, w).dtype.bits == 32
    assert convolve_transposed(x, placeholder("V", (2, 3, 3, 3), dtype)).dtype.bits == 32
    assert pool(x, tir.Fold.ADD, (2, 2)).dtype.bits == 32
    assert pool(x, tir.Fold.MAX, (2, 2)).dtype == (i8 if dtype is i8 else f32)


def test_same_padding_keeps_a_symbolic_size():
    h = size("h")
    x, w = placeholder("X", (1, h, h, 2)), placeholder("W", (3, 2, 3, 3))
    assert convolve(x, w, pads=(1, 1, 1, 1)).shape[1:3] == (h, h)


@pytest.mark.parametrize(
    ("weights", "groups", "options"),
    [
        ((4, 2, 3, 3), 1, {}),
        ((3, 2, 3, 3), 2, {}),
        ((4, 4, 3), 1, {}),
        ((4, 4, 3, 3), 1, {"strides": (1,)}),
        ((4, 4, 3, 3), 1, {"strides": (0, 1)}),
        ((4, 4, 3, 3), 1, {"pads": (-1, 0, 0, 0)}),
        ((size("o"), 4, 3, 3), 1, {}),
    ],
)
def test_refused(weights, groups, options):
    x, w = placeholder("X", (1, 6, 6, 4)), placeholder("W", weights)
    with pytest.raises(ValueError, match=r"fit|more|known"):
        convolve(x, w, groups=groups, **options)
