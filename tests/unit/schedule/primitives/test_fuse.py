import pytest

from tests.expect import raises_code
from tests.programs import assert_same_meaning, copy_2d, matmul, symbolic_matmul, total
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir


def test_fuse_two_loops(golden, rng):
    schedule = Schedule(copy_2d(4, 6))
    assert schedule.fuse("i", "j") == "i_j"
    assert golden == schedule.func
    assert_same_meaning(schedule, copy_2d(4, 6), rng)


def test_fuse_three_loops_of_both_kinds(golden, rng):
    program = matmul(3, 4, 5)
    schedule = Schedule(program)
    schedule.fuse("i", "j", "k")
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_fuse_then_split(rng):
    program = matmul(3, 4, 5)
    schedule = Schedule(program)
    schedule.split(schedule.fuse("i", "j"), 8)
    assert_same_meaning(schedule, program, rng)


def test_fuse_of_two_reduction_loops(rng):
    program = total(4, 6)
    schedule = Schedule(program)
    schedule.fuse("p", "q")
    assert_same_meaning(schedule, program, rng)


def test_fuse_ignores_loops_of_one_iteration(rng):
    program = matmul(1, 4, 5)
    schedule = Schedule(program)
    schedule.fuse("i", "j")
    assert schedule.block("C").bindings[0] == tir.Const(0)
    assert_same_meaning(schedule, program, rng)


@pytest.mark.parametrize("m", [1, 4])
def test_fuse_with_a_symbolic_outer_extent(rng, m):
    program = symbolic_matmul()
    schedule = Schedule(program)
    schedule.fuse("i", "j")
    assert_same_meaning(schedule, program, rng, {"rows": m, "depth": 3})


def test_fuse_rejects_loops_in_the_wrong_order():
    with raises_code("S105", text="from the outside in"):
        Schedule(copy_2d()).fuse("j", "i")


def test_fuse_rejects_a_tile_with_its_tile_loop():
    schedule = Schedule(copy_2d(10, 6))
    schedule.split("i", 4)
    with raises_code("S106", text="depends on loop `i_0`"):
        schedule.fuse("i_0", "i_1")
