"""Every row of the table of data rules, on all 8-bit integers, bools and special floats."""

from __future__ import annotations

import ast
import itertools
import struct
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tilewright.dtypes import DType, boolean, f32, f64, i8, i32, u8
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith import fold as fold_module
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


@cache
def loads(dtype: DType) -> tuple[tir.Load, tir.Load]:
    a, b = (tir.Load(tir.Buffer(name, (), dtype), ()) for name in "AB")
    return a, b


def value_of(expr: tir.Expr, values: dict[tir.Expr, np.ndarray]) -> np.ndarray:
    """Plain evaluation of what the rules of `fold` take and make."""
    match expr:
        case tir.Load():
            return values[expr]
        case tir.Const():
            return np.asarray(expr.value, dtype=expr.dtype.numpy)
        case tir.Not():
            inner = value_of(expr.value, values)
            return ~inner
        case tir.Select():
            cond = value_of(expr.cond, values)
            return np.where(cond, value_of(expr.if_true, values), value_of(expr.if_false, values))
        case tir.Cast():
            return value_of(expr.value, values).astype(expr.dtype.numpy)
    assert isinstance(expr, tir.Binary)
    return MEANING[type(expr)](value_of(expr.a, values), value_of(expr.b, values))


def assert_equal_everywhere(before: tir.Expr, after: tir.Expr, dtype: DType) -> None:
    x = values_of(dtype)
    a, b = loads(dtype)
    left, right = (grid.ravel() for grid in np.meshgrid(x, x))
    values = {a: left, b: right}
    found, expected = (np.broadcast_to(value_of(e, values), left.shape) for e in (after, before))
    assert bits(found) == bits(expected)


@pytest.mark.parametrize("dtype", [i8, u8, boolean, f32], ids=str)
@pytest.mark.parametrize("op", [tir.Eq, tir.Ne, tir.Lt, tir.Le], ids=lambda op: op.__name__)
def test_not_of_a_comparison_is_exact(op, dtype):
    before = tir.Not(op(*loads(dtype)))
    after = fold(before)
    assert_equal_everywhere(before, after, dtype)
    kept = dtype.is_float and op in (tir.Lt, tir.Le)  # NaN is neither less nor not less
    assert (after is before) is (kept or (dtype.is_bool and op in (tir.Lt, tir.Le)))


@pytest.mark.parametrize("dtype", [i8, u8, boolean], ids=str)
def test_not_of_values_is_exact(dtype):
    a, _ = loads(dtype)
    twice = tir.Not(tir.Not(a))
    assert fold(twice) is a
    assert_equal_everywhere(twice, a, dtype)
    for value in values_of(dtype).tolist():
        before = tir.Not(tir.const(value, dtype))
        after = fold(before)
        assert isinstance(after, tir.Const)
        assert_equal_everywhere(before, after, dtype)


@pytest.mark.parametrize("dtype", [i8, boolean, f32], ids=str)
def test_select_is_exact(dtype):
    a, b = loads(dtype)
    for cond in (True, False):
        before = tir.Select(tir.const(cond, boolean), a, b)
        assert fold(before) is (a if cond else b)
        assert_equal_everywhere(before, fold(before), dtype)
    same = tir.Select(tir.Lt(a, b), a, a)
    assert fold(same) is a
    assert_equal_everywhere(same, a, dtype)
    other = tir.Select(tir.Lt(a, b), a, b)
    assert fold(other) is other


@pytest.mark.parametrize("source", [i8, u8, boolean, i32, f32], ids=str)
@pytest.mark.parametrize("target", [i8, u8, boolean, i32, f32], ids=str)
def test_casts_of_constants_are_exact(source, target):
    values = values_of(source).tolist() if source.bits <= 8 else [-(2**31), -300, -1, 0, 7, 300]
    for value in values:
        before = tir.Cast(target, tir.const(value, source))
        after = fold(before)
        if source.is_float or target.is_float:
            assert after is before
        else:
            assert isinstance(after, tir.Const)
            expected = np.asarray(value).astype(source.numpy).astype(target.numpy)
            assert after.value == expected


# Each function of `fold.py` that makes expressions, and the test that checks all that it does.
CHECKS = {
    "fold": test_row_is_applied,
    "_binary": test_row_is_exact_for_every_value,
    "_constants": test_constants_of_integers_fold_as_the_machine_computes,
    "_select": test_select_is_exact,
    "_not": test_not_of_a_comparison_is_exact,
    "_cast": test_casts_of_constants_are_exact,
}


def test_no_rule_on_data_is_without_a_check():
    """A new function that rewrites data, and an operation without meaning here, fail."""
    tree = ast.parse(Path(fold_module.__file__).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    makers = {f.name for f in functions if f.returns and ast.unparse(f.returns) == "Expr"}
    assert makers == CHECKS.keys()
    assert {row for row, _ in CASES} == set(DATA_RULES)
    assert {row.op for row in DATA_RULES} <= MEANING.keys()


def test_shift_by_too_much_is_kept():
    expr = tir.ShiftLeft(tir.Const(1, i8), tir.Const(8, i8))
    assert fold(expr) is expr


def test_wrapped_is_the_machine_integer():
    for value in range(-600, 600):
        assert wrapped(value, i8) == np.array(value).astype(np.int8)
        assert wrapped(value, u8) == np.array(value).astype(np.uint8)
