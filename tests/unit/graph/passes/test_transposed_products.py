"""Transposed convolutions whose windows do not meet are products."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewriting import keeps, picture, rewritten
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph
from tilewright.graph.ops.window import ConvTranspose
from tilewright.graph.passes.transposed_products import transposed_products
from tilewright.tensor import ir as tir

N, W = tir.Var("n"), tir.Var("w")


def spread(
    filters: int = 1,
    window: tuple[int, ...] = (2, 3),
    space: tuple[int, ...] = (4, 5, 6),
    groups: int = 1,
    line: tir.Expr | None = None,
    **attributes: tuple[int, ...],
) -> Graph:
    """A transposed convolution whose strides are its window, of as many dimensions."""
    b, rank = Builder("spread"), len(window)
    sizes = space[:rank] if line is None else (*space[: rank - 1], line)
    x = b.input("x", f32, (N, *sizes, 6))
    w = np.random.default_rng(1).uniform(-1, 1, (6, filters, *window)).astype(np.float32)
    none = (0,) * rank
    fields = {"strides": window, "dilations": (1,) * rank, "pads": none * 2, "extra": none}
    op = ConvTranspose(**{**fields, **attributes}, groups=groups, dtype=f32)
    return b.graph([b.add(op, x, b.constant(w, "w"))], ["y"])


def test_a_single_place_is_a_product(golden):
    assert golden == picture(spread(8, (2, 3), (1, 1)), transposed_products)


def test_windows_side_by_side_are_a_product(golden):
    assert golden == picture(spread(2, (2, 3), line=W), transposed_products)


@pytest.mark.parametrize("window", [(3,), (2, 2), (2, 3), (2, 2, 3)])
@pytest.mark.parametrize(("filters", "line"), [(2, W), (8, None)])
def test_products_of_every_rank(window, filters, line):
    space = (1, 1, 1) if line is None else (4, 5, 6)
    after = rewritten(spread(filters, window, space, line=line), transposed_products)
    names = [node.op.name for node in after.nodes]
    assert "contract" in names
    assert "convtranspose" not in names


@pytest.mark.parametrize("strides", [(1, 1), (3, 2)])
def test_a_single_place_has_no_steps(strides):
    after = rewritten(spread(8, (2, 3), (1, 1), strides=strides), transposed_products)
    assert "convtranspose" not in [node.op.name for node in after.nodes]


@pytest.mark.parametrize("space", [(4, 5), (1, 1)])
@pytest.mark.parametrize(
    "attributes",
    [{"extra": (1, 0)}, {"pads": (1, 0, 0, 0)}, {"groups": 2}, {"dilations": (2, 1)}],
    ids=["more results", "cut off", "groups", "gaps"],
)
def test_what_is_not_plain_stays(attributes, space):
    assert keeps(spread(space=space, **attributes), transposed_products)


@pytest.mark.parametrize(
    "graph",
    [spread(8, line=W), spread(strides=(1, 2), line=W), spread(2)],
    ids=["many filters", "overlap", "lines of known length"],
)
def test_many_places_stay(graph):
    assert keeps(graph, transposed_products)
