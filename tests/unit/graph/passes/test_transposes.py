"""Transposes move down until two meet, where that is no loss."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewriting import keeps, operators, picture, rewritten
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph, Value
from tilewright.graph.ops import Transpose
from tilewright.graph.ops.window import Conv
from tilewright.graph.passes.rewrite import rewrite_graph
from tilewright.graph.passes.transposes import inverse, matching_runs, sink_transposes
from tilewright.graph.sizes import as_shape
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call

N, S = tir.Var("n"), tir.Var("s")
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
"""Channels to the front, and to the end."""


def conv(b: Builder, x: Value, filters: int = 3) -> Value:
    """As models write it: channels first outside, channels last inside."""
    channels = tir.int_value(x.shape[1])
    w = np.random.default_rng(filters).uniform(-1, 1, (filters, channels, 3, 3))
    op = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, f32)
    inside = b.add(op, b.transpose(x, LAST), b.constant(w.astype(np.float32), "w"))
    return b.transpose(inside, FIRST)


def transposes(graph: Graph) -> int:
    return sum(isinstance(node.op, Transpose) for node in graph.nodes)


def test_transposes_between_convolutions_cancel(golden):
    b = Builder("network")
    x = b.input("x", f32, (N, 2, 4, 5))
    bias = b.constant(np.arange(3, dtype=np.float32).reshape(1, 3, 1, 1), "bias")
    hidden = b.map(lambda v, c: tir.maximum(v + c, 0.0), conv(b, x), bias)
    assert golden == picture(b.graph([conv(b, hidden)], ["y"]), sink_transposes)


def test_residual_sums_and_joins_follow_the_channels():
    b = Builder("residual")
    x = b.input("x", f32, (N, 3, 4, 5))
    first = conv(b, x)
    both = b.map(lambda p, q: p + q, conv(b, first), first)
    joined = b.concat([both, conv(b, both)], 1)
    average = b.reduce(tir.Fold.ADD, joined, (2, 3))
    after = rewritten(rewritten(b.graph([average]), sink_transposes), sink_transposes)
    assert transposes(after) == 1, "one in front; of the sum only channels are not one"


def test_a_shuffle_of_channels_moves_channels_alone():
    """Groups and channels change places at every place of the image, and nothing else moves."""
    b = Builder("shuffle")
    x = b.input("x", f32, (N, 3, 4, 5))
    groups = b.reshape(conv(b, x, 6), (N, 2, 3, 4, 5))
    shuffled = b.reshape(b.transpose(groups, (0, 2, 1, 3, 4)), (N, 6, 4, 5))
    after = rewritten(b.graph([conv(b, shuffled)]), sink_transposes)
    after = rewritten(after, sink_transposes)
    orders = [node.op.order for node in after.nodes if isinstance(node.op, Transpose)]
    assert orders == [LAST, (0, 1, 2, 4, 3), FIRST]


def test_a_slice_follows_the_channels():
    b = Builder("slice")
    x = b.input("x", f32, (N, 3, 4, 5))
    cut = b.remap(conv(b, x), (N, 2, 4, 5), lambda n, c, h, w: [n, c + 1, h, 4 - w])
    graph = b.graph([conv(b, cut)])
    assert (transposes(graph), transposes(rewritten(graph, sink_transposes))) == (4, 2)


def test_a_movement_across_dimensions_stays_behind_its_transpose():
    b = Builder("diagonal")
    x = b.input("x", f32, (3, 3))
    shifted = b.remap(b.transpose(x, (1, 0)), (3, 3), lambda i, j: [i, (i + j) % 3])
    assert keeps(b.graph([shifted]), sink_transposes)


def test_a_map_stays_where_its_other_operands_would_cost_more():
    """One operand would lose its transpose, the other one, of the same size, would get one."""
    b = Builder("cost")
    x, y = b.input("x", f32, (4, 5)), b.input("y", f32, (5, 4))
    graph = b.graph([b.map(lambda p, q: p + q, b.transpose(x, (1, 0)), y)])
    assert keeps(graph, sink_transposes)


def test_a_join_stays_where_its_other_operands_would_cost_more():
    b = Builder("cost")
    x, y = b.input("x", f32, (4, 5)), b.input("y", f32, (9, 4))
    graph = b.graph([b.concat([b.transpose(x, (1, 0)), y], 0)])
    assert keeps(graph, sink_transposes)


def test_vectors_cost_nothing():
    b = Builder("vector")
    x, bias = b.input("x", f32, (4, 5)), b.input("bias", f32, (4,))
    graph = b.graph([b.map(lambda p, q: p + q, b.transpose(x, (1, 0)), bias)], ["y"])
    assert operators(rewritten(graph, sink_transposes)) == [
        "reshape(shape=[4, 1])",
        "map(body=arg0 + arg1, dtype=f32)",
        "transpose(order=[1, 0])",
    ]


def test_operands_of_a_product_only_change_letters(golden):
    b = Builder("product")
    x, y = b.input("x", f32, (2, S, 5)), b.input("y", f32, (2, S, 5))
    scores = b.matmul(x, b.transpose(y, (0, 2, 1)))
    assert golden == picture(b.graph([scores], ["scores"]), sink_transposes)


def test_the_result_of_a_product_is_written_in_order_if_only_the_transpose_reads_it():
    def heads(order, *, twice, width=8):
        b = Builder("heads")
        x, y = b.input("x", f32, (2, 3, S, 5)), b.input("y", f32, (2, 3, 5, width))
        product = b.matmul(x, y)
        moved = b.transpose(product, order)
        return b.graph([moved, product] if twice else [moved])

    after = rewritten(heads((0, 2, 1, 3), twice=False), sink_transposes)
    assert operators(after) == ["contract(letters=abmk,abkn->ambn, dtype=f32)"]
    assert keeps(heads((0, 2, 1, 3), twice=True), sink_transposes)
    assert keeps(heads((0, 1, 3, 2), twice=False), sink_transposes), "vectors would not be vectors"
    assert keeps(heads((0, 2, 1, 3), twice=False, width=4), sink_transposes), "nor filled"


def test_dimensions_of_size_one_move_as_a_reshape():
    b = Builder("ones")
    x = b.input("x", f32, (N, 1, S))
    graph = b.graph([b.transpose(x, (1, 0, 2))])
    assert operators(rewritten(graph, sink_transposes)) == ["reshape(shape=[1, n, s])"]


def test_reshapes_of_whole_runs_let_a_transpose_through(golden):
    b = Builder("runs")
    x = b.input("x", f32, (N, 12, 5))
    split = b.reshape(b.transpose(x, (0, 2, 1)), (N, 5, 3, 4))
    assert golden == picture(b.graph([b.map(lambda v: call("tanh", v), split)]), sink_transposes)


def test_reshapes_across_runs_hold_a_transpose():
    b = Builder("across")
    x = b.input("x", f32, (4, 6))
    assert keeps(b.graph([b.reshape(b.transpose(x, (1, 0)), (3, 8))]), sink_transposes)


@pytest.mark.parametrize(
    ("before", "after", "runs"),
    [
        ((N, 12), (N, 3, 4), [([0], [0]), ([1], [1, 2])]),
        ((N, 4, S), (N, 4 * S), [([0], [0]), ([1, 2], [1])]),
        ((1, N), (N,), [([0, 1], [0])]),
        ((6, 4), (4, 6), [([0, 1], [0, 1])]),
        ((N, S), (S, N), [([0, 1], [0, 1])]),
    ],
)
def test_runs_are_as_short_as_they_can_be(before, after, runs):
    assert matching_runs(as_shape(before), as_shape(after)) == runs


def test_shapes_of_different_sizes_have_no_runs():
    assert matching_runs(as_shape((N, 4)), as_shape((N, 5))) is None


def test_the_inverse_undoes_an_order():
    assert inverse((2, 0, 1)) == (1, 2, 0)


def test_a_second_walk_changes_nothing():
    b = Builder("twice")
    x = b.input("x", f32, (N, 2, 4, 5))
    once = rewritten(b.graph([conv(b, conv(b, x))]), sink_transposes)
    assert operators(rewrite_graph(once, sink_transposes)) == operators(once)
