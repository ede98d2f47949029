"""Every operation on every element type, as scalars and as vectors, against NumPy.

All operations of one dtype are one kernel: the table is about values, and compiling takes longest.
"""

from __future__ import annotations

import operator

import numpy as np
import pytest

from tests.lowered import flat, function, ramp, run
from tests.numeric.edge_values import (
    WIDE_NAMES,
    assert_same,
    edge_pairs,
    padded,
    random_values,
)
from tilewright.dtypes import DTYPES, DType
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.functions import apply

ARITHMETIC = {
    tir.Add: operator.add,
    tir.Sub: operator.sub,
    tir.Mul: operator.mul,
    tir.Min: np.minimum,
    tir.Max: np.maximum,
}
DIVISION = {tir.FloorDiv: np.floor_divide, tir.FloorMod: np.mod}
BITS = {tir.BitAnd: operator.and_, tir.BitOr: operator.or_, tir.BitXor: operator.xor}
SHIFTS = {tir.ShiftLeft: operator.lshift, tir.ShiftRight: operator.rshift}
COMPARISONS = {tir.Eq: operator.eq, tir.Ne: operator.ne, tir.Lt: operator.lt, tir.Le: operator.le}
FLOAT_CALLS = ("sqrt", "floor", "ceil", "trunc", "round", "abs")

# (target, lanes): scalars, full vectors, and a machine without FMA and conversions of halves.
FORMS = [("host", 1), ("host", 16), ("x86-64-v2", 8)]


def operations(dtype: DType) -> dict:
    """Node class → NumPy's function, for what this dtype has."""
    if dtype.is_bool:
        return {tir.Min: np.minimum, tir.Max: np.maximum, **BITS, **COMPARISONS}
    if dtype.is_float:
        return {**ARITHMETIC, tir.Div: operator.truediv, **COMPARISONS}
    return {**ARITHMETIC, **DIVISION, **BITS, **COMPARISONS}


