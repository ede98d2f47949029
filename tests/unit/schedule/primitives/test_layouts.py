"""Layout primitives: what accesses and interfaces look like afterwards, and back again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.moving import chain, dense, windowed
from tests.packing import packed_run
from tests.programs import conv1d, integers_for, matmul
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, size
from tilewright.tensor.interpret import interpret
from tilewright.tensor.layout import Pad, Reorder, Split, StoreAt
from tilewright.tensor.packing import packing_of
from tilewright.tensor.structural import structural_equal


def assert_same_packed(s: Schedule, program: tir.Func, rng: np.random.Generator) -> None:
    inputs = integers_for(program, rng)
    expected = interpret(program, inputs)
    found = packed_run(program, s.func, inputs)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=str(s.func))


def test_weights_in_panels(golden, rng):
    program = matmul(4, 20, 8)
    s = Schedule(program)
    s.layout_pad("B", 1, 0, 12)
    s.layout_split("B", 1, 16)
    s.layout_reorder("B", [1, 0, 2])
    assert golden == s.func
    assert s.buffer("B").layout == (Pad(1, 0, 12), Split(1, 16), Reorder((1, 0, 2)))
    assert_same_packed(s, program, rng)


def test_output_and_intermediate(golden, rng):
    program = dense(4, 6, 8, relu=True)
    s = Schedule(program)
    s.layout_split("C", 0, 2)
    s.layout_fuse("E", 0)
    s.layout_reorder("D", [1, 0])
    assert golden == s.func
    assert_same_packed(s, program, rng)


def test_split_and_fuse_are_inverse():
    s = Schedule(matmul(4, 6, 8))
    start = s.func
    s.layout_split("A", 1, 4)
    s.layout_fuse("A", 1)
    assert structural_equal(s.func, start)
    s.layout_fuse("A", 0)
    s.layout_split("A", 0, 8)
    assert structural_equal(s.func, start)


def test_three_dimensions_fused_are_split_again():
    s = Schedule(conv1d())
    s.layout_split("A", 1, 4)
    start = s.func
    s.layout_fuse("A", 0, 3)
    s.layout_split("A", 0, 4)
    s.layout_split("A", 0, 3)
    assert structural_equal(s.func, start)


def test_orders_are_joined():
    s = Schedule(matmul(4, 6, 8))
    start = s.func
    s.layout_split("A", 0, 2)
    before = s.func
    s.layout_reorder("A", [1, 2, 0])
    s.layout_reorder("A", [1, 2, 0])
    assert s.buffer("A").layout[-1] == Reorder((2, 0, 1))
    s.layout_reorder("A", [1, 2, 0])
    assert structural_equal(s.func, before)
    s.layout_fuse("A", 0)
    assert structural_equal(s.func, start)


def test_negative_dimensions_count_from_the_back():
    s = Schedule(matmul(4, 6, 8))
    s.layout_split("A", -1, 4)
    assert s.buffer("A").layout == (Split(1, 4),)


def test_pad_of_a_computed_buffer_is_filled(golden, rng):
    program = chain(6)
    s = Schedule(program)
    start = s.func
    assert s.layout_pad("B", 0, 1, 2) == ("B_lead0", "B_tail0")
    assert golden == s.func
    assert_same_packed(s, program, rng)
    s.layout_unpad("B")
    assert structural_equal(s.func, start)


def test_zeros_are_stored_not_tested(golden, rng):
    """The convolution's test of its index goes away, the producer writes between the zeros."""
    program = windowed(6, clamped=True)
    s = Schedule(program)
    s.layout_pad("B", 0, 1, 1)
    assert golden == s.func
    assert_same_packed(s, program, rng)


def test_zeros_of_an_input_come_from_packing(rng):
    a = placeholder("A", (6,))
    at = lambda i: tir.maximum(tir.minimum(i - 2, 5), 0)  # noqa: E731
    inside = lambda i: (i >= 2) & (i < 8)  # noqa: E731
    c = compute("C", (9,), lambda i: tir.Select(inside(i), a[at(i)], tir.const(0.0, a.dtype)))
    program = func("padded", [a], [c])
    s = Schedule(program)
    s.layout_pad("A", 0, 2, 1)
    assert isinstance(s.block("C").body.value, tir.Load)
    assert_same_packed(s, program, rng)


def test_too_few_zeros_keep_the_test(rng):
    program = windowed(6, clamped=True)
    s = Schedule(program)
    s.layout_pad("B", 0, 1, 0)
    assert any("select" in line for line in str(s.func).splitlines())
    assert_same_packed(s, program, rng)


