import pytest

from tests.expect import raises_code
from tests.programs import assert_same_meaning, matmul, symbolic_add, symbolic_matmul, vector_add
from tilewright.schedule import Schedule
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir


def test_split_by_a_divisor(golden, rng):
    schedule = Schedule(vector_add(32))
    assert schedule.split("i", 8) == ("i_0", "i_1")
    assert golden == schedule.func
    assert_same_meaning(schedule, vector_add(32), rng)


def test_split_covers_the_extent_exactly(golden, rng):
    schedule = Schedule(vector_add(32))
    schedule.split("i", [(6, 4), (4, 2)])
    assert golden == schedule.func
    assert_same_meaning(schedule, vector_add(32), rng)


def test_split_leaves_one_shorter_tile(golden, rng):
    schedule = Schedule(vector_add(30))
    schedule.split("i", 8)
    assert golden == schedule.func
    assert_same_meaning(schedule, vector_add(30), rng)


@pytest.mark.parametrize("n", [1, 3, 4, 5, 11])
def test_split_of_a_symbolic_extent(golden, rng, n):
    program = symbolic_add()
    schedule = Schedule(program)
    schedule.split("i", 4)
    if n == 1:
        assert golden == schedule.func
    assert_same_meaning(schedule, program, rng, {"n": n})


def test_split_of_the_tile_loop_of_an_uneven_cover(golden, rng):
    program = vector_add(32)
    schedule = Schedule(program)
    schedule.split("i", [(6, 4), (4, 2)])
    schedule.split("i_0", 4)
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_split_inside_uneven_tiles_by_a_common_divisor(golden, rng):
    program = vector_add(32)
    schedule = Schedule(program)
    schedule.split("i", [(6, 4), (4, 2)])
    schedule.split("i_1", 2)
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_split_inside_uneven_tiles_by_more_than_the_largest(rng):
    program = vector_add(32)
    schedule = Schedule(program)
    schedule.split("i", [(6, 4), (4, 2)])
    schedule.split("i_1", 8)
    assert schedule.loop("i_1_0").extent == tir.Const(1)
    assert_same_meaning(schedule, program, rng)


def test_split_by_more_than_the_extent_is_one_tile(rng):
    program = vector_add(5)
    schedule = Schedule(program)
    schedule.split("i", 8)
    assert (schedule.loop("i_0").extent, schedule.loop("i_1").extent) == (
        tir.Const(1),
        tir.Const(5),
    )
    assert_same_meaning(schedule, program, rng)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_split_of_a_symbolic_reduction(rng, k):
    program = symbolic_matmul()
    schedule = Schedule(program)
    schedule.split("k", 3)
    schedule.split("i", 2)
    assert_same_meaning(schedule, program, rng, {"rows": 5, "depth": k})


def test_split_keeps_notes_on_the_tile_loop():
    schedule = Schedule(vector_add(8))
    schedule.annotate("i", "role", "rows")
    schedule.split("i", 4)
    assert schedule.loop("i_0").notes == (("role", "rows"),)
    assert schedule.loop("i_1").notes == ()


def test_split_takes_names_that_are_free():
    schedule = Schedule(matmul(8, 8, 8))
    schedule.split("i", 4)
    schedule.split("i_0", 2)
    assert schedule.loops("C") == ("i_0_0", "i_0_1", "i_1", "j", "k")


def test_split_rejects_a_cover_that_leaves_a_rest():
    with raises_code("S102", text="add a tile of 2"):
        Schedule(vector_add(32)).split("i", [(6, 5)])


def test_split_rejects_tiles_inside_tiles_of_several_sizes():
    schedule = Schedule(vector_add(32))
    schedule.split("i", [(6, 4), (4, 2)])
    with raises_code("S104", text="split the micro tile first, then the tile loop"):
        schedule.split("i_1", 4)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 11, 12, 23])
def test_split_by_sizes_from_large_to_small(golden, rng, n):
    program = symbolic_add()
    schedule = Schedule(program)
    schedule.split("i", [6, 4, 1])
    if n == 1:
        assert golden == schedule.func
    assert_same_meaning(schedule, program, rng, {"n": n})


def test_split_of_a_number_by_sizes_from_large_to_small(rng):
    program = vector_add(23)
    schedule = Schedule(program)
    schedule.split("i", [6, 4, 1])
    assert schedule.loop("i_1").extent.cover == covers.of((6, 3), (4, 1), (1, 1))
    assert_same_meaning(schedule, program, rng)


@pytest.mark.parametrize(
    ("program", "tiles", "code"),
    [
        (symbolic_add, [6, 4], "S102"),
        (lambda: vector_add(23), [6, 4], "S102"),
        (symbolic_add, [4, 6, 1], "S103"),
        (symbolic_add, [6, 6, 1], "S103"),
        (symbolic_add, [6, 0], "S103"),
        (symbolic_add, [], "S103"),
        (symbolic_add, [6, (4, 1)], "S002"),
    ],
)
def test_sizes_that_are_refused(program, tiles, code):
    with raises_code(code):
        Schedule(program()).split("i", tiles)


def test_sizes_inside_uneven_tiles_are_refused():
    schedule = Schedule(vector_add(32))
    schedule.split("i", [(6, 4), (4, 2)])
    with raises_code("S104"):
        schedule.split("i_1", [2, 1])
