import math

import pytest

from tilewright.dtypes import bf16, boolean, f16, f32, f64, i8, i64, u8, u64
from tilewright.llvm.spelling import identifier, integer, like, literal, memory_type, value_type


def test_types_of_values_and_memory():
    assert value_type(f32.vector(8)) == "<8 x float>"
    assert value_type(bf16) == value_type(f16) == "i16"
    assert (value_type(boolean), memory_type(boolean)) == ("i1", "i8")
    assert memory_type(boolean.vector(4)) == "<4 x i8>"
    assert value_type(u64) == "i64"


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1.0, f32, "0x3FF0000000000000"),
        (0.1, f32, "0x3FB99999A0000000"),  # rounded to `f32` first
        (0.1, f64, "0x3FB999999999999A"),
        (-0.0, f32, "0x8000000000000000"),
        (0.0, f32, "0x0000000000000000"),
        (math.inf, f32, "0x7FF0000000000000"),
        (1e300, f32, "0x7FF0000000000000"),
        (1.0, f16, "15360"),
        (-1.0, bf16, str(0xBF80 - 0x10000)),
        (255, u8, "-1"),
        (-128, i8, "-128"),
        (2**64 - 1, u64, "-1"),
        (True, boolean, "true"),
        (3, i64.vector(4), "splat (i64 3)"),
    ],
)
def test_literals(value, dtype, text):
    assert literal(value, dtype) == text


def test_literal_keeps_the_sign_of_zero_whatever_was_asked_before():
    assert literal(0.0, f64) != literal(-0.0, f64)
    assert literal(1, f32) == literal(1.0, f32) == literal(True, f32)


def test_types_follow_the_lanes_of_others():
    assert like("<8 x float>", "i1") == "<8 x i1>"
    assert like("float", "i1") == "i1"
    assert integer(7, "<4 x i32>") == "splat (i32 7)"
    assert integer(-1, "i64") == "-1"


def test_identifiers_have_no_dots():
    assert identifier("a.b-c") == "a_b_c"
    assert identifier("") == "_"
