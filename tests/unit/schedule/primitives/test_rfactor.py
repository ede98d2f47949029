import pytest

from tests.expect import raises_code
from tests.programs import assert_same_meaning, matmul, row_sum, total
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    compute,
    func,
    max_over,
    min_over,
    placeholder,
    product_over,
    reduce_axis,
)


def test_rfactor_of_the_inner_loop(golden, rng):
    program = row_sum(4, 12)
    schedule = Schedule(program)
    schedule.split("k", 4)
    assert schedule.rfactor("k_1", axis=-1) == "C_rf"
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_rfactor_of_the_outer_loop_and_parallel(golden, rng):
    program = row_sum(4, 12)
    schedule = Schedule(program)
    schedule.split("k", 4)
    schedule.reorder("k_0", "i")
    schedule.rfactor("k_0")
    schedule.parallel("k_0")
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_rfactor_lanes_then_vectorize(rng):
    program = row_sum(4, 12)
    schedule = Schedule(program)
    schedule.split("k", 4)
    schedule.rfactor("k_1", axis=1)
    schedule.vectorize("k_1")
    assert schedule.loop("k_1").kind is tir.LoopKind.VECTOR
    assert_same_meaning(schedule, program, rng)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_rfactor_puts_the_dimension_where_it_is_told(rng, axis):
    program = matmul(2, 3, 8)
    schedule = Schedule(program)
    schedule.split("k", 4)
    schedule.rfactor("k_0", axis=axis)
    shape = [2, 3]
    shape.insert(axis if axis >= 0 else axis + 3, 2)
    assert schedule.buffer("C_rf").shape == tuple(map(tir.Const, shape))
    assert_same_meaning(schedule, program, rng)


def test_rfactor_of_the_whole_reduction_needs_no_start_value(rng):
    program = row_sum(3, 5)
    schedule = Schedule(program)
    schedule.rfactor("k")
    assert schedule.block("C_rf").init is None
    assert_same_meaning(schedule, program, rng)


def test_rfactor_of_one_of_two_axes(golden, rng):
    program = total(4, 6)
    schedule = Schedule(program)
    schedule.rfactor("p")
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


@pytest.mark.parametrize("fold", [product_over, min_over, max_over])
def test_rfactor_of_other_folds(rng, fold):
    a = placeholder("A", (3, 8))
    k = reduce_axis(8, "k")
    program = func("fold", [a], [compute("C", (3,), lambda i: fold(a[i, k], k))])
    schedule = Schedule(program)
    schedule.split("k", 4)
    schedule.rfactor("k_1")
    assert_same_meaning(schedule, program, rng)


def test_rfactor_rejects_uneven_tiles():
    schedule = Schedule(row_sum(4, 10))
    schedule.split("k", 4)
    with raises_code("S263", text="before the loop is split"):
        schedule.rfactor("k_0")


def test_rfactor_rejects_a_spatial_loop():
    with raises_code("S262"):
        Schedule(matmul()).rfactor("i")
