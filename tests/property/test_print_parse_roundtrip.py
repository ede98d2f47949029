"""What is printed parses back to an equal program, and printing that again gives the same text."""

from __future__ import annotations

import math
import struct

from hypothesis import example, given
from hypothesis import strategies as st

from tilewright.dtypes import DTYPES, boolean, f32, i32, index
from tilewright.tensor import ir as tir
from tilewright.tensor.parser import parse
from tilewright.tensor.printer import print_func
from tilewright.tensor.structural import structural_equal, structural_hash
from tilewright.tensor.verify import verify
from tilewright.testing.strategies import programs

ROW, COLUMN = tir.Var("i"), tir.Var("j")
PARAMS = tuple(
    tir.Buffer(f"A_{name}", (tir.Const(8), tir.Const(8)), dtype) for name, dtype in DTYPES.items()
)
BY_DTYPE = {p.dtype: p for p in PARAMS}
NUMBERS = [t for t in DTYPES.values() if not t.is_bool]


def frame(value: tir.Expr) -> tir.Func:
    """A program that stores `value`."""
    out = tir.Buffer("out", (tir.Const(8),), value.dtype)
    body = tir.For(ROW, tir.Const(8), tir.For(COLUMN, tir.Const(8), tir.Store(out, (ROW,), value)))
    return tir.Func("f", (*PARAMS, out), body)


def assert_round_trip(func: tir.Func) -> None:
    text = print_func(func)
    again = parse(text)
    assert structural_equal(again, func), text
    assert structural_hash(again) == structural_hash(func)
    assert print_func(again) == text


@given(programs(max_blocks=4))
def test_programs_round_trip(program):
    assert_round_trip(verify(program.func))


@given(st.sampled_from([t for t in DTYPES.values() if t.is_float]), st.floats())
@example(f32, -0.0)
@example(f32, math.inf)
@example(f32, math.nan)
@example(f32, 5e-324)
@example(f32, 0.1)
def test_float_literals_round_trip_exactly(dtype, value):
    func = frame(tir.Const(value, dtype))
    assert_round_trip(func)
    stored = parse(print_func(func)).body.body.body.value.value
    same = struct.pack("d", stored) == struct.pack("d", value)
    assert same or (math.isnan(value) and math.isnan(stored))


@given(st.data())
def test_integer_literals_round_trip_exactly(data):
    dtype = data.draw(st.sampled_from([t for t in DTYPES.values() if t.is_integer]))
    value = data.draw(st.integers(dtype.min_value, dtype.max_value))
    assert_round_trip(frame(tir.Const(value, dtype)))


ARITHMETIC = [tir.Add, tir.Sub, tir.Mul, tir.Min, tir.Max]
INTEGER = [tir.FloorDiv, tir.FloorMod, tir.BitAnd, tir.BitOr, tir.BitXor, tir.ShiftLeft]
LOGIC = [tir.BitAnd, tir.BitOr, tir.BitXor, tir.Eq, tir.Ne]
COMPARE = [tir.Eq, tir.Ne, tir.Lt, tir.Le]


@st.composite
def expressions(draw, dtype, depth):
    """Any expression of a dtype: operators in all nestings, so that every parenthesis matters."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        leaves = [st.just(tir.Load(BY_DTYPE[dtype], (ROW, COLUMN)))]
        leaves.append(st.builds(lambda v: tir.const(v, dtype), st.integers(0, 3)))
        if dtype == index:
            leaves += [st.just(ROW), st.just(COLUMN)]
        if dtype.is_signed:
            leaves.append(st.builds(lambda v: tir.const(v, dtype), st.integers(-3, -1)))
        return draw(st.one_of(leaves))
    below = expressions(dtype, depth - 1)
    if dtype == boolean:
        kind = draw(st.sampled_from([*LOGIC, *COMPARE, tir.Not]))
        if kind is tir.Not:
            return tir.Not(draw(below))
        if kind in COMPARE and draw(st.booleans()):
            below = expressions(draw(st.sampled_from([i32, f32, index])), depth - 1)
        elif kind in (tir.Lt, tir.Le):
            kind = tir.BitAnd
        return kind(draw(below), draw(below))
    kinds = [*ARITHMETIC, tir.Neg, tir.Cast, tir.Select, tir.Call, tir.Let]
    kinds += [*INTEGER, tir.Not] if dtype.is_integer else [tir.Div]
    kind = draw(st.sampled_from(kinds))
    if kind in (tir.Neg, tir.Not):
        return kind(draw(below))
    if kind is tir.Cast:
        return tir.Cast(dtype, draw(expressions(draw(st.sampled_from(NUMBERS)), depth - 1)))
    if kind is tir.Select:
        return tir.Select(draw(expressions(boolean, depth - 1)), draw(below), draw(below))
    if kind is tir.Call:
        return tir.Call("abs", (draw(below),), dtype)
    if kind is tir.Let:
        var = tir.Var("t", dtype)
        return tir.Let(var, draw(below), tir.Add(var, draw(below)))
    return kind(draw(below), draw(below))


@given(st.sampled_from([i32, f32, index, boolean]).flatmap(lambda t: expressions(t, 4)))
def test_expressions_round_trip(value):
    assert_round_trip(frame(value))
