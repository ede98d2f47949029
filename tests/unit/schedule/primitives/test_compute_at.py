"""`compute_at`: the part of a producer that one iteration of a loop needs."""

from __future__ import annotations

import pytest

from tests.moving import chain, dense, diamond, integers, stencil, windowed
from tests.programs import assert_same_meaning
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, size


def extents(schedule: Schedule, block: str) -> list[object]:
    """The extents of the loops around a block; a tile size stays an expression."""
    found = []
    for name in schedule.loops(block):
        extent = schedule.loop(name).extent
        found.append(tir.int_value(extent) or type(extent).__name__)
    return found


def test_elementwise_producer(golden, rng):
    program = chain(64)
    s = Schedule(program)
    s.split("i_1", 16)
    assert s.compute_at("B", "i_1_0") == "B_i"
    assert golden == s.func
    assert_same_meaning(s, program, rng)


def test_copy_of_a_matmul_operand_gets_the_tiles_of_the_cover(golden, rng):
    program = dense(13, 20, 10)
    s = Schedule(program)
    s.split("i", [(5, 2), (3, 1)])
    s.split("k", 4)
    s.reorder("i_0", "k_0", "i_1", "j", "k_1")
    s.cache_read("C", "A")
    assert s.compute_at("A_read", "k_0") == ("A_read_0", "A_read_1")
    assert golden == s.func
    assert s.block("A_read").predicate == tir.TRUE
    assert_same_meaning(s, program, rng)


def test_irregular_cover(rng):
    program = dense(13, 20, 10)
    s = Schedule(program)
    s.split("j", [(8, 1), (6, 2)])
    s.reorder("j_0", "i", "k", "j_1")
    s.cache_read("C", "B")
    s.compute_at("B_read", "j_0")
    assert extents(s, "B_read") == [3, 10, "TileSize"]
    assert s.block("B_read").predicate == tir.TRUE
    assert_same_meaning(s, program, rng)


def test_all_tiles_of_a_cover_together_are_the_whole(rng):
    """The tile loop runs inside: start and size of the tiles add up to the extent."""
    program = dense(4, 20, 6)
    s = Schedule(program)
    s.split("j", [(8, 1), (6, 2)])
    s.split("k", 4)
    s.reorder("k_0", "i", "j_0", "j_1", "k_1")
    s.cache_read("C", "B")
    s.compute_at("B_read", "k_0")
    assert extents(s, "B_read") == [2, "TileSize", 20]
    assert_same_meaning(s, program, rng)


def test_halo_of_a_stencil_is_computed_twice(golden, rng):
    program = stencil(24)
    s = Schedule(program)
    s.split("i_1", 8)
    s.compute_at("B", "i_1_0")
    assert golden == s.func
    assert_same_meaning(s, program, rng)


def test_reduction_keeps_its_whole_range(rng):
    program = dense(12, 8, 6, relu=True)
    s = Schedule(program)
    s.split("i_1", 4)
    assert s.compute_at("C", "i_1_0") == ("C_i", "C_j", "C_k")
    assert extents(s, "C") == [3, 4, 8, 6]
    assert_same_meaning(s, program, rng)


def test_position_is_before_the_first_consumer(rng):
    program = diamond(16)
    s = Schedule(program)
    s.split("i_1", 4)
    s.reverse_compute_at("D", "i_1_0")
    s.reverse_compute_at("E", "i_1_0")
    s.compute_at("B", "i_1_0")
    assert s.blocks() == ("B", "C", "D", "E")
    assert_same_meaning(s, program, rng)


def test_hull_of_several_consumers(rng):
    """`C` reads B[i], `D` reads B[i + 1]: together the tile and one more."""
    program = diamond(16, shift=1)
    s = Schedule(program)
    s.split("i_1", 4)
    s.reverse_compute_at("D", "i_1_0")
    s.compute_at("B", "i_1_0")
    assert extents(s, "B") == [4, 5]
    assert_same_meaning(s, program, rng)


def test_window_of_a_strided_convolution(golden, rng):
    program = windowed(8, stride=2)
    s = Schedule(program)
    s.split("i_1", 4)
    s.compute_at("B", "i_1_0")
    assert golden == s.func
    assert_same_meaning(s, program, rng)


def test_region_that_can_leave_the_domain_is_guarded(rng):
    program = windowed(10, stride=1, clamped=True)
    s = Schedule(program)
    s.split("i_1", 4)
    s.compute_at("B", "i_1_0")
    assert s.block("B").predicate != tir.TRUE
    assert_same_meaning(s, program, rng)


def test_same_layout_on_both_sides(golden, rng):
    """Both accesses have the form `v // 4, v % 4`: the tile is found although 6 does not fit 4."""
    program = chain(24)
    s = Schedule(program)
    s.layout_split("B", 0, 4)
    s.split("i_1", 6)
    s.compute_at("B", "i_1_0")
    assert extents(s, "B") == [4, 6]
    assert golden == s.func
    assert_same_meaning(s, program, rng)


def test_simplified_layout_on_one_side(rng):
    """The consumer was made for the layout: its indices are the digits of the producer's."""
    a = placeholder("A", (24,))
    b = compute("B", (6, 4), lambda i, j: a[i * 4 + j] * 2.0)
    c = compute("C", (6, 4), lambda i, j: b[i, j] + 1.0)
    program = func("digits", [a], [c])
    s = Schedule(program)
    s.layout_fuse("B", 0)
    s.compute_at("B", "i_1")
    assert extents(s, "B") == [6, 1, 4]
    assert_same_meaning(s, program, rng)


@pytest.mark.parametrize("n", [1, 5, 16, 23])
def test_symbolic_size(rng, n):
    program = chain(size("n"))
    s = Schedule(program)
    s.split("i_1", 8)
    s.compute_at("B", "i_1_0")
    assert extents(s, "B")[1] == "TileSize"
    assert_same_meaning(s, program, rng, {"n": n})


def test_move_further_in(rng):
    program = chain(64)
    s = Schedule(program)
    s.split("i_1", 16)
    s.split("i_1_1", 4)
    s.compute_at("B", "i_1_0")
    s.compute_at("B", "i_1_1_0")
    assert extents(s, "B") == [4, 4, 4]
    assert_same_meaning(s, program, rng)


def test_integers_are_exact(rng):
    program = integers(12)
    s = Schedule(program)
    s.split("i_1", 5)
    s.compute_at("B", "i_1_0")
    assert_same_meaning(s, program, rng)
