"""A pool whose window is the whole space is a reduction."""

from __future__ import annotations

import pytest

from tests.rewriting import keeps, picture, rewritten
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph
from tilewright.graph.ops import Reduce
from tilewright.graph.ops.window import Pool
from tilewright.graph.passes.global_pools import reduce_global_pools
from tilewright.tensor import ir as tir

N, H = tir.Var("n"), tir.Var("h")
NO_PADS = (0, 0, 0, 0)


def pool(kernel, space=(3, 4), pads=NO_PADS, dilations=(1, 1), fold=tir.Fold.ADD) -> Graph:
    b = Builder("pool")
    x = b.input("x", f32, (N, *space, 2))
    return b.graph([b.add(Pool(fold, kernel, (1, 1), dilations, pads), x)], ["y"])


def test_a_window_of_all_is_a_reduction(golden):
    assert golden == picture(pool((3, 4)), reduce_global_pools)


@pytest.mark.parametrize("fold", [tir.Fold.ADD, tir.Fold.MAX, tir.Fold.MIN, tir.Fold.MUL])
def test_the_border_changes_nothing(fold):
    graph = pool((5, 6), pads=(1, 2, 1, 0), fold=fold)
    (node,) = rewritten(graph, reduce_global_pools).nodes
    assert node.op == Reduce(fold, (1, 2))


@pytest.mark.parametrize(
    "graph",
    [
        pool((2, 4)),
        pool((2, 2), space=(3, 3), dilations=(2, 2)),
        pool((3, 4), pads=(1, 0, 0, 0), space=(3, 4)),
        pool((3, 3), space=(H, 3)),
    ],
    ids=["smaller", "spread", "cuts the end off", "symbolic"],
)
def test_others_stay(graph):
    assert keeps(graph, reduce_global_pools)
