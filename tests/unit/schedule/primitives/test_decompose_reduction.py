import pytest

from tests.expect import raises_code
from tests.programs import assert_same_meaning, matmul, symbolic_matmul, total
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir


@pytest.mark.parametrize("loop", ["i", "j", "k"])
def test_decompose_at_each_loop(golden, rng, loop):
    program = matmul(3, 4, 5)
    schedule = Schedule(program)
    assert schedule.decompose_reduction("C", loop) == "C_init"
    assert schedule.block("C").init is None
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_decompose_inside_uneven_tiles(golden, rng):
    program = matmul(10, 8, 6)
    schedule = Schedule(program)
    schedule.split("i", 4)
    schedule.split("j", 4)
    schedule.split("k", 3)
    schedule.reorder("i_0", "j_0", "k_0", "k_1", "i_1", "j_1")
    schedule.vectorize("j_1")
    schedule.decompose_reduction("C", "k_0")
    assert schedule.loop("j_1_init").kind is tir.LoopKind.VECTOR
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_decompose_inside_uneven_tiles_of_tiles(rng):
    """The start values run through the same irregular loops as the sum."""
    program = matmul(26, 4, 6)
    schedule = Schedule(program)
    schedule.split("i", [(6, 3), (4, 2)])
    schedule.split("i_0", 2)
    schedule.split("k", 3)
    schedule.reorder("i_0_0", "k_0", "i_0_1", "k_1", "i_1", "j")
    schedule.decompose_reduction("C", "k_0")
    assert_same_meaning(schedule, program, rng)


@pytest.mark.parametrize("k", [1, 4])
def test_decompose_with_symbolic_sizes(rng, k):
    program = symbolic_matmul()
    schedule = Schedule(program)
    schedule.split("i", 2)
    schedule.decompose_reduction("C", "i_0")
    assert_same_meaning(schedule, program, rng, {"rows": 3, "depth": k})


def test_decompose_of_a_scalar_result(rng):
    program = total()
    schedule = Schedule(program)
    schedule.decompose_reduction("C", "p")
    assert_same_meaning(schedule, program, rng)


def test_decompose_of_a_blockized_tile(rng):
    program = matmul(4, 4, 6)
    schedule = Schedule(program)
    schedule.split("i", 2)
    schedule.split("k", 3)
    schedule.reorder("i_0", "k_0", "i_1", "j", "k_1")
    schedule.blockize("i_1")
    schedule.decompose_reduction("C_tile", "k_0")
    assert_same_meaning(schedule, program, rng)


def test_decompose_rejects_a_loop_inside_the_reduction():
    schedule = Schedule(total())
    with raises_code("S252", text="at `p` or further out"):
        schedule.decompose_reduction("C", "q")


def test_decompose_rejects_a_second_time():
    schedule = Schedule(matmul())
    schedule.decompose_reduction("C", "k")
    with raises_code("S250"):
        schedule.decompose_reduction("C", "k")
