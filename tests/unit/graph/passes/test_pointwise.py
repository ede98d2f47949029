"""Convolutions with windows of one element are products."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewriting import keeps, picture, rewritten
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph
from tilewright.graph.ops import Contract
from tilewright.graph.ops.window import Conv
from tilewright.graph.passes.pointwise import pointwise_products
from tilewright.tensor import ir as tir

N, H = tir.Var("n"), tir.Var("h")


def conv(shape=(N, 4, H, 3), window=1, stride=1, pad=0, groups=1) -> Graph:
    b = Builder("conv")
    channels = tir.int_value(tir.as_index(shape[-1]))
    rng = np.random.default_rng(0)
    w = rng.uniform(-1, 1, (6, channels // groups, window, window)).astype(np.float32)
    op = Conv((stride, stride), (1, 1), (pad,) * 4, groups, f32)
    return b.graph([b.add(op, b.input("x", f32, shape), b.constant(w, "w"))], ["y"])


def test_a_window_of_one_is_a_product(golden):
    assert golden == picture(conv(), pointwise_products)


def test_with_strides_the_places_are_picked_first(golden):
    assert golden == picture(conv(stride=2), pointwise_products)


def test_symbolic_space_is_rows_too():
    after = rewritten(conv((N, H, H, 3)), pointwise_products)
    (product,) = [node for node in after.nodes if isinstance(node.op, Contract)]
    assert str(product.output.type) == "f32[h * h * n, 6]"


def test_places_are_picked_while_data_are_moved():
    b = Builder("moved")
    x = b.transpose(b.input("x", f32, (1, 3, 8, 6)), (0, 2, 3, 1))
    w = b.constant(np.ones((4, 3, 1, 1), np.float32), "w")
    y = b.add(Conv((2, 2), (1, 1), (0,) * 4, 1, f32), x, w)
    after = rewritten(b.graph([y]), pointwise_products)
    assert [node.op.name for node in after.nodes] == ["transpose", "remap", "conv"]


@pytest.mark.parametrize(
    "graph",
    [conv(window=2), conv(pad=1), conv(groups=3), conv((N, 4, 6, 3))],
    ids=["window", "border", "groups", "known space"],
)
def test_others_stay(graph):
    assert keeps(graph, pointwise_products)
