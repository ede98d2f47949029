import itertools

import pytest

from tests.expect import raises_code
from tests.programs import assert_same_meaning, matmul, matmul_relu
from tilewright.schedule import Schedule


@pytest.mark.parametrize("order", list(itertools.permutations(["i", "j", "k"])))
def test_reorder_any_permutation(rng, order):
    program = matmul(3, 4, 5)
    schedule = Schedule(program)
    schedule.reorder(*order)
    assert schedule.loops("C") == order
    assert_same_meaning(schedule, program, rng)


def test_reorder_tiles(golden, rng):
    program = matmul(10, 8, 6)
    schedule = Schedule(program)
    schedule.split("i", 4)
    schedule.split("j", 4)
    schedule.split("k", 3)
    schedule.reorder("i_0", "j_0", "k_0", "k_1", "i_1", "j_1")
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_reorder_leaves_loops_between_in_place():
    schedule = Schedule(matmul(3, 4, 5))
    schedule.reorder("k", "i")
    assert schedule.loops("C") == ("k", "j", "i")


def test_reorder_to_the_same_order_changes_nothing():
    schedule = Schedule(matmul(3, 4, 5))
    before = schedule.func
    schedule.reorder("i", "j", "k")
    assert schedule.func is before


def test_reorder_moves_unrolled_loops():
    schedule = Schedule(matmul(3, 4, 5))
    schedule.unroll("i")
    schedule.reorder("k", "i")
    assert schedule.loops("C") == ("k", "j", "i")


def test_reorder_rejects_moving_a_tile_out_of_its_tile_loop():
    schedule = Schedule(matmul(10, 4, 5))
    schedule.split("i", 4)
    with raises_code("S106", text="the extent of loop `i_1` depends on loop `i_0`"):
        schedule.reorder("i_1", "i_0")


def test_reorder_rejects_loops_of_two_nests():
    with raises_code("S109"):
        Schedule(matmul_relu()).reorder("i", "x")


def test_reorder_rejects_a_reduction_that_would_not_begin_at_zero():
    """Tiles of a loop that is both rows and sum: the first visit of a row is no longer k = 0."""
    schedule = Schedule(matmul(3, 4, 7))
    schedule.reorder("j", "i", "k")
    schedule.split(schedule.fuse("i", "k"), 3)
    with raises_code("V108", text="decompose_reduction"):
        schedule.reorder("i_k_1", "i_k_0")
