"""`reverse_compute_at`: a consumer runs on what one iteration of a loop has finished."""

from __future__ import annotations

import pytest

from tests.expect import raises_code
from tests.moving import chain, dense, rows, stencil
from tests.programs import assert_same_meaning
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, size


def test_elementwise_consumer(golden, rng):
    program = chain(64)
    s = Schedule(program)
    s.split("i", 16)
    assert s.reverse_compute_at("C", "i_0") == "C_i"
    assert golden == s.func
    assert_same_meaning(s, program, rng)


def test_copy_out_of_a_register_tile(golden, rng):
    program = dense(13, 20, 10)
    s = Schedule(program)
    s.cache_write("C", "register")
    s.split("i", 6)
    s.split("j", [(8, 1), (6, 2)])
    s.reorder("i_0", "j_0", "k", "i_1", "j_1")
    assert s.reverse_compute_at("C_write", "j_0") == ("C_write_0", "C_write_1")
    assert golden == s.func
    assert s.block("C_write").predicate == tir.TRUE
    assert_same_meaning(s, program, rng)


def test_epilogue_at_an_outer_loop(rng):
    program = dense(12, 8, 6, relu=True)
    s = Schedule(program)
    rows, row = s.split("i", 4)
    columns, column = s.split("j", 4)
    s.reorder(rows, columns, row, column, "k")
    s.reverse_compute_at("D", columns)
    s.reverse_compute_at("E", rows)
    assert [s.loop(n).extent for n in s.loops("E")] == [tir.Const(n) for n in (3, 4, 8)]
    assert_same_meaning(s, program, rng)


def test_position_is_behind_the_last_producer(rng):
    program = dense(12, 8, 6, relu=True)
    s = Schedule(program)
    tile, row = s.split("i", 4)
    s.decompose_reduction("C", row)
    s.reverse_compute_at("D", tile)
    assert s.blocks() == ("C_init", "C", "D", "E")
    assert_same_meaning(s, program, rng)


def test_gaps_between_the_elements_are_noticed():
    """The outer loop runs inside: one iteration computes every fourth element."""
    s = Schedule(chain(12))
    tile, inside = s.split("i", 4)
    s.reorder(inside, tile)
    with raises_code("S212", text="is not what block `C` reads"):
        s.reverse_compute_at("C", inside)


def test_stencil_does_not_read_one_to_one():
    s = Schedule(stencil(16))
    s.split("i", 6)
    with raises_code("S212"):
        s.reverse_compute_at("C", "i_0")


def test_whole_producer_under_a_loop_is_always_ready(rng):
    program = rows(4, 12)
    s = Schedule(program)
    assert s.reverse_compute_at("C", "i") == ("C_i", "C_k")
    assert_same_meaning(s, program, rng)


def test_reduction_in_parts_follows_its_producer(golden, rng):
    """Each tile of `B` is added to the row sums while it is there."""
    program = rows(4, 12)
    s = Schedule(program)
    s.split("j", 5)
    s.reorder("i", "j_0", "j_1")
    s.reverse_compute_at("C", "j_0")
    assert golden == s.func
    assert_same_meaning(s, program, rng)


def test_upsampling_consumer(rng):
    a = placeholder("A", (6,))
    b = compute("B", (6,), lambda i: a[i] * 2.0)
    c = compute("C", (24,), lambda i: b[i // 4] + 1.0)
    program = func("upsample", [a], [c])
    s = Schedule(program)
    s.split("i", 2)
    s.reverse_compute_at("C", "i_0")
    assert [tir.int_value(s.loop(n).extent) for n in s.loops("C")] == [3, 8]
    assert_same_meaning(s, program, rng)


def test_layout_of_the_buffer_between(golden, rng):
    program = chain(24)
    s = Schedule(program)
    s.layout_split("B", 0, 4)
    s.split("i", 6)
    s.reverse_compute_at("C", "i_0")
    assert golden == s.func
    assert_same_meaning(s, program, rng)


@pytest.mark.parametrize("n", [1, 7, 16])
def test_symbolic_size(rng, n):
    program = chain(size("n"))
    s = Schedule(program)
    s.split("i", 8)
    s.reverse_compute_at("C", "i_0")
    assert_same_meaning(s, program, rng, {"n": n})
