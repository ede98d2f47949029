"""The work of kernels: multiply-adds and bytes, also of symbolic sizes."""

from __future__ import annotations

import pytest

from tilewright.dtypes import f32, i64
from tilewright.graph.ir import Node, TensorType, Value
from tilewright.graph.ops import Contract, Gather, axis, picked
from tilewright.graph.ops.attend import Attend
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.ops.winograd import WinogradConv, WinogradTransposed
from tilewright.graph.sizes import as_shape, evaluate_size
from tilewright.model.work import flops_of, moved_bytes
from tilewright.tensor import ir as tir

N = tir.Var("n")


def value(*shape, dtype=f32):
    return Value("v", TensorType(dtype, as_shape(shape)))


def node(op, *inputs):
    made = op.infer([v.type for v in inputs])
    return Node(op, inputs, tuple(Value("out", kind) for kind in made))


WINDOW = {"strides": (2, 2), "dilations": (1, 1), "pads": (1, 1, 1, 1), "dtype": f32}

CASES = {
    "product": (node(Contract("mk", "kn", "mn", f32), value(N, 8), value(8, 5)), 7 * 8 * 5),
    "batched": (node(Contract("bmk", "bkn", "bmn", f32), value(3, N, 8), value(3, 8, 5)), 840),
    "conv": (
        node(Conv(**WINDOW, groups=2), value(N, 8, 8, 4), value(6, 2, 3, 3)),
        7 * 4 * 4 * 6 * 2 * 9,
    ),
    "transposed": (
        node(ConvTranspose(**WINDOW, extra=(0, 0), groups=1), value(N, 8, 8, 4), value(4, 6, 3, 3)),
        7 * 8 * 8 * 4 * 6 * 9,
    ),
    "tiles": (
        node(
            WinogradConv((3, 3), (4, 4), (1, 1), (1, 1), (1, 1, 1, 1), 2, f32),
            value(N, 8, 8, 4),
            value(6, 6, 2, 6),
        ),
        7 * 8 * 8 * 6 * 2 * 9,
    ),
    "transposed tiles": (
        node(
            WinogradTransposed((4, 4), (2, 2), (2, 2), (1, 1, 1, 1), (0, 0), 1, f32),
            value(N, 8, 8, 4),
            value(2, 2, 3, 3, 4, 6),
        ),
        7 * 8 * 8 * 4 * 6 * 16,
    ),
    "attention": (
        node(Attend(("bhsd",) * 4, 1.0), *(value(2, 4, s, 16) for s in (N, 9, 9))),
        2 * 4 * 7 * 9 * (16 + 16),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_flops_are_two_for_each_multiply_add(case):
    op, multiply_adds = case
    assert evaluate_size(flops_of([op]), {N: 7}) == 2 * multiply_adds


def test_bytes_are_those_of_each_value_once():
    a, b = value(N, 8), value(8, 5)
    product = node(Contract("mk", "kn", "mn", f32), a, b)
    moved = moved_bytes([product], [a, b, a, product.output])
    assert evaluate_size(moved, {N: 7}) == 4 * (7 * 8 + 8 * 5 + 7 * 5)


def test_of_a_table_what_is_looked_up_counts():
    table, ids = value(1000, 16), value(N, dtype=i64)
    lookup = node(Gather((N, tir.Const(16)), ((1, (axis(0),)),), (picked(0), axis(1))), table, ids)
    moved = moved_bytes([lookup], [table, ids, lookup.output])
    assert evaluate_size(moved, {N: 7}) == 2 * 4 * 7 * 16 + 8 * 7
