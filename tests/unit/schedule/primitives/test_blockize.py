from tests.expect import raises_code
from tests.programs import assert_same_meaning, copy_2d, matmul, vector_add
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir


def test_blockize_a_tile(golden, rng):
    program = copy_2d(4, 6)
    schedule = Schedule(program)
    schedule.split("i", 2)
    assert schedule.blockize("i_1") == "C_tile"
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_blockize_takes_the_start_value_out(golden, rng):
    program = matmul(4, 4, 6)
    schedule = Schedule(program)
    schedule.split("i", 2)
    schedule.split("k", 3)
    schedule.reorder("i_0", "k_0", "i_1", "j", "k_1")
    schedule.blockize("i_1")
    assert schedule.block("C_tile").init is not None
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_blockize_keeps_the_start_value_inside_a_whole_reduction(rng):
    program = matmul(4, 4, 6)
    schedule = Schedule(program)
    schedule.blockize("k")
    assert schedule.block("C_tile").init is None
    assert schedule.block("C").init is not None
    assert_same_meaning(schedule, program, rng)


def test_blockize_uneven_tiles(golden, rng):
    program = vector_add(30)
    schedule = Schedule(program)
    schedule.split("i", [(8, 3), (6, 1)])
    schedule.blockize("i_1")
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_blockize_inside_a_block(rng):
    program = vector_add(32)
    schedule = Schedule(program)
    schedule.split("i", 8)
    schedule.split("i_1", 2)
    schedule.blockize("i_1_0")
    assert schedule.blockize("i_1_1") == "C_tile_1"
    assert_same_meaning(schedule, program, rng)


def test_loops_around_a_blockized_tile_can_be_scheduled(rng):
    program = matmul(4, 4, 6)
    schedule = Schedule(program)
    for loop in ("i", "j", "k"):
        schedule.split(loop, 2)
    schedule.reorder("i_0", "j_0", "k_0", "i_1", "j_1", "k_1")
    schedule.blockize("i_1")
    schedule.reorder("j_0", "i_0")
    schedule.parallel("j_0")
    assert schedule.loop("j_0").kind is tir.LoopKind.PARALLEL
    assert_same_meaning(schedule, program, rng)


def test_blockize_rejects_uneven_loops_around():
    schedule = Schedule(copy_2d(10, 4))
    schedule.split("i", 4)
    with raises_code("S401", text="loop `i_1` around the tile"):
        schedule.blockize("j")
