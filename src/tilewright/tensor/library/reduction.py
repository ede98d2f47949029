"""Reductions along rows and columns, and the normalisations made of them."""

from __future__ import annotations

from tilewright.dtypes import DType, f32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    call,
    compute,
    func,
    max_over,
    placeholder,
    reduce_axis,
    select,
    sum_over,
)
from tilewright.tensor.library.dims import Dim, accumulator, number

__all__ = ["column_sum", "cumulative_sum", "layernorm", "row_max", "row_sum", "softmax", "total"]


def row_sum(rows: Dim, columns: Dim, dtype: DType = f32) -> tir.Func:
    """Y[i] = Σ X[i, :]."""
    x = placeholder("X", (rows, columns), dtype)
    k = reduce_axis(columns, "k")
    y = compute("Y", (rows,), lambda i: sum_over(x[i, k].to(accumulator(dtype)), k))
    return func("row_sum", [x], [y])


def column_sum(rows: Dim, columns: Dim, dtype: DType = f32) -> tir.Func:
    """Y[j] = Σ X[:, j]."""
    x = placeholder("X", (rows, columns), dtype)
    k = reduce_axis(rows, "k")
    y = compute("Y", (columns,), lambda j: sum_over(x[k, j].to(accumulator(dtype)), k))
    return func("column_sum", [x], [y])


def row_max(rows: Dim, columns: Dim, dtype: DType = f32) -> tir.Func:
    """Y[i] = max X[i, :]."""
    x = placeholder("X", (rows, columns), dtype)
    k = reduce_axis(columns, "k")
    y = compute("Y", (rows,), lambda i: max_over(x[i, k], k))
    return func("row_max", [x], [y])


def total(rows: Dim, columns: Dim, dtype: DType = f32) -> tir.Func:
    """Y[] = Σ X, a result without dimensions."""
    x = placeholder("X", (rows, columns), dtype)
    i, j = reduce_axis(rows, "i"), reduce_axis(columns, "j")
    y = compute("Y", (), lambda: sum_over(x[i, j].to(accumulator(dtype)), i, j))
    return func("total", [x], [y])


def cumulative_sum(length: Dim, dtype: DType = f32) -> tir.Func:
    """Y[i] = Σ X[k] over k ≤ i, as a triangular reduction."""
    x = placeholder("X", (length,), dtype)
    k = reduce_axis(length, "k")
    acc = accumulator(dtype)
    y = compute("Y", (length,), lambda i: sum_over(select(k <= i, x[k].to(acc), 0), k))
    return func("cumulative_sum", [x], [y])


def softmax(rows: Dim, columns: Dim, dtype: DType = f32) -> tir.Func:
    """exp(X - max) / Σ exp(X - max) along rows; one division for each row."""
    x = placeholder("X", (rows, columns), dtype)
    k, r = reduce_axis(columns, "k"), reduce_axis(columns, "r")
    greatest = compute("M", (rows,), lambda i: max_over(x[i, k], k))
    power = compute("E", (rows, columns), lambda i, j: call("exp_bounded", x[i, j] - greatest[i]))
    norm = compute("S", (rows,), lambda i: sum_over(power[i, r], r))
    scale = compute("R", (rows,), lambda i: 1.0 / norm[i])
    y = compute("Y", (rows, columns), lambda i, j: (power[i, j] * scale[i]).to(dtype))
    return func("softmax", [x], [y])


def layernorm(rows: Dim, columns: Dim, dtype: DType = f32, epsilon: float = 1e-5) -> tir.Func:
    """(X - mean) / sqrt(variance + epsilon)·G + B along rows."""
    x = placeholder("X", (rows, columns), dtype)
    g, b = placeholder("G", (columns,), dtype), placeholder("B", (columns,), dtype)
    k, r = reduce_axis(columns, "k"), reduce_axis(columns, "r")
    acc = accumulator(dtype)
    sums = compute("S", (rows,), lambda i: sum_over(x[i, k], k))
    mean = compute("M", (rows,), lambda i: sums[i] / number(columns, acc))
    square = compute("V", (rows,), lambda i: sum_over((x[i, r] - mean[i]) * (x[i, r] - mean[i]), r))
    scale = compute(
        "R", (rows,), lambda i: call("rsqrt", square[i] / number(columns, acc) + epsilon)
    )
    y = compute(
        "Y",
        (rows, columns),
        lambda i, j: ((x[i, j] - mean[i]) * scale[i] * g[j] + b[j]).to(dtype),
    )
    return func("layernorm", [x, g, b], [y])
