"""Groups as tensor programs: which of them are one kernel."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.dtypes import f32, f64
from tilewright.graph import Builder
from tilewright.graph.grouping import group_nodes
from tilewright.model.compile_kernels import compile_tasks
from tilewright.model.kernels import KernelTask, compile_task, task_of
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.printer import print_node

N, S = tir.Var("n"), tir.Var("s")


def product(rows=N, width=4, dtype=f32, scale=2.0, weights=True, threads=1, name="x") -> KernelTask:
    """`scale · x @ w` as a task; the weights are a constant or an input."""
    b = Builder(name)
    x = b.input(name, dtype, (rows, 4))
    array = np.ones((4, width), dtype.numpy)
    w = b.constant(array, f"{name}_w") if weights else b.input("w", dtype, (4, width))
    graph = b.graph([b.map(lambda v: v * scale, b.matmul(x, w))])
    (group,) = group_nodes(graph)
    return task_of(group, graph.outputs, graph.constants, threads)


def test_names_do_not_matter():
    assert product().key == product(name="other").key
    assert product(rows=S).key == product(rows=N).key


@pytest.mark.parametrize(
    "other",
    [
        {"rows": 3}, {"width": 5}, {"dtype": f64}, {"scale": 3.0}, {"weights": False},
        {"threads": 2},
    ],
    ids=str,
)  # fmt: skip
def test_another_program_or_another_way_to_run_it_is_another_kernel(other):
    assert product(**other).key != product().key


def test_a_task_knows_the_values_behind_its_parameters():
    task = product(rows=N * S)
    assert [value.name for value in task.params] == ["x", "x_w", "map"]
    assert task.constants == {"p1"}
    assert [p.name for p in task.program.params] == ["p0", "p1", "p2"]
    assert [print_node(size) for size in task.sizes] == ["n * s"]


def test_a_size_that_no_parameter_tells_has_one_of_its_own():
    """Such as the number of an iteration; it is never read."""
    b = Builder()
    x = b.input("x", f32, (4,))
    graph = b.graph([b.remap(x, (2,), lambda i: [i + (S - 1)])])
    (group,) = group_nodes(graph)
    task = task_of(group, graph.outputs, {}, 1)
    assert [p.name for p in task.program.params] == ["p0", "size0", "p1"]
    assert [value.name for value in task.params] == ["x", "remap", "remap"]
    assert task.sizes == (S,)


def test_equal_tasks_are_compiled_once():
    told = []
    tasks = [product(), product(name="y"), product(scale=3.0), product()]
    made = compile_tasks(tasks, Target.host(), None, told.append)
    assert set(made) == {task.key for task in tasks}
    assert {task.key for task in told} == set(made)
    assert len(told) == 2
    assert len(made) == 2


def test_a_constant_is_packed_as_its_kernel_wants_it():
    task = product(width=40)
    packings = compile_task(task, Target.host()).interface.packings
    assert packings.keys() == {1}, "what is no constant stays as it is"
    array = np.arange(160, dtype=np.float32).reshape(4, 40)
    packed = packings[1].pack(array)
    assert set(array.flat) <= set(packed.flat), "nothing is lost"


def test_kernels_of_one_image_have_names_of_their_own():
    tasks = [product(), product(scale=3.0)]
    names = {compile_task(task, Target.host()).interface.symbol for task in tasks}
    assert len(names) == 2
