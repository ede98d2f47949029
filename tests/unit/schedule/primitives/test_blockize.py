from tests.expect import raises_code
from tests.programs import assert_same_meaning, copy_2d, matmul, matmul_relu, vector_add
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


def test_iterators_are_divided_where_a_loop_around_has_several_extents(golden, rng):
    program = copy_2d(10, 4)
    schedule = Schedule(program)
    schedule.split("i", [(4, 1), (3, 2)])
    schedule.split("j", 2)
    schedule.reorder("i_0", "j_0", "i_1", "j_1")
    schedule.blockize("j_1")
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_iterators_are_divided_where_one_loop_around_moves_two(golden, rng):
    program = matmul(8, 12, 6)
    schedule = Schedule(program)
    for loop, size in (("i", 4), ("j", 3), ("k", 2)):
        schedule.split(loop, size)
    schedule.reorder("i_0", "j_0", "k_0", "i_1", "j_1", "k_1")
    schedule.fuse("i_0", "j_0")
    schedule.decompose_reduction("C", "k_0")
    schedule.blockize("i_1")
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_several_blocks_in_tiles_of_several_sizes_are_refused():
    schedule = Schedule(matmul_relu(10, 4, 3))
    schedule.split("x", [(4, 1), (3, 2)])
    schedule.split("y", 2)
    schedule.compute_at("C", "y_0")
    with raises_code("S401", text="loop `x_1` around the tile"):
        schedule.blockize("y_0")
