"""Operators of every kind meet tensor instructions, with no code for any of them."""

import numpy as np
import pytest

from tests.expect import raises_code
from tests.programs import assert_same_meaning, integers_for, row_sum
from tilewright.dtypes import i8, i32, u8
from tilewright.intrin import lookup
from tilewright.schedule import Schedule
from tilewright.schedule.recipes.tensorize_block import mappings, tensorize_block
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import (
    compute,
    func,
    placeholder,
    reduce_axis,
    size,
    sum_over,
)
from tilewright.tensor.interpret import interpret

PROGRAMS = {
    "matmul": library.matmul(5, 7, 6),
    "batched_matmul": library.batched_matmul(2, 5, 7, 6),
    "conv1d": library.conv1d(1, 3, 9, 5, 3, stride=2, padding=1),
    "conv2d": library.conv2d(2, 3, 5, 4, 6, 3, padding=1),
    "conv3d": library.conv3d(1, 2, 4, 4, 3, 3, 2),
    "dilated": library.conv2d(1, 3, 7, 6, 6, 3, padding=2, dilation=2),
    "grouped": library.conv2d(1, 4, 5, 5, 6, 3, groups=2),
    "transposed": library.transposed_conv2d(1, 3, 4, 4, 5, 4, stride=2, padding=1),
}


@pytest.mark.parametrize("choice", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_contractions_meet_a_register_tile(name, choice, rng):
    """Sizes that the tile does not divide are padded; both orders of the product are tried."""
    program = PROGRAMS[name]
    schedule = Schedule(program)
    block = "C" if "matmul" in name else "Y"
    tile = tensorize_block(schedule, block, "f32.gemm(4,4,4)", choice)
    assert dict(schedule.block(tile).notes)["intrinsic"] == "f32.gemm(4,4,4)"
    assert_same_meaning(schedule, program, rng)


def test_the_steps_are_an_ordinary_trace(golden):
    schedule = Schedule(PROGRAMS["conv2d"])
    tensorize_block(schedule, "Y", "f32.gemm(4,4,4)")
    assert golden == schedule.trace.as_python()


def test_symbolic_sizes(rng):
    program = library.matmul(size("m"), 7, size("q"))
    schedule = Schedule(program)
    tensorize_block(schedule, "C", "f32.gemm(4,4,4)")
    assert_same_meaning(schedule, program, rng, {"m": 5, "q": 6})


def quantised(m: int, n: int, k: int) -> tir.Func:
    a, b, r = placeholder("A", (m, k), u8), placeholder("B", (k, n), i8), reduce_axis(k, "k")
    c = compute("C", (m, n), lambda i, j: sum_over(a[i, r].to(i32) * b[r, j].to(i32), r))
    return func("quantised", [a, b], [c])


def test_operands_are_packed_for_dense_tiles(golden, rng):
    program = quantised(3, 11, 9)
    schedule = Schedule(program)
    tensorize_block(schedule, "C", "i32.dot4(8)")
    assert golden == schedule.trace.as_python()
    assert_same_meaning(schedule, program, rng)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("name", ["x86.avx2.dot2", "x86.avx2.dot4"])
def test_native_instructions(name, rng):
    from tilewright.build import build

    program = quantised(3, 11, 9)
    schedule = Schedule(program)
    tensorize_block(schedule, "C", name)
    inputs = integers_for(program, rng)
    found = build(schedule.func, threads=1, trace="none")(*inputs.values())
    np.testing.assert_array_equal(found, interpret(program, inputs)["C"])


def test_depthwise_convolution_has_no_columns_for_a_product():
    program = library.depthwise_conv2d(1, 3, 5, 5, 3)
    schedule = Schedule(program)
    with raises_code("S440", text="every axis needs an iterator"):
        tensorize_block(schedule, "Y", "f32.gemm(4,4,4)")
    assert len(schedule.trace) == 0


def test_another_computation_is_refused():
    with raises_code("S423"):
        tensorize_block(Schedule(row_sum()), "C", "f32.dot(4)")


def test_an_unknown_instruction_is_refused():
    with raises_code("S420"):
        tensorize_block(Schedule(row_sum()), "C", "f32.dott(4)")


def test_tiled_blocks_are_refused():
    schedule = Schedule(library.matmul(8, 8, 8))
    schedule.split("i", 4)
    with raises_code("S440", text="before the loops of the block are split"):
        tensorize_block(schedule, "C", "f32.gemm(4,4,4)")


def test_mappings_name_the_iterators_of_each_axis():
    chosen = lookup("f32.gemm(4,4,4)")
    assert chosen is not None
    block = Schedule(PROGRAMS["conv2d"]).block("Y")
    first, second = mappings(block, chosen)
    assert [names for _, names in first.axes] == [("vn", "vh", "vw"), ("vo",), ("vc", "vrh", "vrw")]
    assert [names for _, names in second.axes] == [
        ("vo",),
        ("vn", "vh", "vw"),
        ("vc", "vrh", "vrw"),
    ]
    assert first.outside == ()
