"""Movements that move nothing vanish, and two in a row are one."""

from __future__ import annotations

import pytest

from tests.rewriting import keeps, operators, picture, rewritten
from tilewright.dtypes import f32, f64
from tilewright.graph import Builder
from tilewright.graph.passes.movements import join_movements
from tilewright.tensor import ir as tir

N = tir.Var("n")


def test_two_slices_are_one(golden):
    b = Builder("slices")
    x = b.input("x", f32, (N, 9))
    first = b.remap(x, (N, 7), lambda i, j: [i, j + 2])
    second = b.remap(first, (N, 2), lambda i, j: [N - 1 - i, j * 2 + 3])
    assert golden == picture(b.graph([second], ["y"]), join_movements)


def test_movements_of_nothing_vanish():
    b = Builder("nothing")
    x = b.input("x", f32, (N, 4))
    same = b.remap(x, (N, 4), lambda i, j: [i, j])
    copied = b.map(lambda v: v, same)
    y = b.map(lambda v: v + 1.0, copied)
    assert operators(rewritten(b.graph([y]), join_movements)) == ["map(body=arg0 + 1.0, dtype=f32)"]


@pytest.mark.parametrize("second", ["pad", "cut", "cast", "repeat"])
def test_movements_that_move_something_stay(second):
    b = Builder("something")
    x = b.input("x", f32, (1, 4))
    made = {
        "pad": lambda: b.remap(x, (1, 5), lambda i, j: [i, j], lambda _, j: j < 4),
        "cut": lambda: b.remap(x, (1, 3), lambda i, j: [i, j]),
        "cast": lambda: b.map(lambda v: v.to(f64), x),
        "repeat": lambda: b.expand(x, (3, 4)),
    }[second]()
    assert keeps(b.graph([made]), join_movements)


def test_a_border_and_a_slice_of_it_stay_two():
    """What is outside of the source is not known to the slice."""
    b = Builder("border")
    x = b.input("x", f32, (4,))
    padded = b.remap(x, (6,), lambda i: [i - 1], lambda i: (i >= 1) & (i <= 4), 0.5)
    graph = b.graph([b.remap(padded, (5,), lambda i: [i])])
    assert keeps(graph, join_movements)


@pytest.mark.parametrize(
    "clamped",
    [lambda i: tir.maximum(i, 1), lambda i: tir.minimum(i + 1, 3), lambda i: 3 - tir.maximum(i, 1)],
)
def test_places_begin_at_zero(clamped):
    """Unlike sizes, which are at least one: `max(i, 1)` is not `i`."""
    b = Builder("clamped")
    x = b.input("x", f32, (4,))
    first = b.remap(x, (4,), lambda i: [clamped(i)])
    graph = b.graph([b.remap(first, (2,), lambda i: [i])])
    after = rewritten(graph, join_movements)
    assert len(after.nodes) == 1


def test_a_value_read_twice_is_still_followed():
    b = Builder("twice")
    x = b.input("x", f32, (6,))
    first = b.remap(x, (5,), lambda i: [i + 1])
    second = b.remap(first, (4,), lambda i: [i + 1])
    after = rewritten(b.graph([first, second]), join_movements)
    assert [node.inputs for node in after.nodes] == [(after.inputs[0],)] * 2
