"""The flagship schedules: a matmul whose tile lives in registers, with everything around it.

Each is compared with the text that a person has read, and with the meaning of the plain program.
"""

from __future__ import annotations

import pytest

from tests.moving import dense, windowed
from tests.packing import packed_run
from tests.programs import assert_same_meaning, integers_for
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, select, sum_over
from tilewright.tensor.interpret import interpret


def tiled(s: Schedule, rows: object = 6, columns: object = 16, depth: object = 4) -> list[str]:
    """Loops in the order: tiles of rows, columns, depth; then depth, rows, columns inside."""
    i_0, i_1 = s.split("i", rows)
    j_0, j_1 = s.split("j", columns)
    k_0, k_1 = s.split("k", depth)
    s.reorder(i_0, j_0, k_0, k_1, i_1, j_1)
    return [i_0, j_0, k_0, k_1, i_1, j_1]


def assert_same_packed(s: Schedule, program: tir.Func, rng: object) -> None:
    inputs = integers_for(program, rng)
    found, expected = packed_run(program, s.func, inputs), interpret(program, inputs)
    for name, value in expected.items():
        assert (found[name] == value).all(), str(s.func)


def test_register_tile_with_packed_operands_and_epilogue(golden, rng):
    program = dense(13, 40, 10, relu=True)
    s = Schedule(program)
    # B is packed ahead into zero-padded panels of 16 columns.
    s.layout_pad("B", 1, 0, 8)
    s.layout_split("B", 1, 16)
    s.layout_reorder("B", [1, 0, 2])
    # The tile of C lives in registers; the copy out adds the bias and clips.
    s.cache_write("C", "register")
    i_0, j_0, k_0, _, i_1, j_1 = tiled(s)
    s.reverse_compute_at("C_write", j_0)
    s.reverse_compute_inline("D")
    s.reverse_compute_inline("E")
    # A is packed while it is used, tile by tile, rows running fastest.
    s.cache_read("C", "A")
    s.compute_at("A_read", i_0)
    s.layout_reorder("A_read", [1, 0])
    s.unroll(i_1)
    s.vectorize(j_1)
    assert golden == s.func
    assert s.blocks() == ("A_read", "C", "C_write")
    assert all(s.block(b).predicate == tir.TRUE for b in s.blocks())
    assert k_0 in s.loops("C")
    assert_same_packed(s, program, rng)


@pytest.mark.parametrize(
    ("rows", "columns", "depth"),
    [(6, 16, 4), ([(5, 2), (3, 1)], [(8, 1), (6, 2)], [(4, 1), (3, 2)]), (13, 20, 10), (1, 1, 1)],
    ids=["uniform", "covers", "whole", "ones"],
)
def test_any_cover(rng, rows, columns, depth):
    program = dense(13, 20, 10, relu=True)
    s = Schedule(program)
    s.cache_write("C", "register")
    i_0, j_0, k_0, *_ = tiled(s, rows, columns, depth)
    s.reverse_compute_at("C_write", j_0)
    s.reverse_compute_at("D", j_0)
    s.reverse_compute_at("E", i_0)
    s.cache_read("C", "A")
    s.compute_at("A_read", k_0)
    s.cache_read("C", "B")
    s.compute_at("B_read", j_0)
    assert all(s.block(b).predicate == tir.TRUE for b in s.blocks())
    assert_same_meaning(s, program, rng)


def test_sum_split_over_depth(golden, rng):
    """`rfactor` over blocks of depth, the partial tile in registers under the tile loops."""
    program = dense(13, 20, 12, relu=True)
    s = Schedule(program)
    depth = tiled(s, 6, 16, 4)[2]
    assert s.rfactor(depth) == "C_rf"
    fold = s.loops("C")
    tiles, inside, blocks = fold[:2], fold[2:4], fold[4]
    s.reorder(*tiles, blocks, *inside)
    made = s.compute_at("C_rf", blocks)
    assert made == ("C_rf_i", "C_rf_j", "C_rf_k_0", "C_rf_k_1")
    s.set_scope("C_rf", "register")
    s.reverse_compute_at("D", tiles[1])
    s.reverse_compute_inline("E")
    assert golden == s.func
    assert s.blocks() == ("C_rf", "C", "D")
    assert_same_meaning(s, program, rng)


def test_producer_of_the_left_operand_is_fused(rng):
    """`A` is computed by the kernel itself, one row tile at a time."""
    x, b, r = placeholder("X", (13, 10)), placeholder("B", (10, 20)), reduce_axis(10, "k")
    a = compute("A", (13, 10), lambda y, z: tir.maximum(x[y, z], 0.0))
    c = compute("C", (13, 20), lambda i, j: sum_over(a[i, r] * b[r, j], r))
    program = func("relu_matmul", [x, b], [c])
    s = Schedule(program)
    i_0, *_ = tiled(s, 6, 8, 5)
    s.compute_at("A", i_0)
    assert s.blocks() == ("A", "C")
    assert_same_meaning(s, program, rng)


def test_convolution_reads_stored_zeros(golden, rng):
    """pad → conv → relu: the producer writes into a halo, the convolution tests nothing."""
    x, w = placeholder("X", (3, 8, 9)), placeholder("W", (4, 3, 3, 3))
    a = compute("A", (3, 8, 9), lambda c, h, v: x[c, h, v] * 2.0)
    p = compute("P", (3, 10, 11), lambda c, h, v: _padded(a, c, h - 1, v - 1))
    c, r, q = reduce_axis(3, "c"), reduce_axis(3, "r"), reduce_axis(3, "q")
    y = compute(
        "Y", (4, 8, 9), lambda o, h, v: sum_over(p[c, h + r, v + q] * w[o, c, r, q], c, r, q)
    )
    z = compute("Z", (4, 8, 9), lambda o, h, v: tir.maximum(y[o, h, v], 0.0))
    program = func("conv", [x, w], [z])
    s = Schedule(program)
    s.compute_inline("P")
    s.layout_pad("A", 1, 1, 1)
    s.layout_pad("A", 2, 1, 1)
    o, h, v, *reduce = s.loops("Y")
    rows, row = s.split(h, 4)
    s.reorder(rows, o, row, v, *reduce)
    s.reverse_compute_at("Z", o)
    assert golden == s.func
    assert "select" not in str(s.func)
    assert_same_meaning(s, program, rng)
    s.compute_at("A", rows)  # each tile of rows with its halo; the zeros stay outside
    assert [tir.int_value(s.loop(n).extent) for n in s.loops("A")] == [2, 3, 6, 9]
    assert s.block("A").predicate != tir.TRUE
    assert_same_meaning(s, program, rng)


def _padded(a: object, c: tir.Expr, h: tir.Expr, v: tir.Expr) -> tir.Expr:
    inside = (h >= 0) & (h < 8) & (v >= 0) & (v < 9)
    clamp = lambda e, n: tir.maximum(tir.minimum(e, n - 1), 0)  # noqa: E731
    return select(inside, a[c, clamp(h, 8), clamp(v, 9)], 0.0)


def test_window_of_a_producer_in_tiles(rng):
    program = windowed(12, stride=2)
    s = Schedule(program)
    s.layout_unfold("B", 0, 9, 8)
    tile, _ = s.split(s.loops("C")[0], 4)
    s.compute_at("B", tile)
    assert_same_packed(s, program, rng)
