"""Windows over channels-first data that the draft has scheduled compute what NumPy says.

Lines are short or long, windows of any size, step and gaps, with borders or without; the type is
narrow or wide; one thread or two; the batch may be unknown. Other ways than the drafted one have
a test of their own (`test_window_spaces.py`).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from tests.examples import examples
from tests.levels import targets
from tests.windows import Windows, convolved, windows, windows_of
from tilewright.dtypes import DType, f32, f64, i8
from tilewright.model.stored import stored_program
from tilewright.schedule.draft import draft
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute, func, placeholder, size
from tilewright.tensor.layout import Reorder
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.library.pool import pool

EXAMPLES = 20
TYPES = {f32: np.float32, f64: np.float64, i8: np.int8}


pytestmark = pytest.mark.usefixtures("parallel_at_once")


@st.composite
def line_windows(draw: st.DrawFn) -> Windows:
    """Windows over space whose lines may be longer than several vectors."""
    w = draw(windows(largest=15))
    longer = draw(st.sampled_from((0, 0, 20, 37, 150)), label="longer")
    many = [max(0, 2 - n) * s for n, s in zip(w.counts(), w.strides, strict=True)]  # they slide
    space = [size + more for size, more in zip(w.space, many, strict=True)]
    space[-1] += longer
    if w.rank == 2:
        space[0] += draw(st.sampled_from((0, 0, 17, 40)), label="taller")
    bare = draw(st.sampled_from((False, False, True)), label="no border")
    border = (0,) * (2 * w.rank) if bare else w.pads
    if bare:
        space = [n + w.pads[d] + w.pads[w.rank + d] for d, n in enumerate(space)]
    return Windows(tuple(space), w.kernel, w.strides, w.dilations, border)


def numbers(dtype: DType, seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(TYPES[dtype])


def first(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(array, -1, 1))


def check(
    data: st.DataObject,
    inputs: list[Tensor],
    y: Tensor,
    arrays: list[np.ndarray],
    expected: np.ndarray,
) -> None:
    """Data and result channels first; everything scheduled, and compared with what is expected."""
    rank = len(y.shape)
    z = compute("Z", y.shape, lambda *at: y[at] * 2 + 1) if data.draw(st.booleans()) else y
    expected = expected * 2 + 1 if z is not y else expected
    nchw = (Reorder((0, rank - 1, *range(1, rank - 1))),)
    program = stored_program(func("f", inputs, [z]), {"X": nchw, z.buffer.name: nchw})
    target = data.draw(targets(), label="target")
    threads = data.draw(st.sampled_from((1, 2)), label="threads")
    assert draft(program, target, threads).remarks == []
    kernel = tw.build(program, target=target, threads=threads)
    found = kernel(first(arrays[0]), *arrays[1:])
    np.testing.assert_array_equal(found, first(expected))


@examples(EXAMPLES)
@given(w=line_windows(), dtype=st.sampled_from((f32, f32, f64, i8)), data=st.data())
def test_depthwise_convolution(w: Windows, dtype: DType, data: st.DataObject):
    channels, each = data.draw(st.sampled_from((1, 2, 5, 9))), data.draw(st.sampled_from((1, 1, 2)))
    assume(max(w.kernel) > 1)
    x = numbers(dtype, 1, 2, *w.space, channels)
    weights = numbers(dtype, 2, channels * each, 1, *w.kernel)
    n = size("n") if data.draw(st.booleans(), label="symbolic batch") else 2
    inputs = [placeholder("X", (n, *x.shape[1:]), dtype), placeholder("W", weights.shape, dtype)]
    y = convolve(*inputs, *w.geometry, channels)
    check(data, inputs, y, [x, weights], convolved(x, weights, w, channels))


@examples(EXAMPLES)
@given(w=line_windows(), data=st.data())
def test_pooling(w: Windows, data: st.DataObject):
    x = numbers(f32, 3, 2, *w.space, data.draw(st.sampled_from((1, 3, 8))))
    axes = tuple(range(-w.rank, 0))
    assume(windows_of(np.ones_like(x), w, 0).sum(axis=axes).min() > 0)
    image = placeholder("X", x.shape)
    y = pool(image, tir.Fold.MAX, w.kernel, *w.geometry)
    check(data, [image], y, [x], windows_of(x, w, -np.inf).max(axis=axes))