def test_other_tests_of_the_index_stay(rng):
    """Only what the zeros stand for is dropped: `i < 4` is about something else."""
    a = placeholder("A", (6,))
    at = lambda i: tir.maximum(tir.minimum(i - 1, 5), 0)  # noqa: E731
    c = compute(
        "C",
        (8,),
        lambda i: tir.Select((i >= 1) & (i < 7) & (i < 4), a[at(i)], tir.const(0.0, a.dtype)),
    )
    program = func("masked", [a], [c])
    s = Schedule(program)
    s.layout_pad("A", 0, 1, 1)
    assert "select(vi < 4, A[vi], 0.0)" in str(s.func)
    assert_same_packed(s, program, rng)


def test_unfold_of_a_window(golden, rng):
    program = conv1d(8, 3, 2)
    s = Schedule(program)
    start = s.func
    s.layout_unfold("A", 1, 6, 4)
    assert golden == s.func
    assert_same_packed(s, program, rng)
    s.layout_fold("A")
    assert structural_equal(s.func, start)


@pytest.mark.parametrize("tile", [5, 7, 9])
def test_unfold_of_a_strided_window(rng, tile):
    """Tiles of two outputs need five inputs at stride 2 and width 3; larger tiles do too."""
    program = windowed(6, stride=2)
    s = Schedule(program)
    start = s.func
    s.layout_unfold("B", 0, tile, 4)
    assert_same_packed(s, program, rng)
    s.layout_fold("B")
    assert structural_equal(s.func, start)


def test_unfold_lets_the_writer_write_every_copy(golden, rng):
    program = windowed(6)
    s = Schedule(program)
    s.layout_unfold("B", 0, 5, 3)
    assert golden == s.func
    assert_same_packed(s, program, rng)


def test_unfold_of_a_copy(rng):
    program = conv1d(8, 3, 2)
    s = Schedule(program)
    s.cache_read("C", "A")
    s.layout_unfold("A_read", 1, 6, 4)
    tile, _ = s.split("i", 4)
    s.compute_at("A_read", tile)
    assert s.block("A_read").predicate == tir.TRUE
    assert_same_packed(s, program, rng)


def test_bias_as_a_row_of_the_weights(golden, rng):
    program = dense(4, 6, 8, relu=True)
    s = Schedule(program)
    start = s.func
    s.layout_store_at("B", "bias", 0)
    assert golden == s.func
    assert [p.name for p in s.func.params] == ["A", "B", "E"]
    assert_same_packed(s, program, rng)
    assert s.layout_decouple("B") == "bias"
    assert structural_equal(s.func, start)


def test_store_at_of_packed_buffers(rng):
    program = dense(4, 6, 8, relu=True)
    s = Schedule(program)
    s.layout_split("B", 1, 3)
    s.layout_split("bias", 0, 3)
    s.layout_store_at("B", "bias", 0)
    s.layout_reorder("B", [1, 0, 2])
    (guest,) = packing_of(s.buffer("B")).guests
    assert guest == StoreAt(0, "bias", (2, 3), (Split(0, 3),), 2)
    assert_same_packed(s, program, rng)


def test_store_at_of_intermediates(rng):
    a = placeholder("A", (4, 6))
    b = compute("B", (4, 6), lambda i, j: a[i, j] * 2.0)
    c = compute("C", (4, 6), lambda i, j: a[i, j] + 1.0)
    d = compute("D", (4, 6), lambda i, j: b[i, j] * c[i, j])
    program = func("pair", [a], [d])
    s = Schedule(program)
    start = s.func
    s.layout_store_at("B", "C", 1)
    assert s.buffer("B").shape == (tir.Const(4), tir.Const(12))
    assert_same_packed(s, program, rng)
    assert s.layout_decouple("B") == "C"
    assert structural_equal(s.func, start)


def test_symbolic_dimensions():
    n = size("n")
    a = placeholder("A", (n, 4))
    c = compute("C", (n, 4), lambda i, j: a[i, j] * 2.0)
    program = func("symbolic", [a], [c])
    s = Schedule(program)
    s.layout_reorder("A", [1, 0])
    s.layout_fuse("A", 0)
    s.layout_pad("A", 0, 1, 1)
    s.layout_split("C", 1, 2)
    packing = packing_of(s.buffer("A"))
    assert packing.logical_shape == (n, 4)
    array = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    packed = packing.pack(array)
    np.testing.assert_array_equal(packed, np.pad(array.T.reshape(-1), 1))
    np.testing.assert_array_equal(packing.unpack(packed, (3, 4)), array)
    found = interpret(s.func, {"A": packed}, {n: 3})
    np.testing.assert_array_equal(found["C"].reshape(3, 4), array * 2)


def test_blocks_inside_blocks_follow(rng):
    program = matmul(4, 6, 8)
    s = Schedule(program)
    s.split("k", 4)
    s.blockize("k_1")
    s.layout_split("A", 1, 2)
    s.layout_reorder("B", [1, 0])
    assert_same_packed(s, program, rng)
