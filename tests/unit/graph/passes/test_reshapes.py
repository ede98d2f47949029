"""Reshapes move behind maps and reductions, towards the shape of heavy work."""

from __future__ import annotations

import numpy as np

from tests.rewriting import keeps, operators, picture, rewritten
from tilewright.dtypes import f32
from tilewright.graph import Builder, Value
from tilewright.graph.passes.reshapes import common_tail, sink_reshapes
from tilewright.graph.sizes import as_shape
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call

BATCH, SEQ = tir.Var("batch"), tir.Var("seq")
ROWS = (BATCH, SEQ, 4)


def dense(b: Builder, x: Value, width: int = 4) -> Value:
    w = np.random.default_rng(width).uniform(-1, 1, (4, width)).astype(np.float32)
    return b.matmul(x, b.constant(w, "w"))


def bias(b: Builder, *shape: int) -> Value:
    return b.constant(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), "bias")


def test_maps_behind_a_product_are_flat_like_it(golden):
    b = Builder("mlp")
    x = b.input("x", f32, ROWS)
    hidden = b.map(lambda v, c: v + c, dense(b, x), bias(b, 4))
    active = b.map(lambda v: call("tanh", v), hidden)
    assert golden == picture(b.graph([dense(b, active, 3)], ["y"]), sink_reshapes)


def test_residual_operands_become_flat():
    b = Builder("residual")
    x = b.input("x", f32, ROWS)
    after = rewritten(b.graph([b.map(lambda p, q: p + q, dense(b, x), x)]), sink_reshapes)
    assert [node.op.name for node in after.nodes] == ["reshape", "contract", "map", "reshape"]


def test_operands_with_leading_ones_lose_them():
    b = Builder("ones")
    x = b.input("x", f32, ROWS)
    after = rewritten(
        b.graph([b.map(lambda v, c: v + c, dense(b, x), bias(b, 1, 1, 4))]), sink_reshapes
    )
    assert [node.op.name for node in after.nodes] == ["reshape", "contract", "map", "reshape"]


def test_an_operand_that_differs_between_samples_holds_the_map():
    """`[batch, 1, 4]` is no operand of `[batch·seq, 4]`."""
    b = Builder("samples")
    x, per_sample = b.input("x", f32, ROWS), b.input("s", f32, (BATCH, 1, 4))
    graph = b.graph([b.map(lambda v, c: v * c, dense(b, x), per_sample)])
    assert keeps(graph, sink_reshapes)


def test_a_row_of_another_length_holds_the_map():
    b = Builder("positions")
    x, table = b.input("x", f32, ROWS), b.input("t", f32, (SEQ, 4))
    assert keeps(b.graph([b.map(lambda v, c: v + c, dense(b, x), table)]), sink_reshapes)


def test_a_constant_is_cut_like_the_dimensions_it_has():
    """The groups of a product become channels, and the bias of channels has the shape of groups."""
    b = Builder("groups")
    x = b.input("x", f32, (5, 2, 3))
    product = b.contract("mgk", "gnk", "mgn", x, bias(b, 2, 4, 3))
    y = b.map(lambda v, c: v + c, b.reshape(product, (5, 8)), bias(b, 1, 8))
    after = rewritten(b.graph([y]), sink_reshapes)
    assert [node.op.name for node in after.nodes] == ["contract", "map", "reshape"]
    assert after.nodes[1].inputs[1].shape == as_shape((1, 2, 4))


def test_of_two_reshapes_the_last_one_counts():
    b = Builder("two")
    x = b.input("x", f32, (2, 6))
    twice = b.reshape(b.reshape(x, (3, 4)), (4, 3))
    again = b.reshape(b.reshape(x, (12,)), (2, 6))
    after = rewritten(b.graph([twice, again]), sink_reshapes)
    assert operators(after) == ["reshape(shape=[4, 3])"]
    assert after.outputs[1] is after.inputs[0]


def test_of_light_work_the_shape_with_fewer_dimensions_is_preferred():
    """One way only: a map never moves back to more dimensions."""
    b = Builder("light")
    x = b.input("x", f32, (2, 3, 4))
    flat, deep = b.reshape(x, (6, 4)), b.reshape(b.input("y", f32, (6, 4)), (2, 3, 4))
    down = b.graph([b.map(lambda v: v * v, deep)])
    assert [node.op.name for node in rewritten(down, sink_reshapes).nodes] == ["map", "reshape"]
    up = b.graph([b.map(lambda p, q: p * q, flat, b.input("z", f32, (6, 4)))])
    assert keeps(up, sink_reshapes)


def test_sums_over_kept_dimensions_become_flat(golden):
    b = Builder("sums")
    x = b.input("x", f32, ROWS)
    total = b.reduce(tir.Fold.ADD, dense(b, x), (2,))
    assert golden == picture(b.graph([total], ["total"]), sink_reshapes)


def test_sums_over_dimensions_that_were_joined_stay():
    b = Builder("joined")
    x = b.input("x", f32, ROWS)
    assert keeps(b.graph([b.reduce(tir.Fold.ADD, dense(b, x), (1,))]), sink_reshapes)


def test_the_tail_that_two_shapes_share():
    assert common_tail(as_shape((BATCH * SEQ, 4)), as_shape(ROWS)) == 1
    assert common_tail(as_shape((BATCH, SEQ)), as_shape((3, BATCH, SEQ))) == 2
    assert common_tail(as_shape((SEQ, BATCH)), as_shape((BATCH, SEQ))) == 0
