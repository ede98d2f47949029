"""Tensors in many parts: one kernel copies all of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laid_out import compiled
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph
from tilewright.model.cuts import FEW, cuts_of
from tilewright.tensor import ir as tir

N = tir.Var("n")
COUNT = FEW + 4


def in_parts(count: int, along: int, *shape: int | tir.Expr, computed: bool = False) -> Graph:
    """Two elements each of a dimension, which may be symbolic."""
    b = Builder("parts")
    x = b.input("x", f32, shape)
    source = b.map(lambda v: v + 1.0, x) if computed else x

    def part(k: int):
        kept = [*shape[:along], 2, *shape[along + 1 :]]
        places = lambda *o: [i + 2 * k if d == along else i for d, i in enumerate(o)]  # noqa: E731
        return b.remap(source, kept, places)

    parts = [part(k) for k in range(count)]
    more = [b.map(lambda v: v * 2.0, source)] if computed else []
    return b.graph([*parts, *more])


def plain_cuts(graph: Graph) -> int:
    return len(cuts_of(graph, lambda value: value, ()))


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("size", [2 * COUNT, N])
@pytest.mark.parametrize("front", [(), (1, 1)])
def test_parts_are_right(front, size, computed):
    graph = in_parts(COUNT, len(front), *front, size, 3, computed=computed)
    x = np.random.default_rng(0).standard_normal((*front, 2 * COUNT, 3), np.float32)
    module, made = compiled(graph)
    found = module.run({"x": x})
    whole = x + 1 if computed else x
    for k in range(COUNT):
        part = whole[..., 2 * k : 2 * k + 2, :]
        np.testing.assert_array_equal(found[k], part)
    if computed:
        np.testing.assert_array_equal(found[-1], whole * 2)
    assert plain_cuts(graph) >= COUNT - 1  # the first one begins where the whole does
    assert len(made.program.kernels) <= 4


def test_few_parts_keep_kernels_of_their_own():
    assert not plain_cuts(in_parts(FEW, 0, N, 3))


def test_parts_that_do_not_lie_in_one_piece_have_kernels_of_their_own():
    assert not plain_cuts(in_parts(COUNT, 1, N, 2 * COUNT))
    assert not plain_cuts(in_parts(COUNT, 1, 2, 2 * COUNT))


def test_constants_have_no_such_parts():
    graph = in_parts(COUNT, 0, N, 3)
    assert not cuts_of(graph, lambda value: value, set(graph.inputs))
