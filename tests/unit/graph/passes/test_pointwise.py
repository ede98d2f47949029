"""Convolutions with windows of one element are products."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewriting import keeps, picture, rewritten
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph
from tilewright.graph.ops import Contract
from tilewright.graph.ops.window import Conv, ConvTranspose
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


def spread(filters: int = 1, window: tuple[int, ...] = (2, 3), **attributes: object) -> Graph:
    """A transposed convolution whose strides are its window."""
    b, rank = Builder("spread"), len(window)
    x = b.input("x", f32, (N, *range(4, 4 + rank), 5))
    w = np.random.default_rng(1).uniform(-1, 1, (5, filters, *window)).astype(np.float32)
    none = (0,) * rank
    fields = {"strides": window, "dilations": (1,) * rank, "pads": none * 2, "extra": none}
    op = ConvTranspose(**{**fields, "groups": 1, **attributes}, dtype=f32)  # type: ignore[arg-type]
    return b.graph([b.add(op, x, b.constant(w, "w"))], ["y"])


@pytest.mark.parametrize("window", [(3,), (2, 2), (2, 3), (2, 2, 3)])
def test_windows_side_by_side_are_rows_of_a_product(window):
    after = rewritten(spread(2, window), pointwise_products)
    names = [node.op.name for node in after.nodes if node.op.name != "transpose"]
    assert names == ["contract", "reshape"]


@pytest.mark.parametrize(
    "graph",
    [spread(8), spread(strides=(1, 2)), spread(extra=(1, 0)), spread(pads=(1, 0, 0, 0))],
    ids=["many filters", "overlap", "more results", "cut off"],
)
def test_other_transposed_convolutions_stay(graph):
    assert keeps(graph, pointwise_products)


@pytest.mark.parametrize(
    "graph",
    [conv(window=2), conv(pad=1), conv(groups=3), conv((N, 4, 6, 3))],
    ids=["window", "border", "groups", "known space"],
)
def test_others_stay(graph):
    assert keeps(graph, pointwise_products)
