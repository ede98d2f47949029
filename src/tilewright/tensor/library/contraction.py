"""Contractions: matrix products in their usual forms."""

from __future__ import annotations

from tilewright.dtypes import DType, f32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute, func, placeholder, reduce_axis, sum_over
from tilewright.tensor.library.dims import Dim, accumulator, stored

__all__ = ["batched_matmul", "matmul", "matvec", "outer_product"]


def matmul(
    m: Dim,
    n: Dim,
    k: Dim,
    dtype: DType = f32,
    *,
    out: DType | None = None,
    transpose_b: bool = False,
    bias: bool = False,
    relu: bool = False,
) -> tir.Func:
    """C = A·B, or A·Bᵀ, with an optional epilogue `max(C + bias, 0)` in a block of its own."""
    acc = accumulator(dtype)
    a = placeholder("A", (m, k), dtype)
    b = placeholder("B", (n, k) if transpose_b else (k, n), dtype)
    r = reduce_axis(k, "k")
    plain = not (bias or relu) and (out or acc) == acc
    product = compute(
        "C" if plain else "T",
        (m, n),
        lambda i, j: sum_over(a[i, r].to(acc) * (b[j, r] if transpose_b else b[r, j]).to(acc), r),
    )
    inputs = [a, b]
    result = product
    if bias:
        d = placeholder("D", (n,), acc)
        inputs.append(d)
    if bias or relu:

        def epilogue(i: tir.Expr, j: tir.Expr) -> tir.Expr:
            value = product[i, j] + d[j] if bias else product[i, j]
            return tir.maximum(value, 0) if relu else value

        last = (out or acc) == acc
        result = compute("C" if last else "E", (m, n), epilogue)
    result = stored("C", result, out or acc, "ij")
    return func("matmul", inputs, [result])


def batched_matmul(batch: Dim, m: Dim, n: Dim, k: Dim, dtype: DType = f32) -> tir.Func:
    """C[b] = A[b]·B[b]."""
    acc = accumulator(dtype)
    left, right = placeholder("A", (batch, m, k), dtype), placeholder("B", (batch, k, n), dtype)
    r = reduce_axis(k, "k")
    result = compute(
        "C",
        (batch, m, n),
        lambda b, i, j: sum_over(left[b, i, r].to(acc) * right[b, r, j].to(acc), r),
    )
    return func("batched_matmul", [left, right], [result])


def matvec(m: Dim, k: Dim, dtype: DType = f32) -> tir.Func:
    """The product of a matrix and a vector: y = A·x."""
    acc = accumulator(dtype)
    a, x = placeholder("A", (m, k), dtype), placeholder("x", (k,), dtype)
    r = reduce_axis(k, "k")
    y = compute("y", (m,), lambda i: sum_over(a[i, r].to(acc) * x[r].to(acc), r))
    return func("matvec", [a, x], [y])


def outer_product(m: Dim, n: Dim, dtype: DType = f32) -> tir.Func:
    """C[i, j] = x[i]·y[j], without a reduction."""
    x: Tensor = placeholder("x", (m,), dtype)
    y = placeholder("y", (n,), dtype)
    c = compute("C", (m, n), lambda i, j: x[i] * y[j])
    return func("outer_product", [x, y], [c])
