"""What only ever occurs together is one size of a kernel."""

from __future__ import annotations

from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph
from tilewright.graph.abstract import abstract_sizes
from tilewright.graph.sizes import as_shape
from tilewright.model.kernels import task_of
from tilewright.tensor import ir as tir
from tilewright.tensor.printer import print_node

BATCH, SEQ = tir.Var("batch"), tir.Var("seq")
ROWS = BATCH * SEQ


def names(graph: Graph) -> dict[str, str]:
    found = abstract_sizes(graph.nodes).meaning
    return {var.name: print_node(dim) for var, dim in found.items()}


def maps(*shapes: tuple[int | tir.Expr, ...]) -> Graph:
    """One map for each shape."""
    b = Builder()
    inputs = [b.input(f"x{k}", f32, shape) for k, shape in enumerate(shapes)]
    return b.graph([b.map(lambda v: v * v, x) for x in inputs])


def test_stacked_rows_are_one_size():
    assert names(maps((ROWS, 4))) == {"n0": "batch * seq"}


def test_a_part_that_occurs_elsewhere_keeps_its_name():
    assert names(maps((ROWS, SEQ))) == {}
    assert names(maps((ROWS, 4), (BATCH, 4))) == {}


def test_sizes_that_have_nothing_to_do_with_each_other():
    other = tir.Var("other")
    assert names(maps((ROWS, other + 1), (7,))) == {"n0": "batch * seq", "n1": "other + 1"}


def test_plain_sizes_and_numbers_stay():
    assert names(maps((BATCH, SEQ, 4))) == {}


def test_a_multiple_of_a_whole_is_said_with_its_name():
    graph = maps((ROWS, 4), (ROWS * 2, 4))
    sizes = abstract_sizes(graph.nodes)
    assert names(graph) == {"n0": "batch * seq"}
    (n0,) = sizes.meaning
    assert sizes.shape(as_shape((ROWS * 2, 4))) == (n0 * 2, tir.Const(4))


def test_attributes_of_operators_count():
    """A slice that ends at `seq` needs it by itself; one of whole rows does not."""
    b = Builder()
    x = b.input("x", f32, (ROWS, 4))
    ends = b.graph([b.remap(x, (ROWS, 4), lambda i, j: [(i + SEQ) % ROWS, j])])
    assert names(ends) == {}
    whole = b.graph([b.remap(x, (ROWS, 4), lambda i, j: [ROWS - 1 - i, j])])
    assert names(whole) == {"n0": "batch * seq"}
    sizes = abstract_sizes(whole.nodes)
    (n0,) = sizes.meaning
    op = sizes.op(whole.nodes[0].op)
    assert str(op) == "remap(shape=[n0, 4], indices=[n0 - 1 - o0, o1])"
    assert sizes.of(n0) == as_shape((ROWS,))[0]
    assert sizes.of(SEQ) is SEQ


def test_rows_of_any_kind_share_a_kernel():
    from tilewright.graph.grouping import group_nodes

    tasks = []
    for rows in (ROWS, BATCH * 12, BATCH):
        graph = maps((rows, 4))
        (group,) = group_nodes(graph)
        tasks.append(task_of(group, graph.outputs, {}, 1))
    assert len({task.key for task in tasks}) == 1
    assert [print_node(task.sizes[0]) for task in tasks] == ["batch * seq", "batch * 12", "batch"]
