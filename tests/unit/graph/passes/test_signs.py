"""Small integers get the signs that instructions multiply; sums stay exact."""

from __future__ import annotations

import pytest

from tests.rewriting import operators
from tests.unit.graph.passes.test_integer_products import integers, large, rewritten_by
from tilewright.dtypes import DType, i8, i32, u8
from tilewright.graph import Builder, Graph
from tilewright.graph.ops.window import Conv
from tilewright.graph.passes.rewrite import rewrite_graph
from tilewright.graph.passes.signs import MOST_TERMS, Pairs, fit_signs
from tilewright.intrin.products import integer_pairs
from tilewright.target import Target
from tilewright.tensor import ir as tir

N = tir.Var("n")
VNNI, DOTPROD = frozenset({(u8, i8)}), frozenset({(i8, i8), (u8, u8)})


def product(x: DType, w: DType, depth: int = 12) -> Graph:
    b = Builder("product")
    data, weights = b.input("x", x, (N, depth)), integers(b, depth, 6, dtype=w)
    return b.graph([b.matmul(data, weights, i32)], ["y"])


def convolution(x: DType, w: DType, channels: int = 8, groups: int = 1, pad: int = 1) -> Graph:
    b = Builder("convolution")
    data = b.input("x", x, (N, 5, 6, channels))
    weights = integers(b, 8, channels // groups, 3, 3, dtype=w)
    op = Conv((1, 1), (1, 1), (pad,) * 4, groups, i32)
    return b.graph([b.add(op, data, weights)], ["y"])


def test_data_are_moved(golden):
    graph = product(i8, i8)
    assert golden == f"Before: {graph}\n\nAfter: {rewritten_by(graph, fit_signs(VNNI))}"


@pytest.mark.parametrize("make", [product, convolution])
@pytest.mark.parametrize("pairs", [VNNI, DOTPROD], ids=["u8i8", "same"])
@pytest.mark.parametrize("x", [u8, i8], ids=str)
@pytest.mark.parametrize("w", [u8, i8], ids=str)
def test_sums_are_the_same(make, pairs, x, w):
    graph = make(x, w)
    after = rewritten_by(graph, fit_signs(pairs))
    found = tuple(large(after))
    reachable = make is product or any(own == w for _, own in pairs)
    assert (found in {(str(a), str(b)) for a, b in pairs}) == reachable
    again = rewrite_graph(after, fit_signs(pairs))
    assert operators(again) == operators(after)


@pytest.mark.parametrize(
    "graph",
    [
        product(i8, i8, MOST_TERMS + 1),
        convolution(i8, i8, channels=8, groups=8),
    ],
    ids=["overflow", "single channels"],
)
def test_what_stays_as_it_is(graph):
    assert large(rewritten_by(graph, fit_signs(VNNI))) == large(graph)


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("x86-64-v2", frozenset()),
        ("x86-64-v3", VNNI),
        ("aarch64", frozenset()),
        ("aarch64+dotprod", DOTPROD),
        ("aarch64+dotprod,+i8mm", DOTPROD | VNNI),
    ],
)
def test_pairs_are_those_of_the_instructions(name: str, pairs: Pairs):
    assert integer_pairs(Target.named(name)) == pairs
