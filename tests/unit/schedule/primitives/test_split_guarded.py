import pytest

from tests.expect import raises_code
from tests.programs import assert_same_meaning, symbolic_add, symbolic_matmul, vector_add
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import find_block


@pytest.mark.parametrize("n", [1, 3, 4, 5, 11])
def test_split_guarded_of_a_symbolic_extent(golden, rng, n):
    program = symbolic_add()
    schedule = Schedule(program)
    assert schedule.split_guarded("i", 4) == ("i_0", "i_1")
    schedule.vectorize("i_1")
    if n == 1:
        assert golden == schedule.func
    assert_same_meaning(schedule, program, rng, {"n": n})


def test_split_guarded_of_a_number(golden, rng):
    schedule = Schedule(vector_add(30))
    schedule.split_guarded("i", 8)
    assert golden == schedule.func
    assert_same_meaning(schedule, vector_add(30), rng)


def test_split_guarded_needs_no_predicate_for_full_tiles(rng):
    schedule = Schedule(vector_add(32))
    schedule.split_guarded("i", 8)
    assert find_block(schedule.func, "C").predicate == tir.TRUE
    assert_same_meaning(schedule, vector_add(32), rng)


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_split_guarded_of_a_symbolic_reduction(rng, k):
    program = symbolic_matmul()
    schedule = Schedule(program)
    schedule.split_guarded("k", 3)
    schedule.split_guarded("i", 2)
    assert_same_meaning(schedule, program, rng, {"m": 3, "n": 2, "k": k})


def test_split_guarded_rejects_loops_that_are_not_serial():
    schedule = Schedule(vector_add(32))
    schedule.parallel("i")
    with raises_code("S101"):
        schedule.split_guarded("i", 8)


def test_split_guarded_rejects_empty_tiles():
    with raises_code("S103"):
        Schedule(vector_add(32)).split_guarded("i", 0)


def test_split_guarded_rejects_tiles_inside_tiles_of_several_sizes():
    schedule = Schedule(vector_add(32))
    schedule.split("i", [(6, 4), (4, 2)])
    with raises_code("S104"):
        schedule.split_guarded("i_1", 4)
