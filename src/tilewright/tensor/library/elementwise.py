"""Programs without reductions: maps, movements, stencils."""

from __future__ import annotations

from tilewright.dtypes import DType, f32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, compute, func, placeholder
from tilewright.tensor.library.dims import Dim, padded

__all__ = ["add", "broadcast_add", "convert", "elementwise_chain", "gelu", "pad2d", "stencil"]
__all__ += ["transpose", "unary"]


def unary(function: str, rows: Dim, columns: Dim, dtype: DType = f32) -> tir.Func:
    """Y = function(X) for a math function by name."""
    x = placeholder("X", (rows, columns), dtype)
    y = compute("Y", (rows, columns), lambda i, j: call(function, x[i, j]).to(dtype))
    return func(function, [x], [y])


def gelu(rows: Dim, columns: Dim, dtype: DType = f32) -> tir.Func:
    """Y = X·Φ(X)."""
    return unary("gelu", rows, columns, dtype)


def add(rows: Dim, columns: Dim, dtype: DType = f32) -> tir.Func:
    """C = A + B."""
    a, b = placeholder("A", (rows, columns), dtype), placeholder("B", (rows, columns), dtype)
    c = compute("C", (rows, columns), lambda i, j: (a[i, j] + b[i, j]).to(dtype))
    return func("add", [a, b], [c])


def broadcast_add(rows: Dim, columns: Dim, dtype: DType = f32) -> tir.Func:
    """C[i, j] = A[i, j] + b[j]."""
    a, b = placeholder("A", (rows, columns), dtype), placeholder("B", (columns,), dtype)
    c = compute("C", (rows, columns), lambda i, j: (a[i, j] + b[j]).to(dtype))
    return func("broadcast_add", [a, b], [c])


def convert(rows: Dim, columns: Dim, source: DType, result: DType) -> tir.Func:
    """Y = X in another element type."""
    x = placeholder("X", (rows, columns), source)
    y = compute("Y", (rows, columns), lambda i, j: x[i, j].to(result), result)
    return func("convert", [x], [y])


def elementwise_chain(rows: Dim, columns: Dim) -> tir.Func:
    """Five operations in five blocks: scale, shift by a row vector, gelu, square, clip."""
    shape = (rows, columns)
    x, b = placeholder("X", shape), placeholder("B", (columns,))
    t1 = compute("T1", shape, lambda i, j: x[i, j] * 0.5)
    t2 = compute("T2", shape, lambda i, j: t1[i, j] + b[j])
    t3 = compute("T3", shape, lambda i, j: call("gelu", t2[i, j]))
    t4 = compute("T4", shape, lambda i, j: t3[i, j] * t3[i, j])
    y = compute("Y", shape, lambda i, j: tir.minimum(t4[i, j], 6.0))
    return func("elementwise_chain", [x, b], [y])


def transpose(rows: Dim, columns: Dim, dtype: DType = f32) -> tir.Func:
    """Y[j, i] = X[i, j]."""
    x = placeholder("X", (rows, columns), dtype)
    y = compute("Y", (columns, rows), lambda i, j: x[j, i].to(dtype), dtype)
    return func("transpose", [x], [y])


def pad2d(rows: Dim, columns: Dim, border: int, dtype: DType = f32) -> tir.Func:
    """Y = X with zeros around it."""
    x = placeholder("X", (rows, columns), dtype)
    y = padded("Y", x, (border, border), (border, border), "ij")
    return func("pad2d", [x], [y])


def stencil(rows: int, columns: int, dtype: DType = f32) -> tir.Func:
    """The five-point sum of a grid, without its border, in two sweeps."""
    x = placeholder("X", (rows, columns), dtype)
    first = compute(
        "T",
        (rows - 2, columns - 2),
        lambda i, j: (
            x[i + 1, j + 1] + x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2]
        ),
    )
    second = compute(
        "Y",
        (rows - 4, columns - 4),
        lambda i, j: first[i, j] + first[i + 2, j] + first[i + 1, j + 1] + first[i + 2, j + 2],
    )
    return func("stencil", [x], [second])
