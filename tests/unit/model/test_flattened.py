"""Kernels on tensors of many dimensions: neighbours that are walked together are one."""

from __future__ import annotations

import numpy as np

from tests.laid_out import compiled
from tilewright.dtypes import f32
from tilewright.graph import Builder, interpret
from tilewright.graph.sizes import fixed
from tilewright.model.flattened import MAX_DIMS, flattened
from tilewright.tensor import ir as tir

SIZES = [tir.Var(f"n{k}") for k in range(12)]
SHAPE = (2, 1, 3, 1, 1, 2, 1, 1, 3, 1, 2, 1)


def ranks(nodes) -> list[int]:
    new, _ = flattened(nodes)
    return [node.output.rank for node in new]


def test_maps_have_one_dimension():
    b = Builder("map")
    x = b.input("x", f32, SIZES)
    graph = b.graph([b.map(lambda v, w: v + w, x, b.map(lambda v: v * 2.0, x))])
    assert set(ranks(graph.nodes)) == {1}
    feeds = {"x": np.random.default_rng(0).standard_normal(SHAPE, np.float32)}
    np.testing.assert_array_equal(compiled(graph)[0].run(feeds), interpret(graph, feeds))


def test_folds_and_what_is_repeated_keep_their_dimensions_apart():
    b = Builder("fold")
    x = b.input("x", f32, SIZES)
    z = b.input("z", f32, (1, SIZES[10], 1))
    total = b.reduce(tir.Fold.ADD, x, (2, 3, 4, 8))
    graph = b.graph([b.map(lambda v, w, u: v - w * u, x, total, z)])
    (fold, last) = flattened(graph.nodes)[0]
    assert fold.op.axes == (1, 3)
    # 0-1, 2-4 folded, 5-7, 8 folded, 9, 10 in which z is long, 11
    assert [v.rank for v in last.inputs] == [7, 7, 7]
    assert [fixed(d) for d in last.inputs[1].shape] == [None, 1, None, 1, None, None, None]
    rng = np.random.default_rng(1)
    feeds = {"x": rng.standard_normal(SHAPE, np.float32)}
    feeds["z"] = rng.standard_normal((1, SHAPE[10], 1), np.float32)
    (found,), (right,) = compiled(graph)[0].run(feeds), interpret(graph, feeds)
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def test_what_has_few_dimensions_stays_as_it_is():
    b = Builder("few")
    graph = b.graph([b.map(lambda v: v * 2.0, b.input("x", f32, SIZES[:MAX_DIMS]))])
    assert flattened(graph.nodes) == (graph.nodes, {})


def test_other_operators_stay_as_they_are():
    b = Builder("turned")
    graph = b.graph([b.transpose(b.input("x", f32, SIZES), range(11, -1, -1))])
    assert flattened(graph.nodes) == (graph.nodes, {})