def run_all(dtype: DType, values: dict, inputs: list[np.ndarray], target: str, lanes: int) -> dict:
    """Results of `values` (name → expression of the loaded inputs) by name, from one kernel."""
    count = len(inputs[0])
    buffers = [flat(f"in{n}", count, dtype) for n in range(len(inputs))]
    i = tir.Var("i")
    where = ramp(i * lanes, lanes)
    loads = [tir.Load(buffer, (where,)) for buffer in buffers]
    results, stores = [], []
    for name, make in values.items():
        value = make(*loads)
        results.append(flat(f"out_{name}", count, value.dtype.scalar))
        stores.append(tir.Store(results[-1], (where,), value))
    loop = tir.For(i, tir.Const(count // lanes), tir.Seq(tuple(stores)))
    arrays = [np.zeros(count, buffer.dtype.numpy) for buffer in results]
    run(function([*buffers, *results], loop), [*inputs, *arrays], target=machine(target))
    return dict(zip(values, arrays, strict=True))


def machine(name: str) -> Target:
    """A target by name, if this machine can run it."""
    target = Target.named(name)
    if target.arch != Target.host().arch:
        pytest.skip(f"needs {target.arch}")
    return target


@pytest.mark.parametrize(("target", "lanes"), FORMS)
@pytest.mark.parametrize("name", WIDE_NAMES)
def test_binary_operations_are_numpys(name, target, lanes):
    dtype = DTYPES[name]
    a, b = edge_pairs(dtype)
    table = operations(dtype)
    values = {op.__name__: (lambda x, y, op=op: op(x, y)) for op in table}
    found = run_all(dtype, values, [a, b], target, lanes)
    for op, expected in table.items():
        with np.errstate(all="ignore"):
            exact = expected(a, b)
        signed = op not in (tir.Min, tir.Max)
        assert_same(found[op.__name__], exact, f"{op.__name__} on {name}", signed_zero=signed)


@pytest.mark.parametrize(("target", "lanes"), FORMS)
@pytest.mark.parametrize("name", [n for n in WIDE_NAMES if DTYPES[n].is_integer])
def test_shifts_are_numpys(name, target, lanes, rng):
    dtype = DTYPES[name]
    a, _ = edge_pairs(dtype)
    amount = rng.integers(0, dtype.bits, len(a)).astype(dtype.numpy)
    values = {op.__name__: (lambda x, y, op=op: op(x, y)) for op in SHIFTS}
    values["by_3"] = lambda x, _: x << 3
    found = run_all(dtype, values, [a, amount], target, lanes)
    for op, expected in SHIFTS.items():
        assert_same(found[op.__name__], expected(a, amount), f"{op.__name__} on {name}")
    assert_same(found["by_3"], a << dtype.numpy.type(3), "shift by a constant")


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("name", [n for n in WIDE_NAMES if DTYPES[n].is_integer])
def test_division_by_constants_rounds_down(name, lanes):
    """Powers of two become shifts and masks; zero gives zero."""
    dtype = DTYPES[name]
    a, _ = edge_pairs(dtype)
    divisors = [0, 1, 2, 3, 7, 8, 64, 100] + ([-1, -2, -3, -8] if dtype.is_signed else [])
    values = {}
    for d in divisors:
        values[f"div_{d}"] = lambda x, d=d: x // d
        values[f"mod_{d}"] = lambda x, d=d: x % d
    found = run_all(dtype, values, [a], "host", lanes)
    for d in divisors:
        with np.errstate(all="ignore"):
            divisor = dtype.numpy.type(d)
            assert_same(found[f"div_{d}"], a // divisor, f"{name} // {d}")
            assert_same(found[f"mod_{d}"], a % divisor, f"{name} % {d}")


@pytest.mark.parametrize(("target", "lanes"), FORMS)
@pytest.mark.parametrize("name", [n for n in WIDE_NAMES if DTYPES[n].is_float])
def test_float_functions_are_exact(name, target, lanes, rng):
    dtype = DTYPES[name]
    a, b = (padded(np.concatenate([e, random_values(rng, dtype, 256)])) for e in edge_pairs(dtype))
    values = {call: (lambda x, _, call=call: tir.Call(call, (x,), x.dtype)) for call in FLOAT_CALLS}
    values["neg"] = lambda x, _: tir.Neg(x)
    values["copysign"] = lambda x, y: tir.Call("copysign", (x, y), x.dtype)
    found = run_all(dtype, values, [a, b], target, lanes)
    with np.errstate(all="ignore"):
        for call in FLOAT_CALLS:
            # A square root in double precision rounds to that of the narrower type.
            assert_same(found[call], apply(call, [a], dtype), f"{call} on {name}")
        assert_same(found["neg"], -a, f"negation of {name}")
        assert_same(found["copysign"], np.copysign(a, b).astype(dtype.numpy), f"copysign of {name}")


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.isa("fma")
def test_fma_rounds_once(name, lanes, rng):
    dtype = DTYPES[name]
    a, b, c = (random_values(rng, dtype, 256) for _ in range(3))
    values = {"fma": lambda x, y, z: tir.Call("fma", (x, y, z), x.dtype)}
    found = run_all(dtype, values, [a, b, c], "host", lanes)["fma"]
    with np.errstate(all="ignore"):
        expected = apply("fma", [a, b, c], dtype)
        # The oracle rounds twice for `f32`; a difference of one unit in the last place is its own.
        close = np.abs(found - expected) <= np.spacing(np.abs(expected)) * (name == "f32")
        same = (found == expected) | (np.isnan(found) & np.isnan(expected)) | close
    assert same.all()


@pytest.mark.parametrize(("target", "lanes"), FORMS)
@pytest.mark.parametrize("name", WIDE_NAMES)
def test_select_not_and_bits(name, target, lanes):
    dtype = DTYPES[name]
    a, b = edge_pairs(dtype)
    values = {"select": lambda x, y: tir.Select(x < y, x, y)}
    if not dtype.is_float:
        values["not"] = lambda x, _: tir.Not(x)
    else:
        bits = DTYPES[f"i{dtype.bits}"]
        values["bits"] = lambda x, _: tir.Reinterpret(bits.vector(x.dtype.lanes), x)
    if dtype.is_integer and dtype.is_signed:
        values["abs"] = lambda x, _: tir.Call("abs", (x,), x.dtype)
        values["neg"] = lambda x, _: tir.Neg(x)
    found = run_all(dtype, values, [a, b], target, lanes)
    with np.errstate(all="ignore"):
        assert_same(found["select"], np.where(a < b, a, b), f"select of {name}")
        expected = {"not": lambda: ~a, "abs": lambda: np.abs(a), "neg": lambda: -a}
        expected["bits"] = lambda: a.view(f"i{a.itemsize}")
        for what in found.keys() - {"select"}:
            assert_same(found[what], expected[what](), f"{what} of {name}")


FOLDS = {
    tir.Fold.ADD: np.add,
    tir.Fold.MUL: np.multiply,
    tir.Fold.MIN: np.minimum,
    tir.Fold.MAX: np.maximum,
}


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("name", WIDE_NAMES)
def test_folds_of_lanes(name, lanes, rng):
    dtype = DTYPES[name]
    rows = 16
    a = (rng.standard_normal(rows * lanes) * 2).astype(dtype.numpy)
    if dtype.is_integer:
        a = random_values(rng, dtype, rows * lanes)
    elif dtype.is_bool:
        a = rng.integers(0, 2, rows * lanes).astype(np.bool_)
    buffer, i = flat("a", len(a), dtype), tir.Var("i")
    results = [flat(fold.value, rows, dtype) for fold in FOLDS]
    load = tir.Load(buffer, (ramp(i * lanes, lanes),))
    stores = [
        tir.Store(out, (i,), tir.Reduce(fold, load))
        for out, fold in zip(results, FOLDS, strict=True)
    ]
    arrays = [np.zeros(rows, dtype.numpy) for _ in results]
    program = function([buffer, *results], tir.For(i, tir.Const(rows), tir.Seq(tuple(stores))))
    run(program, [a, *arrays])
    table = a.reshape(rows, lanes)
    for array, (fold, numpy_fold) in zip(arrays, FOLDS.items(), strict=True):
        exact = fold in (tir.Fold.MIN, tir.Fold.MAX) or not dtype.is_float
        if exact:
            expected = numpy_fold.reduce(table, axis=1, dtype=dtype.numpy)
            assert_same(array, expected, f"{fold.value} of {name}x{lanes}", signed_zero=False)
        else:
            expected = numpy_fold.reduce(table.astype("f8"), axis=1)
            error = np.abs(array.astype("f8") - expected)
            scale = numpy_fold.reduce(np.abs(table.astype("f8")), axis=1)
            unit = {"f64": 2**-52, "f32": 2**-23, "f16": 2**-10, "bf16": 2**-7}[name]
            assert (error <= scale * unit * lanes).all()


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("fold", [tir.Fold.MIN, tir.Fold.MAX])
def test_extremes_of_lanes_hand_nan_on(name, fold):
    dtype, lanes = DTYPES[name], 8
    a = np.ones((lanes, lanes), dtype.numpy)
    a[np.arange(lanes), np.arange(lanes)] = np.nan
    buffer, out, i = flat("a", lanes * lanes, dtype), flat("out", lanes, dtype), tir.Var("i")
    value = tir.Reduce(fold, tir.Load(buffer, (ramp(i * lanes, lanes),)))
    array = np.zeros(lanes, dtype.numpy)
    run(
        function([buffer, out], tir.For(i, tir.Const(lanes), tir.Store(out, (i,), value))),
        [a.reshape(-1), array],
    )
    assert np.isnan(array.astype("f4")).all()
