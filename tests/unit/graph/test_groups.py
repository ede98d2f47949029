"""Which nodes share a kernel, which must not, and the order in which kernels run."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laid_out import HALO, NCHW, blocked, with_layouts
from tests.rewriting import operators
from tilewright.dtypes import f32, i64
from tilewright.graph import Builder, Graph, Value
from tilewright.graph.grouping import MAX_INPUTS, MAX_NODES, group_nodes
from tilewright.graph.groups import is_view
from tilewright.graph.ops import Reduce
from tilewright.graph.ops.window import Conv, Pool
from tilewright.graph.passes.pipeline import optimise
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call
from tilewright.tensor.layout import Reorder

N, S = tir.Var("n"), tir.Var("s")


def groups(graph: Graph) -> list[str]:
    """Each group as `kind: operators`."""
    return [
        f"{g.kind.value}: {' '.join(node.op.name for node in g.nodes)}" for g in group_nodes(graph)
    ]


def weights(b: Builder, *shape: int) -> Value:
    return b.constant(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def relu(b: Builder, x: Value) -> Value:
    return b.map(lambda v: tir.maximum(v, 0.0), x)


def add(b: Builder, x: Value, y: Value) -> Value:
    return b.map(lambda p, q: p + q, x, y)


def dense(b: Builder, x: Value, width: int = 4) -> Value:
    return b.matmul(x, weights(b, 4, width))


def conv(b: Builder, x: Value) -> Value:
    return b.add(Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, f32), x, weights(b, 4, 4, 3, 3))


def softmax(b: Builder, x: Value, axis: int = -1) -> Value:
    axes = (axis % x.rank,)
    power = b.map(lambda v, m: call("exp", v - m), x, b.reduce(tir.Fold.MAX, x, axes))
    return b.map(lambda v, s: v / s, power, b.reduce(tir.Fold.ADD, power, axes))


def layer_norm(b: Builder, x: Value) -> Value:
    axes = (x.rank - 1,)
    mean = b.map(lambda s: s * 0.25, b.reduce(tir.Fold.ADD, x, axes))
    centred = b.map(lambda v, m: v - m, x, mean)
    total = b.reduce(tir.Fold.ADD, b.map(lambda v: v * v, centred), axes)
    scale = b.map(lambda s: 1.0 / call("sqrt", s * 0.25 + 1e-5), total)
    return b.map(lambda v, s, g, o: v * s * g + o, centred, scale, weights(b, 4), weights(b, 1, 4))


# ---- what joins


@pytest.mark.parametrize("heavy", ["contract", "conv"])
def test_maps_of_a_result_run_in_the_registers_of_heavy_work(heavy):
    b = Builder()
    x = b.input("x", f32, (N, 4) if heavy == "contract" else (N, 5, 5, 4))
    y = dense(b, x) if heavy == "contract" else conv(b, x)
    biased = relu(b, add(b, y, weights(b, 4)))
    assert groups(b.graph([add(b, biased, x)])) == [f"anchor: {heavy} map map map"]


def test_the_sum_of_two_products_has_one_of_them():
    """Of two anchors the later one takes the maps, the other one is a kernel of its own."""
    b = Builder()
    x = b.input("x", f32, (N, 4))
    graph = b.graph([relu(b, add(b, dense(b, x), b.matmul(x, weights(b, 4, 4))))])
    assert groups(graph) == ["anchor: contract", "anchor: contract map map"]


def test_softmax_is_one_group_of_rows():
    b = Builder()
    x = b.input("x", f32, (N, S, 4))
    graph = b.graph([softmax(b, b.map(lambda v: v * 0.5, x))])
    assert groups(graph) == ["rows: map reduce map reduce map"]
    (group,) = group_nodes(graph)
    assert (group.lead, len(group.row)) == (2, 1)


def test_layer_norm_is_one_group_of_rows_with_the_sum_in_front():
    b = Builder()
    x, y = (b.input(name, f32, (N, S, 4)) for name in "xy")
    (only,) = groups(b.graph([layer_norm(b, add(b, x, y))]))
    assert only == "rows: map reduce map map map reduce map map"


def test_maps_behind_a_reduction_stay_with_it():
    b = Builder()
    x = b.input("x", f32, (N, 4))
    mean = b.map(lambda s: s * 0.25, b.reduce(tir.Fold.ADD, x, (1,)))
    assert groups(b.graph([mean])) == ["rows: reduce map"]


def test_a_reduction_over_leading_dimensions_takes_maps_of_its_result_only():
    b = Builder()
    x = b.input("x", f32, (N, S, 4))
    total = b.reduce(tir.Fold.ADD, relu(b, x), (0, 1))
    graph = b.graph([b.map(lambda v, s: v - s, x, b.map(lambda s: s * 0.5, total))])
    assert groups(graph) == ["map: map", "anchor: reduce map", "map: map"]


def test_a_chain_of_maps_and_movements_is_one_kernel():
    b = Builder()
    x = b.input("x", f32, (4, N))
    moved = b.transpose(relu(b, x), (1, 0))
    cut = b.remap(moved, (N, 3), lambda i, j: [i, j + 1])
    assert groups(b.graph([add(b, cut, b.input("y", f32, (N, 3)))])) == [
        "map: map transpose remap map"
    ]


# ---- what must not join


def test_two_products_in_a_row_are_two_kernels():
    b = Builder()
    x = b.input("x", f32, (N, 4))
    assert groups(b.graph([dense(b, relu(b, dense(b, x)))])) == [
        "anchor: contract map",
        "anchor: contract",
    ]


def test_a_value_that_is_returned_leaves_its_kernel():
    b = Builder()
    y = dense(b, b.input("x", f32, (N, 4)))
    assert groups(b.graph([relu(b, y), y])) == ["anchor: contract", "map: map"]


def test_a_value_that_two_kernels_read_is_computed_once():
    b = Builder()
    x = b.input("x", f32, (N, 4))
    active = relu(b, x)
    graph = b.graph([dense(b, active), dense(b, active, 3)])
    assert groups(graph) == ["map: map", "anchor: contract", "anchor: contract"]


def test_two_readers_in_one_kernel_are_no_reason_to_leave_it():
    b = Builder()
    active = relu(b, b.input("x", f32, (N, 4)))
    graph = b.graph([add(b, b.map(lambda v: v * v, active), active)])
    assert groups(graph) == ["map: map map map"]


@pytest.mark.parametrize("how", ["broadcast", "expand", "remap"])
def test_what_would_be_computed_again_for_each_row_is_stored(how):
    b = Builder()
    row, x = b.input("row", f32, (1, 4)), b.input("x", f32, (8, 4))
    costly = b.map(lambda v: call("tanh", v), row)
    graph = {
        "broadcast": lambda: add(b, costly, x),
        "expand": lambda: b.expand(costly, (8, 4)),
        "remap": lambda: b.remap(costly, (8, 4), lambda _, j: [0, j]),
    }[how]()
    assert [g.partition(": ")[2].split()[0] for g in groups(b.graph([graph]))] == [
        "map",
        "map" if how == "broadcast" else how,
    ]


def test_what_heavy_work_reads_is_computed_before_it():
    b = Builder()
    graph = b.graph([dense(b, relu(b, b.input("x", f32, (N, 4))))])
    assert groups(graph) == ["map: map", "anchor: contract"]


def test_movements_of_a_product_are_not_its_epilogue():
    b = Builder()
    moved = b.transpose(dense(b, b.input("x", f32, (N, 4))), (1, 0))
    assert groups(b.graph([relu(b, moved)])) == ["anchor: contract", "map: transpose map"]


def test_rows_of_different_lengths_are_two_kernels():
    b = Builder()
    x = b.input("x", f32, (N, S, 4))
    graph = b.graph([b.reduce(tir.Fold.MAX, softmax(b, x), (1, 2))])
    for group in group_nodes(graph):
        axes = {node.op.axes for node in group.nodes if isinstance(node.op, Reduce)}
        assert len(axes) == 1
        assert axes == {tuple(range(group.lead, 3))}


def test_softmax_over_another_dimension_is_no_group_of_rows():
    b = Builder()
    found = groups(b.graph([softmax(b, b.input("x", f32, (N, 3, 4)), 1)]))
    assert found == ["anchor: reduce", "map: map", "anchor: reduce", "map: map"]


def test_other_operators_are_alone():
    b = Builder()
    x = b.input("x", f32, (N, 4))
    graph = b.graph([relu(b, b.concat([relu(b, x), x], 1))])
    assert groups(graph) == ["map: map", "alone: concat", "map: map"]


def test_a_kernel_has_a_limit_of_nodes_and_of_inputs():
    b = Builder()
    y = x = b.input("x", f32, (N, 4))
    for _ in range(MAX_NODES + 1):
        y = b.map(lambda v: v * 1.5, y)
    assert [len(g.nodes) for g in group_nodes(b.graph([y]))] == [1, MAX_NODES]
    y = x
    for k in range(MAX_INPUTS + 2):
        y = add(b, y, b.input(f"y{k}", f32, (N, 4)))
    found = group_nodes(b.graph([y]))
    assert len(found) == 2
    assert all(len(g.inputs()) <= MAX_INPUTS for g in found)


# ---- order, and what enters and leaves


def test_views_belong_to_no_group_and_groups_run_when_their_inputs_are_there():
    b = Builder()
    x = b.input("x", f32, (2, N, 4))
    early = b.map(lambda v: v + 1.0, x)
    y = b.reshape(dense(b, x), (2, N, 4))
    late = add(b, early, y)
    graph = b.graph([softmax(b, late), b.reduce(tir.Fold.ADD, early, (0,))])
    known = {*graph.inputs, *graph.constants}
    for node in graph.nodes:
        if node.op.name == "reshape":
            known.update(node.outputs)
    for group in group_nodes(graph):
        assert set(group.inputs()) <= known
        known.update(v for node in group.nodes for v in node.outputs)
    assert sum(len(g.nodes) for g in group_nodes(graph)) == len(operators(graph)) - 2


def test_what_enters_and_leaves_a_group():
    b = Builder()
    x, y = b.input("x", f32, (N, 4)), b.input("y", f32, (N, 4))
    graph = b.graph([add(b, relu(b, add(b, x, y)), x)])
    (group,) = group_nodes(graph)
    assert group.inputs() == (x, y)
    assert group.outputs(graph, graph.consumers()) == graph.outputs


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda b, x: relu(b, dense(b, x)), "contract"),
        (softmax, "reduce"),
        (lambda b, x: b.concat([x, x], 0), "concat"),
    ],
)
def test_the_anchor_is_the_heavy_part(make, name):
    b = Builder()
    graph = b.graph([make(b, b.input("x", f32, (N, 4)))])
    (group,) = group_nodes(graph)
    assert group.anchor is not None
    assert group.anchor.op.name == name


def test_plain_maps_have_no_anchor():
    b = Builder()
    (group,) = group_nodes(b.graph([relu(b, b.input("x", i64, (N,)))]))
    assert group.anchor is None


def test_a_block_of_a_transformer_after_the_passes():
    """Norm, two products with their epilogues and the residual sum: three kernels."""
    b = Builder()
    x = b.input("x", f32, (N, S, 4))
    hidden = b.map(lambda v: call("tanh", v), add(b, dense(b, layer_norm(b, x)), weights(b, 4)))
    graph = optimise(b.graph([add(b, dense(b, hidden), x)]))
    assert [g.partition(":")[0] for g in groups(graph)] == ["rows", "anchor", "anchor"]


def test_a_block_of_a_convolutional_network_after_the_passes():
    b = Builder()
    x = b.input("x", f32, (N, 6, 6, 4))
    y = relu(b, b.map(lambda v, s, o: v * s + o, conv(b, x), weights(b, 4), weights(b, 4)))
    pooled = b.add(Pool(tir.Fold.MAX, (2, 2), (2, 2), (1, 1), (0,) * 4), add(b, conv(b, y), x))
    found = groups(optimise(b.graph([pooled])))
    assert found == ["anchor: conv map map", "anchor: conv map", "anchor: pool"]


VIEWS = {
    "channels are cut as they are stored": ((4, 2), blocked(2), (Reorder((0, 3, 1, 2, 4)),)),
    "in another order": ((4, 2), blocked(2), ()),
    "in other blocks": ((2, 4), blocked(2), (Reorder((0, 3, 1, 2, 4)),)),
    "out of their middle": ((4, 2), NCHW, (Reorder((0, 3, 1, 2, 4)),)),
    "with zeros around them": ((4, 2), HALO, HALO),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_reshape_is_a_view_if_elements_lie_alike(name):
    parts, before, after = VIEWS[name]
    b = Builder()
    x = relu(b, b.input("x", f32, (N, 5, 6, 8)))
    y = b.reshape(x, (N, 5, 6, *parts))
    graph = with_layouts(b.graph([relu(b, y)]), {x.name: before, y.name: after})
    assert is_view(graph.nodes[1]) == (name == "channels are cut as they are stored")


def test_what_moves_is_computed_with_before_a_product_adds_it():
    """Two shifted images that a product adds: one kernel of maps, not one for each shift."""
    b = Builder("network")
    x, y = b.input("x", f32, (1, 4, 4, 4)), b.input("y", f32, (1, 2, 2, 4))
    wide = [
        b.remap(y, (1, 4, 4, 4), lambda n, h, w, c, s=s: (n, h // 2, (w // 2 + s) % 2, c))
        for s in (0, 1)
    ]
    total = add(b, add(b, *wide), conv(b, x))
    graph = b.graph([relu(b, total)], ["r"])
    assert groups(graph) == ["map: remap remap map", "anchor: conv map map"]
