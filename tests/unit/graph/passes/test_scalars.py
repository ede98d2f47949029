"""Constants of one element become literals."""

from __future__ import annotations

import numpy as np

from tests.rewriting import keeps, picture, rewritten
from tilewright.dtypes import f16, f32
from tilewright.graph import Builder
from tilewright.graph.passes.scalars import embed_scalars
from tilewright.tensor import ir as tir

N = tir.Var("n")


def test_scalars_become_literals(golden):
    b = Builder("scalars")
    x = b.input("x", f32, (N, 3))
    half = b.constant(np.float32(0.5), "half")
    one = b.constant(np.ones((1, 1), np.float32), "one")
    bias = b.constant(np.arange(3, dtype=np.float32), "bias")
    y = b.map(lambda h, v, o, w: h * v + o * w, half, x, one, bias)
    assert golden == picture(b.graph([y], ["y"]), embed_scalars)


def test_a_scalar_that_gives_the_result_its_rank_stays():
    b = Builder("rank")
    x = b.input("x", f32, (3,))
    graph = b.graph([b.map(lambda v, w: v * w, x, b.constant(np.full((1, 1), 2, np.float32)))])
    assert keeps(graph, embed_scalars)
    (out,) = rewritten(graph, embed_scalars).outputs
    assert out.rank == 2


def test_of_several_only_those_without_a_say_in_the_shape_go():
    b = Builder("several")
    x = b.input("x", f32, (3,))
    narrow, wide = (b.constant(np.full(s, 2, np.float32)) for s in ((), (1, 1)))
    graph = b.graph([b.map(lambda v, p, q: v * p - q, x, narrow, wide)])
    (node,) = rewritten(graph, embed_scalars).nodes
    assert len(node.inputs) == 2
    assert node.output.rank == 2


def test_scalars_that_are_inputs_and_longer_constants_stay():
    b = Builder("data")
    x, s = b.input("x", f32, (3,)), b.input("s", f32, ())
    pair = b.constant(np.ones(3, np.float32))
    graph = b.graph([b.map(lambda v, p, q: v * p + q, x, s, pair)])
    assert keeps(graph, embed_scalars)


def test_narrow_floats_are_literals_of_the_type_that_computes():
    b = Builder("narrow")
    x = b.input("x", f16, (3,))
    third = b.constant(np.float16(1 / 3))
    (node,) = rewritten(b.graph([b.map(lambda v, c: v * c, x, third)]), embed_scalars).nodes
    assert node.output.dtype == f16
    assert str(node.op) == "map(body=arg0 * 0.333251953125, dtype=f16)"
