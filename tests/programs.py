"""Small programs that several tests schedule, and the comparison of what they mean."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.dtypes import DType, f32, i8, i32, u8
from tilewright.schedule import Schedule, Trace
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, size, sum_over
from tilewright.tensor.interpret import interpret
from tilewright.tensor.regions import outputs, sizes


def vector_add(n: int | tir.Expr = 30) -> tir.Func:
    a, b = placeholder("A", (n,)), placeholder("B", (n,))
    c = compute("C", (n,), lambda i: a[i] + b[i])
    return func("vector_add", [a, b], [c])


def symbolic_add() -> tir.Func:
    return vector_add(size("n"))


def copy_2d(m: int = 4, n: int = 6) -> tir.Func:
    a = placeholder("A", (m, n))
    c = compute("C", (m, n), lambda i, j: a[i, j] * 2.0)
    return func("copy_2d", [a], [c])


def matmul(
    m: int | tir.Expr = 4, n: int | tir.Expr = 6, k: int | tir.Expr = 8, dtype: DType = f32
) -> tir.Func:
    a, b = placeholder("A", (m, k), dtype), placeholder("B", (k, n), dtype)
    r = reduce_axis(k, "k")
    c = compute("C", (m, n), lambda i, j: sum_over(a[i, r] * b[r, j], r))
    return func("matmul", [a, b], [c])


def symbolic_matmul() -> tir.Func:
    return matmul(size("rows"), 6, size("depth"))


def matmul_relu(m: int = 4, n: int = 6, k: int = 8) -> tir.Func:
    a, b = placeholder("A", (m, k)), placeholder("B", (k, n))
    r = reduce_axis(k, "k")
    c = compute("C", (m, n), lambda i, j: sum_over(a[i, r] * b[r, j], r))
    d = compute("D", (m, n), lambda x, y: tir.maximum(c[x, y], 0.0))
    return func("matmul_relu", [a, b], [d])


def quantised_matmul(m: int = 2, n: int = 8, k: int = 8, *, packed: bool = False) -> tir.Func:
    """u8 × i8 → i32; packed, four (or two) values along k lie beside each other for 8 columns."""
    a = placeholder("A", (m, k), u8)
    r, s = reduce_axis(k // 4, "k"), reduce_axis(4, "r")
    if packed:
        b = placeholder("B", (k // 4, n * 4), i8)
        c = compute(
            "C",
            (m, n),
            lambda i, j: sum_over(a[i, r * 4 + s].to(i32) * b[r, j * 4 + s].to(i32), r, s),
        )
    else:
        b = placeholder("B", (k // 4, n, 4), i8)
        c = compute(
            "C",
            (m, n),
            lambda i, j: sum_over(a[i, r * 4 + s].to(i32) * b[r, j, s].to(i32), r, s),
        )
    return func("quantised_matmul", [a, b], [c])


def row_sum(m: int = 4, n: int = 12, dtype: DType = f32) -> tir.Func:
    a = placeholder("A", (m, n), dtype)
    k = reduce_axis(n, "k")
    c = compute("C", (m,), lambda i: sum_over(a[i, k], k))
    return func("row_sum", [a], [c])


def total(m: int = 4, n: int = 6) -> tir.Func:
    """A sum over two axes into a scalar."""
    a = placeholder("A", (m, n))
    p, q = reduce_axis(m, "p"), reduce_axis(n, "q")
    c = compute("C", (), lambda: sum_over(a[p, q], p, q))
    return func("total", [a], [c])


def conv1d(n: int = 10, width: int = 3, channels: int = 2) -> tir.Func:
    a = placeholder("A", (channels, n + width - 1))
    w = placeholder("W", (channels, width))
    r, c = reduce_axis(width, "r"), reduce_axis(channels, "c")
    out = compute("C", (n,), lambda i: sum_over(a[c, i + r] * w[c, r], c, r))
    return func("conv1d", [a, w], [out])


def integers_for(
    program: tir.Func, rng: np.random.Generator, size_values: Mapping[str, int] | None = None
) -> dict[str, np.ndarray]:
    """Small whole numbers for every input: sums of them are exact in every dtype."""
    values = {v: (size_values or {}).get(v.name, 5) for v in sizes(program)}
    made = {}
    for param in program.params:
        if param in outputs(program):
            continue
        shape = [int(_number(d, values)) for d in param.shape]
        low = 0 if not param.dtype.is_signed else -4
        made[param.name] = rng.integers(low, 5, shape).astype(param.dtype.numpy)
    return made


def _number(dim: tir.Expr, values: Mapping[tir.Var, int]) -> int:
    known = tir.int_value(dim)
    if known is not None:
        return known
    assert isinstance(dim, tir.Var)
    return values[dim]


def assert_same_meaning(
    schedule: Schedule,
    program: tir.Func,
    rng: np.random.Generator,
    size_values: Mapping[str, int] | None = None,
) -> None:
    """The schedule computes what the program did, and its trace replays to the same text."""
    inputs = integers_for(program, rng, size_values)
    expected, found = interpret(program, inputs), interpret(schedule.func, inputs)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=str(schedule.func))
    replayed = Schedule(program, Trace.from_json(schedule.trace.to_json()))
    assert str(replayed.func) == str(schedule.func)
