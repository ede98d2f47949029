"""Layouts of values: shapes, what fits, borders that wait, indices both ways."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laid_out import HALO, NCHW, blocked, layouts
from tilewright.tensor import ir as tir
from tilewright.tensor.evaluate import Evaluator
from tilewright.tensor.layout import Fuse, LayoutStep, Pad, Reorder, Split, StoreAt, Unfold
from tilewright.tensor.stored import (
    innermost,
    is_bijective,
    is_long,
    is_turned,
    logical_index,
    misfit,
    settled,
    stored_index,
    stored_shape,
)

IMAGE = tuple(map(tir.Const, (1, 6, 4, 16)))


def numbers(shape: tuple[tir.Expr, ...]) -> tuple[int, ...]:
    return tuple(int(tir.int_value(d) or 0) for d in shape)


def packed(array: np.ndarray, steps: tuple[LayoutStep, ...]) -> np.ndarray:
    for step in steps:
        array = step.pack(array)
    return array


@pytest.mark.parametrize(
    ("steps", "shape"),
    [
        ((), (1, 6, 4, 16)),
        (NCHW, (1, 16, 6, 4)),
        (blocked(8), (1, 2, 6, 4, 8)),
        (HALO, (1, 8, 6, 16)),
        ((*HALO, *blocked(4)), (1, 4, 8, 6, 4)),
        ((Fuse(1, (6, 4)),), (1, 24, 16)),
    ],
)
def test_stored_shapes(steps, shape):
    assert numbers(stored_shape(IMAGE, steps)) == shape


def test_symbolic_dimensions_stay_symbolic():
    n = tir.Var("n")
    assert stored_shape((n, tir.Const(8)), (Reorder((1, 0)), Split(0, 4))) == (
        tir.Const(2),
        tir.Const(4),
        n,
    )


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Split(4, 2), "there is no dimension 4"),
        (Split(1, 4), "4 does not divide"),
        (Split(1, 0), "0 does not divide"),
        (Reorder((0, 1, 2)), "not an order of 4 dimensions"),
        (Fuse(3, (16, 2)), "there is no dimension 4"),
        (Fuse(1, (6, 5)), "elements, not 5"),
        (Fuse(1, (6,)), "fewer than two"),
        (Pad(1, -1, 0), "no fewer than 0"),
        (Unfold(1, 7, 1, 6), "do not fit 6 elements"),
        (Unfold(1, 3, 1, 8), "elements, not 8"),
        (StoreAt(0, "b", (16,)), "in another one"),
    ],
)
def test_steps_that_do_not_fit(step, reason):
    found = misfit(IMAGE, (step,))
    assert found is not None
    assert reason in found


def test_a_step_is_asked_about_what_the_ones_before_it_leave():
    assert misfit(IMAGE, (Split(3, 8), Split(4, 8))) is None
    assert misfit(IMAGE, (Pad(1, 0, 2), Split(1, 4))) is None


def test_borders_wait_behind_orders_and_blocks_of_other_dimensions():
    done, borders = settled(IMAGE, (*HALO, *blocked(8)))
    assert done == blocked(8)
    assert borders == (Pad(2, 1, 1), Pad(3, 1, 1))


def test_a_border_of_whole_blocks_waits():
    assert settled(IMAGE, (Pad(3, 8, 0), Split(3, 8))) == ((Split(3, 8),), (Pad(3, 1, 0),))


@pytest.mark.parametrize("last", [Split(3, 5), Fuse(2, (4, 20)), Unfold(3, 5, 5, 20)])
def test_a_border_that_others_depend_on_stays(last):
    assert settled(IMAGE, (Pad(3, 0, 4), last)) == ((Pad(3, 0, 4), last), ())


@given(data=st.data())
def test_settled_layouts_store_the_same(data):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    steps = data.draw(layouts(tuple(map(tir.Const, shape))))
    array = np.arange(1, prod(shape) + 1).reshape(shape)
    done, borders = settled(tuple(map(tir.Const, shape)), steps)
    assert np.array_equal(packed(array, (*done, *borders)), packed(array, steps))
    assert all(isinstance(step, Pad) for step in borders)


@given(data=st.data())
def test_indices_lead_to_memory_and_back(data):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    dims = tuple(map(tir.Const, shape))
    steps = data.draw(layouts(dims))
    array = np.arange(1, prod(shape) + 1).reshape(shape)
    memory = packed(array, steps)
    assert memory.shape == numbers(stored_shape(dims, steps))
    evaluator = Evaluator(tir.Func("indices", (), tir.Seq(())))
    for at in np.ndindex(*shape):
        place = [int(evaluator.value(i)) for i in stored_index(tuple(map(tir.Const, at)), steps)]
        assert memory[tuple(place)] == array[at]
    for place in np.ndindex(*memory.shape):
        where, inside = logical_index(dims, steps, tuple(map(tir.Const, place)))
        found = array[tuple(int(evaluator.value(i)) for i in where)]
        held = inside is None or bool(evaluator.value(inside))
        assert memory[place] == (found if held else 0)


def test_only_what_stores_every_element_once_is_bijective():
    assert is_bijective((*blocked(8), Fuse(0, (1, 2))))
    assert not is_bijective(HALO)
    assert not is_bijective((Unfold(1, 4, 2, 6),))


@pytest.mark.parametrize(
    ("steps", "dim"),
    [
        ((), 3),
        (NCHW, 2),
        (blocked(8), 3),
        (HALO, 3),
        ((*NCHW, Fuse(2, (6, 4))), 2),
        ((Reorder((3, 0, 2, 1)), Unfold(3, 4, 2, 6)), 1),
    ],
)
def test_neighbours_along_the_innermost_dimension_are_neighbours_in_memory(steps, dim):
    """The numbers in memory say so: a step of one along `dim` is a step of one there."""
    assert innermost(4, steps) == dim
    assert is_turned(4, steps) == (dim != 3)
    shape = numbers(IMAGE)
    memory = packed(np.arange(1, prod(shape) + 1).reshape(shape), steps)
    steps_of_one = prod(shape[dim + 1 :])
    assert memory[(*(n // 2 for n in memory.shape[:-1]), 1)] == (
        memory[(*(n // 2 for n in memory.shape[:-1]), 0)] + steps_of_one
    )


def test_a_scalar_has_no_innermost_dimension():
    assert innermost(0, ()) == -1
    assert not is_turned(0, ())


def test_the_innermost_dimension_is_long_or_unknown():
    assert is_long(IMAGE, NCHW, 4)
    assert not is_long(IMAGE, NCHW, 5)
    assert is_long((tir.Var("n"), tir.Const(2)), (Reorder((1, 0)),), 1000)
