"""Every ready program, scheduled by the draft and compiled, agrees with the interpreter.

Shapes are chosen to be awkward: primes, ones, remainders of every kind, several dtypes, one and two
threads, with and without constants that may be packed.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.tensor import library
from tilewright.tensor.interpret import interpret
from tilewright.testing.compare import assert_same
from tilewright.testing.inputs import random_inputs

PROGRAMS = {
    "matmul 7x13x5": (lambda: library.matmul(7, 13, 5), ("B",)),
    "matmul 1x40x9": (lambda: library.matmul(1, 40, 9), ("B",)),
    "matmul 13x1x4": (lambda: library.matmul(13, 1, 4), ("B",)),
    "matmul 6x16x1": (lambda: library.matmul(6, 16, 1), ("B",)),
    "matmul 26x33x17 epilogue": (lambda: library.matmul(26, 33, 17, bias=True, relu=True), ("B",)),
    "matmul 26x33x17 transposed": (lambda: library.matmul(26, 33, 17, transpose_b=True), ("B",)),
    "matmul f64": (lambda: library.matmul(11, 19, 7, tw.f64), ("B",)),
    "matmul f16": (lambda: library.matmul(11, 19, 7, tw.f16), ("B",)),
    "matmul bf16": (lambda: library.matmul(11, 19, 7, tw.bf16), ("B",)),
    "matmul i8": (lambda: library.matmul(11, 19, 7, tw.i8), ("B",)),
    "matmul i32": (lambda: library.matmul(11, 19, 7, tw.i32), ("B",)),
    "batched 3x(27x13x6)": (lambda: library.batched_matmul(3, 27, 13, 6), ()),
    "batched 2x(30x16x9)": (lambda: library.batched_matmul(2, 30, 16, 9), ()),
    "matvec": (lambda: library.matvec(13, 70), ("A",)),
    "outer_product": (lambda: library.outer_product(13, 9), ()),
    "conv1d": (lambda: library.conv1d(2, 3, 11, 5, 3, padding=1), ("W",)),
    "conv2d": (lambda: library.conv2d(1, 3, 7, 9, 5, 3, padding=1), ("W",)),
    "conv2d stride": (lambda: library.conv2d(1, 3, 9, 9, 4, 3, stride=2, padding=1), ("W",)),
    "conv2d groups": (lambda: library.conv2d(1, 4, 6, 6, 6, 3, groups=2, padding=1), ("W",)),
    "conv2d dilated": (lambda: library.conv2d(1, 2, 9, 9, 3, 3, dilation=2), ("W",)),
    "conv3d": (lambda: library.conv3d(1, 2, 4, 5, 5, 3, 3, padding=1), ("W",)),
    "depthwise": (lambda: library.depthwise_conv2d(1, 5, 7, 9, 3, padding=1), ("W",)),
    "transposed": (lambda: library.transposed_conv2d(1, 3, 4, 4, 2, 4, stride=2, padding=1), ()),
    "max_pool2d": (lambda: library.max_pool2d(1, 3, 8, 8, 2), ()),
    "average_pool2d": (lambda: library.average_pool2d(1, 3, 8, 8, 3), ()),
    "softmax 5x70": (lambda: library.softmax(5, 70), ()),
    "softmax 3x128": (lambda: library.softmax(3, 128), ()),
    "softmax 2x7": (lambda: library.softmax(2, 7), ()),
    "layernorm 5x77": (lambda: library.layernorm(5, 77), ()),
    "layernorm 4x128": (lambda: library.layernorm(4, 128), ()),
    "gelu 3x37": (lambda: library.gelu(3, 37), ()),
    "chain 3x37": (lambda: library.elementwise_chain(3, 37), ()),
    "row_sum": (lambda: library.row_sum(5, 131), ()),
    "row_max": (lambda: library.row_max(5, 131), ()),
    "column_sum": (lambda: library.column_sum(19, 45), ()),
    "total": (lambda: library.total(9, 40), ()),
    "cumulative_sum": (lambda: library.cumulative_sum(21), ()),
    "transpose": (lambda: library.transpose(13, 21), ()),
    "stencil": (lambda: library.stencil(9, 45), ()),
    "pad2d": (lambda: library.pad2d(5, 9, 2), ()),
    "broadcast_add": (lambda: library.broadcast_add(6, 43), ()),
}


pytestmark = pytest.mark.usefixtures("parallel_at_once")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_drafted_program_agrees_with_interpreter(name: str, threads: int) -> None:
    make, constants = PROGRAMS[name]
    func = make()
    arrays = random_inputs(func, np.random.default_rng(7))
    expected = interpret(func, arrays)
    fixed = {n: arrays[n] for n in constants}
    kernel = tw.build(func, threads=threads, constants=fixed)
    result = kernel(*(a for n, a in arrays.items() if n not in fixed))
    results = result if isinstance(result, tuple) else (result,)
    assert_same(dict(zip(expected, results, strict=True)), expected)
