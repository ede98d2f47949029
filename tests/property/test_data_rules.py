"""Every row of the table of data rules, on all 8-bit integers, bools and special floats."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest

from tilewright.dtypes import DType, boolean, f32, f64, i8, u8
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.data_rules import DATA_RULES, Row, X
from tilewright.tensor.arith.fold import fold, wrapped

SPECIAL = (0.0, -0.0, 1.0, -1.0, 1.5, np.inf, -np.inf, np.nan, 5e-324, 1e-45, 1e308, 3e38, -2.75)
DTYPES = {"int": (i8, u8), "bool": (boolean,), "float": (f32, f64)}
CASES = [(row, dtype) for row in DATA_RULES for dtype in DTYPES[row.on]]

MEANING = {
    tir.Add: np.add,
    tir.Sub: np.subtract,
    tir.Mul: np.multiply,
    tir.Div: np.divide,
    tir.FloorDiv: np.floor_divide,
    tir.FloorMod: np.mod,
    tir.Min: np.minimum,
    tir.Max: np.maximum,
    tir.BitAnd: np.bitwise_and,
    tir.BitOr: np.bitwise_or,
    tir.BitXor: np.bitwise_xor,
    tir.ShiftLeft: np.left_shift,
    tir.ShiftRight: np.right_shift,
    tir.Eq: np.equal,
    tir.Ne: np.not_equal,
    tir.Lt: np.less,
    tir.Le: np.less_equal,
}


def values_of(dtype: DType) -> np.ndarray:
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return np.array(SPECIAL, dtype=dtype.numpy)
    if dtype.is_bool:
        return np.array([False, True])
    return np.arange(int(dtype.min_value), int(dtype.max_value) + 1).astype(dtype.numpy)


def name_of(case: tuple[Row, DType]) -> str:
    row, dtype = case
    return f"{dtype}-{row.left} {row.op.__name__} {row.right}"


def bits(array: np.ndarray) -> list[object]:
    """Values that tell the two zeros apart and let NaN equal itself."""
    if array.dtype.kind != "f":
        return array.tolist()
    return ["nan" if np.isnan(v) else struct.pack("d", float(v)) for v in array]


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_row_is_exact_for_every_value(case):
    row, dtype = case
    x = values_of(dtype)
    left, right, result = (
        x if part is X else np.full(x.shape, part, dtype=dtype.numpy)
        for part in (row.left, row.right, row.result)
    )
    if isinstance(row.result, bool) and row.result is not X:
        result = np.full(x.shape, row.result)
    with np.errstate(all="ignore"):
        assert bits(MEANING[row.op](left, right)) == bits(result)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_row_is_applied(case):
    row, dtype = case
    load = tir.Load(tir.Buffer("A", (tir.Const(4),), dtype), (tir.Var("i"),))
    a, b = (load if part is X else tir.const(part, dtype) for part in (row.left, row.right))
    simple = Analyzer({}).simplify(row.op(a, b))
    assert simple is load if row.result is X else simple == _literal(row, dtype)


def _literal(row: Row, dtype: DType) -> tir.Const:
    comparing = issubclass(row.op, tir.Compare)
    return tir.const(row.result, boolean if comparing else dtype)


KEPT = [
    (f32, tir.Add, 0.0),
    (f32, tir.Mul, 0.0),
    (f32, tir.Sub, -0.0),
    (f32, tir.Mul, -1.0),
    (f64, tir.Div, 2.0),
]


@pytest.mark.parametrize(("dtype", "op", "value"), KEPT)
def test_what_is_not_exact_on_floats_is_kept(dtype, op, value):
    load = tir.Load(tir.Buffer("A", (tir.Const(4),), dtype), (tir.Var("i"),))
    expr = op(load, tir.Const(value, dtype))
    assert Analyzer({}).simplify(expr) is expr


def test_x_minus_x_is_kept_on_floats():
    load = tir.Load(tir.Buffer("A", (tir.Const(4),), f32), (tir.Var("i"),))
    expr = tir.Sub(load, load)
    assert Analyzer({}).simplify(expr) is expr


@pytest.mark.parametrize("dtype", [i8, u8], ids=str)
@pytest.mark.parametrize("op", sorted(MEANING.keys() - {tir.Div}, key=lambda o: o.__name__))
def test_constants_of_integers_fold_as_the_machine_computes(op, dtype):
    edge = (-128, -127, -7, -1, 0, 1, 2, 3, 7, 8, 100, 127, 128, 255)
    edge = [v for v in edge if dtype.min_value <= v <= dtype.max_value]
    for a, b in itertools.product(edge, edge):
        if op in (tir.ShiftLeft, tir.ShiftRight) and not 0 <= b < 8:
            continue
        with np.errstate(all="ignore"):
            expected = MEANING[op](dtype.numpy.type(a), dtype.numpy.type(b))
        folded = fold(op(tir.Const(a, dtype), tir.Const(b, dtype)))
        assert isinstance(folded, tir.Const)
        assert folded.value == expected, (a, op.__name__, b)


def test_shift_by_too_much_is_kept():
    expr = tir.ShiftLeft(tir.Const(1, i8), tir.Const(8, i8))
    assert fold(expr) is expr


def test_wrapped_is_the_machine_integer():
    for value in range(-600, 600):
        assert wrapped(value, i8) == np.array(value).astype(np.int8)
        assert wrapped(value, u8) == np.array(value).astype(np.uint8)
