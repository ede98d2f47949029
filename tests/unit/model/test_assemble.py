"""Programs of small graphs: memory that values share, and outputs that are not computed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewriting import feeds_of
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph, Value, interpret
from tilewright.model.assemble import Assembled, assemble
from tilewright.model.module import Module, parts_of
from tilewright.runtime.program import Buffer, Call, Place
from tilewright.runtime.sizes import constant
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call

HOST = Target.host()
N = tir.Var("n")


def made(graph: Graph, threads: int = 1) -> Assembled:
    """The program of a graph, after a check that it computes what the graph means."""
    found = assemble(graph, HOST, threads)
    module = Module.of(found, parts_of(found, HOST, {}), threads, graph)
    feeds = feeds_of(graph)
    for array, wanted in zip(module.run(feeds), interpret(graph, feeds), strict=True):
        assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-6)
    return found


def buffers(found: Assembled, place: Place) -> list[Buffer]:
    return [buffer for buffer in found.program.buffers if buffer.place is place]


def weights(b: Builder, *shape: int) -> tir.Expr:
    return b.constant(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape), "w")


def test_a_constant_that_two_products_read_is_stored_once():
    b = Builder("shared")
    w = weights(b, 4, 24)
    x, y = b.input("x", f32, (N, 4)), b.input("y", f32, (N, 4))
    found = made(b.graph([b.matmul(x, w), b.matmul(y, w)]))
    assert [buffer.name for buffer in buffers(found, Place.WEIGHTS)] == ["w"]
    assert len(found.program.kernels) == 1
    assert len([step for step in found.program.steps if isinstance(step, Call)]) == 2


def test_a_constant_in_two_forms_is_stored_in_both():
    b = Builder("forms")
    w = weights(b, 24, 24)
    x = b.input("x", f32, (N, 24))
    found = made(
        b.graph([b.matmul(x, w), b.map(lambda v, k: v * k, b.input("z", f32, (24, 24)), w)])
    )
    assert {buffer.name for buffer in buffers(found, Place.WEIGHTS)} == {"w"}
    assert found.weights.nbytes >= 24 * 24 * 4


def test_views_are_the_memory_of_what_they_show():
    b = Builder("views")
    x = b.input("x", f32, (N, 6))
    y = b.map(lambda v: v + 1.0, b.reshape(x, (N, 2, 3)))
    z = b.reduce(tir.Fold.ADD, b.reshape(y, (N, 6)), (1,))
    found = made(b.graph([z], ["z"]))
    assert [b.name for b in found.program.buffers if b.place is Place.INPUT] == ["x"]
    assert len(buffers(found, Place.ARENA)) == 1
    assert len(buffers(found, Place.OUTPUT)) == 1


def test_outputs_are_computed_in_place():
    b = Builder("chain")
    x = b.input("x", f32, (N, 4))
    y = b.matmul(x, weights(b, 4, 4))
    shown = b.reshape(b.map(lambda v: call("tanh", v), y), (N * 4,))
    found = made(b.graph([shown, y], ["flat", "y"]))
    assert len(found.program.steps) == 2, "two kernels and no copy"
    assert buffers(found, Place.ARENA) == []
    assert {port.name for port in found.program.outputs} == {"flat", "y"}


def test_an_output_may_be_an_input_a_constant_or_a_view_of_them():
    b = Builder("given")
    x, c = b.input("x", f32, (N, 4)), weights(b, 2, 3)
    found = made(b.graph([x, c, b.reshape(x, (N * 4,))], ["same", "constant", "flat"]))
    assert found.program.steps == ()
    same, constant, flat = (port.buffer for port in found.program.outputs)
    assert same == flat == found.program.inputs[0].buffer
    assert found.program.buffers[constant].place is Place.WEIGHTS


def test_a_value_may_be_returned_twice():
    b = Builder("twice")
    x = b.input("x", f32, (N, 4))
    y = b.map(lambda v: v * v, x)
    graph = b.graph([y, y, b.reshape(y, (4 * N,))], ["a", "b", "c"])
    found = made(graph)
    assert len({port.buffer for port in found.program.outputs}) == 1
    module = Module.of(found, parts_of(found, HOST, {}), 1, graph)
    a, b_, c = module.run({"x": np.ones((2, 4), np.float32)})
    a[:] = 5
    assert b_.max() == c.max() == 1, "results are arrays of their own"


def test_what_is_returned_is_not_the_memory_of_an_input_or_of_weights():
    b = Builder("given")
    x, c = b.input("x", f32, (2,)), weights(b, 3)
    graph = b.graph([x, c])
    found = made(graph)
    module = Module.of(found, parts_of(found, HOST, {}), 1, graph)
    array = np.ones(2, np.float32)
    same, constant = module.run({"x": array})
    same[:], constant[:] = 7, 7
    assert array.tolist() == [1, 1]
    assert module.run({"x": array})[1].tolist() == [-1, 0, 1]


def test_temporaries_share_memory_where_they_can():
    """A chain of products: each one lives while the next one reads it."""
    b = Builder("long")
    y = b.input("x", f32, (N, 8))
    for _ in range(5):
        y = b.matmul(y, weights(b, 8, 8))
    found = made(b.graph([y]))
    arena = buffers(found, Place.ARENA)
    assert [(buffer.first, buffer.last) for buffer in arena] == [(k, k + 1) for k in range(4)]
    assert len(found.program.kernels) == 1


def test_steps_wait_for_what_they_read_only():
    b = Builder("waits")
    x, y = b.input("x", f32, (N, 4)), b.input("y", f32, (N, 4))
    first, second = b.matmul(x, weights(b, 4, 4)), b.matmul(y, weights(b, 4, 4))
    found = made(b.graph([first, second, b.matmul(first, weights(b, 4, 4))]), threads=2)
    assert [step.wait for step in found.program.steps] == [False, False, True]


def test_labels_and_work_are_told():
    b = Builder("labels")
    b.label = "/product"
    y = b.matmul(b.input("x", f32, (3, 4)), weights(b, 4, 4))
    b.label = "/relu"
    found = made(b.graph([b.map(lambda v: tir.maximum(v, 0.0), y)]))
    (step,) = found.program.steps
    assert step.label == "/product /relu"
    assert step.flops == ((0, 2 * 3 * 4 * 4),)


def test_progress_counts_distinct_kernels():
    b = Builder("progress")
    x = b.input("x", f32, (N, 8))
    y = b.matmul(b.matmul(x, weights(b, 8, 8)), weights(b, 8, 8))
    told: list[tuple[int, int]] = []
    assemble(b.graph([b.reduce(tir.Fold.ADD, y, (1,))]), HOST, 1, None, lambda *at: told.append(at))
    assert told == [(1, 2), (2, 2)]


# ---- results in place of inputs


def overwritten(found: Assembled) -> list[tuple[str, str]]:
    """(what is not needed any more, what is written over it) by name, without parts of loops."""
    every = found.program.buffers
    parts = [b for b in every if b.place is Place.PART and b.offset == constant(0)]
    return [(b.name, every[b.parent].name) for b in parts]


def residual(b: Builder, x: Value) -> Value:
    """x + tanh(x·W)·V, in two kernels."""
    small = [np.random.default_rng(k).uniform(-0.2, 0.2, (24, 24)) for k in range(2)]
    w, v = (b.constant(array.astype(np.float32)) for array in small)
    inner = b.map(lambda u: call("tanh", u), b.matmul(x, w))
    return b.map(tir.Add, b.matmul(inner, v), x)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_sum_takes_the_place_of_a_summand(threads):
    b = Builder("residual")
    y = b.matmul(b.input("x", f32, (N, 24)), weights(b, 24, 24))
    first = residual(b, y)
    found = made(b.graph([b.matmul(residual(b, first), weights(b, 24, 24))]), threads)
    last = overwritten(found)[-1][1]
    assert overwritten(found) == [(y.name, last), (first.name, last)]
    arena = buffers(found, Place.ARENA)
    assert [(a.name, a.first, a.last) for a in arena if a.name == last] == [(last, 0, 5)]


def test_an_input_an_output_and_what_is_read_later_are_not_overwritten():
    b = Builder("kept")
    x = b.input("x", f32, (N, 24))
    y = residual(b, x)
    z = residual(b, y)
    w = residual(b, z)
    found = made(b.graph([y, b.matmul(w, weights(b, 24, 24)), b.reduce(tir.Fold.ADD, z, (1,))]))
    assert overwritten(found) == []


def test_a_temporary_lives_in_the_output_that_it_becomes():
    b = Builder("output")
    y = b.matmul(b.input("x", f32, (N, 24)), weights(b, 24, 24))
    z = residual(b, y)
    found = made(b.graph([z], ["z"]))
    assert overwritten(found) == [(y.name, z.name)]
    assert [a.name for a in buffers(found, Place.OUTPUT)] == [z.name]
    assert len(buffers(found, Place.ARENA)) == 1


def test_two_views_of_one_memory_are_both_looked_at():
    """An element is read where it is written, and, through a view, somewhere else as well."""
    for crosses in (True, False):
        b = Builder("views")
        x, z = b.input("x", f32, (8, 8)), b.input("z", f32, (8, 8))
        y, product = b.matmul(x, weights(b, 8, 8)), b.matmul(z, weights(b, 8, 8))
        shown = b.reshape(y, (4, 2, 8))
        shown = b.transpose(shown, (1, 0, 2)) if crosses else b.reshape(shown, (2, 4, 8))
        one, two = b.reshape(product, (2, 4, 8)), b.reshape(y, (2, 4, 8))
        total = b.map(lambda p, q, r: p * q + r, one, two, shown)
        last = b.matmul(b.reshape(total, (8, 8)), weights(b, 8, 8))
        found = made(b.graph([last, product]))
        assert len(found.program.steps) == 4
        assert overwritten(found) == ([] if crosses else [(y.name, total.name)])


def test_it_can_be_left_out():
    b = Builder("apart")
    y = b.matmul(b.input("x", f32, (N, 24)), weights(b, 24, 24))
    graph = b.graph([residual(b, y)])
    assert overwritten(made(graph))
    assert not overwritten(assemble(graph, HOST, 1, in_place=False))
