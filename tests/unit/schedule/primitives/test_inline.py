"""`compute_inline` and `reverse_compute_inline`."""

from __future__ import annotations

from tests.moving import chain, dense, diamond, integers, windowed
from tests.programs import assert_same_meaning
from tilewright.dtypes import f16
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder


def test_producer_into_one_consumer(golden, rng):
    program = chain(8)
    s = Schedule(program)
    assert s.compute_inline("B") is None
    assert golden == s.func
    assert_same_meaning(s, program, rng)


def test_producer_into_several_consumers(rng):
    program = diamond(8, shift=2)
    s = Schedule(program)
    s.compute_inline("B")
    assert s.blocks() == ("C", "D", "E")
    s.compute_inline("C")
    s.compute_inline("D")
    assert s.blocks() == ("E",)
    assert_same_meaning(s, program, rng)


def test_padding_into_a_convolution(golden, rng):
    program = windowed(6, clamped=True)
    s = Schedule(program)
    s.compute_inline("B")
    assert golden == s.func
    assert_same_meaning(s, program, rng)


def test_indices_of_a_layout_are_inverted(rng):
    program = chain(24)
    s = Schedule(program)
    s.layout_split("B", 0, 4)
    s.layout_reorder("B", [1, 0])
    s.layout_pad("B", 0, 1, 0)
    s.layout_fuse("B", 0)
    s.split("i", 5)
    s.layout_split("B", 0, 6)
    s.layout_unpad("B")
    s.compute_inline("B")
    assert s.block("C").reads[0].ranges[0].start is s.block("C").iters[0].var
    assert_same_meaning(s, program, rng)


def test_storage_type_still_rounds(rng):
    a = placeholder("A", (8,))
    b = compute("B", (8,), lambda i: a[i] * 0.1, dtype=f16)
    c = compute("C", (8,), lambda i: b[i] + 1.0)
    program = func("rounding", [a], [c])
    s = Schedule(program)
    s.compute_inline("B")
    assert_same_meaning(s, program, rng)


def test_consumer_into_producer(golden, rng):
    program = chain(8)
    s = Schedule(program)
    s.split("i", 4)
    s.reverse_compute_inline("C")
    assert golden == s.func
    assert_same_meaning(s, program, rng)


def test_epilogue_into_the_copy_out(golden, rng):
    program = dense(12, 8, 6, relu=True)
    s = Schedule(program)
    s.cache_write("C")
    s.reverse_compute_inline("D")
    s.reverse_compute_inline("E")
    assert golden == s.func
    assert_same_meaning(s, program, rng)


def test_transposing_consumer(rng):
    a = placeholder("A", (4, 6))
    b = compute("B", (4, 6), lambda i, j: a[i, j] * 2.0)
    c = compute("C", (6, 4), lambda i, j: b[j, i] + 1.0)
    program = func("transpose", [a], [c])
    s = Schedule(program)
    s.reverse_compute_inline("C")
    assert [r.start.name for r in s.block("B").writes[0].ranges] == ["vj", "vi"]
    assert_same_meaning(s, program, rng)


def test_reshaping_consumer(rng):
    a = placeholder("A", (4, 6))
    b = compute("B", (4, 6), lambda i, j: a[i, j] * 2.0)
    c = compute("C", (24,), lambda i: b[i // 6, i % 6] + 1.0)
    program = func("reshape", [a], [c])
    s = Schedule(program)
    s.reverse_compute_inline("C")
    assert len(s.blocks()) == 1
    assert_same_meaning(s, program, rng)


def test_input_that_is_used_twice(rng):
    program = integers(8)
    s = Schedule(program)
    s.reverse_compute_inline("C")
    assert s.blocks() == ("B",)
    assert_same_meaning(s, program, rng)


def test_unit_dimensions(rng):
    a = placeholder("A", (1, 6))
    b = compute("B", (1, 6), lambda i, j: a[i, j] * 2.0)
    c = compute("C", (6,), lambda j: b[0, j] + 1.0)
    program = func("unit", [a], [c])
    s = Schedule(program)
    s.copy().compute_inline("B")
    s.reverse_compute_inline("C")
    assert s.blocks() == ("B",)
    assert_same_meaning(s, program, rng)
    assert isinstance(s.func.body, tir.For)
