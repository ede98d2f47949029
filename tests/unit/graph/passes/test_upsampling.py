"""Pointwise convolutions stand in front of upsampling, where that is less work."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewriting import keeps, rewritten
from tilewright.dtypes import f32, i64
from tilewright.graph import Builder, Graph, Value
from tilewright.graph.ops import Gather, axis, picked
from tilewright.graph.ops.window import Conv
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.passes.transposes import sink_transposes
from tilewright.graph.passes.upsampling import multiply_before_upsampling
from tilewright.graph.sizes import as_shape, fixed
from tilewright.tensor import ir as tir

RNG = np.random.default_rng(5)


def pointwise(b: Builder, x: Value, filters: int, stride: int = 1) -> Value:
    channels = fixed(x.shape[-1])
    weights = RNG.uniform(-1, 1, (filters, channels, 1, 1)).astype(np.float32)
    op = Conv((stride, stride), (1, 1), (0, 0, 0, 0), 1, f32)
    return b.add(op, x, b.constant(weights, "w"))


def stretched(b: Builder, x: Value, dim: int, size: int, beside: int = 1) -> Value:
    """Linear interpolation along one dimension; `beside`: channels with weights of their own."""
    old = fixed(x.shape[dim])
    at = np.clip((np.arange(size) + 0.5) * old / size - 0.5, 0, old - 1)
    low, high = np.floor(at).astype(np.int64), np.minimum(np.floor(at) + 1, old - 1)
    shape = [fixed(d) for d in x.shape]
    shape[dim] = size
    places = tuple(picked(0) if d == dim else axis(d) for d in range(x.rank))
    op = Gather(as_shape(shape), ((1, (axis(dim),)),), places)
    parts = [b.add(op, x, b.constant(np.asarray(n, np.int64), "at", i64)) for n in (low, high)]
    spread = [size if d == dim else 1 for d in range(x.rank)]
    spread[-1] = beside if dim != x.rank - 1 else spread[-1]
    weight = np.broadcast_to(
        (at - low).reshape([s if d == dim else 1 for d, s in enumerate(spread)]), spread
    )
    weights = [b.constant(w.astype(np.float32), "share") for w in (1 - weight, weight)]
    return b.map(lambda p, q, u, v: p * u + q * v, *parts, *weights)


def resized(b: Builder, x: Value, height: int, width: int) -> Value:
    return stretched(b, stretched(b, x, 1, height), 2, width)


def nearest(b: Builder, x: Value, times: int) -> Value:
    n, h, w, c = (fixed(d) for d in x.shape)
    return b.remap(
        x, (n, times * h, times * w, c), lambda n, h, w, c: (n, h // times, w // times, c)
    )


def places_of_products(graph: Graph) -> list[int]:
    """How many places each convolution has."""
    convs = [node for node in graph.nodes if isinstance(node.op, Conv)]
    return sorted(fixed(n.output.shape[1]) * fixed(n.output.shape[2]) for n in convs)


def test_a_product_behind_a_resized_image_is_made_of_the_small_one():
    b = Builder("network")
    x = b.input("x", f32, (1, 3, 4, 6))
    graph = b.graph([pointwise(b, resized(b, x, 9, 8), 5)], ["y"])
    assert places_of_products(rewritten(graph, multiply_before_upsampling)) == [3 * 4]


def test_parts_of_a_join_have_parts_of_the_weights():
    b = Builder("network")
    small = b.input("small", f32, (1, 2, 2, 4))
    middle = b.input("middle", f32, (1, 4, 4, 3))
    large, other = (b.input(name, f32, (1, 8, 8, 2)) for name in ("large", "other"))
    joined = b.concat([resized(b, small, 8, 8), large, nearest(b, middle, 2), other], 3)
    graph = b.graph([pointwise(b, joined, 2)], ["y"])
    # What is not upsampled stays together.
    assert places_of_products(rewritten(graph, multiply_before_upsampling)) == [4, 16, 64]


def test_of_a_join_with_few_filters_only_parts_that_gain_move():
    b = Builder("network")
    small, large = b.input("small", f32, (1, 2, 2, 1)), b.input("large", f32, (1, 8, 8, 7))
    graph = b.graph([pointwise(b, b.concat([nearest(b, small, 4), large], 3), 2)], ["y"])
    assert keeps(graph, multiply_before_upsampling)  # two filters of one channel: more to resize


@pytest.mark.parametrize("filters", [9, 20])
def test_more_filters_than_channels_stay_behind(filters):
    b = Builder("network")
    x = b.input("x", f32, (1, 4, 4, 8))
    assert keeps(
        b.graph([pointwise(b, nearest(b, x, 2), filters)], ["y"]), multiply_before_upsampling
    )


def test_a_smaller_image_stays_in_front():
    b = Builder("network")
    x = b.input("x", f32, (1, 8, 8, 6))
    graph = b.graph([pointwise(b, resized(b, x, 4, 4), 3)], ["y"])
    assert keeps(graph, multiply_before_upsampling)


def test_weights_of_channels_and_functions_do_not_go_through_sums():
    b = Builder("network")
    x = b.input("x", f32, (1, 2, 2, 6))
    own = stretched(b, x, 1, 8, beside=6)
    curved = b.map(lambda v: tir.maximum(v, 0.0), nearest(b, x, 4))
    graph = b.graph([pointwise(b, own, 3), pointwise(b, curved, 3)], ["y", "z"])
    assert keeps(graph, multiply_before_upsampling)


def test_what_others_read_is_made_anyway():
    b = Builder("network")
    wide = nearest(b, b.input("x", f32, (1, 2, 2, 6)), 4)
    graph = b.graph([pointwise(b, wide, 3), wide], ["y", "z"])
    assert keeps(graph, multiply_before_upsampling)


def test_strides_stay():
    b = Builder("network")
    x = b.input("x", f32, (1, 2, 2, 6))
    graph = b.graph([pointwise(b, nearest(b, x, 4), 3, stride=2)], ["y"])
    assert keeps(graph, multiply_before_upsampling)


def test_transposes_sink_through_what_is_picked_along_single_dimensions():
    b = Builder("network")
    x = b.input("x", f32, (1, 3, 4, 5))
    first = b.transpose(x, (0, 3, 1, 2))
    at = b.constant(np.array([0, 2, 1, 1, 0], np.int64), "at", i64)
    op = Gather(as_shape((1, 5, 5, 4)), ((1, (axis(2),)),), (axis(0), axis(1), picked(0), axis(3)))
    graph = b.graph([b.transpose(b.add(op, first, at), (0, 2, 3, 1))], ["y"])
    (only,) = rewritten(graph, sink_transposes).nodes
    assert isinstance(only.op, Gather)
    assert [fixed(d) for d in only.op.shape] == [1, 5, 4, 5]


def test_what_is_picked_across_dimensions_keeps_its_transpose():
    b = Builder("network")
    x = b.input("x", f32, (2, 3, 4))
    at = b.constant(np.array([[0, 1, 2], [1, 1, 0], [2, 0, 1], [0, 0, 0]], np.int64), "at", i64)
    op = Gather(as_shape((4, 2, 3)), ((1, (axis(0), axis(2))),), (axis(0), axis(1), picked(0)))
    graph = b.graph([b.add(op, b.transpose(x, (2, 0, 1)), at)], ["y"])
    assert keeps(graph, sink_transposes)


def test_strict_accuracy_keeps_the_order_of_sums():
    b = Builder("network")
    x = b.input("x", f32, (1, 2, 2, 4))
    graph = b.graph([pointwise(b, nearest(b, x, 4), 2)], ["y"])
    assert places_of_products(optimise(graph, strict=True)) == [64]
    assert places_of_products(optimise(graph)) == [4]
