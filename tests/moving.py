"""Programs of several blocks, for the primitives that move, copy and inline blocks."""

from __future__ import annotations

from tilewright.dtypes import i32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, select, sum_over


def chain(n: int | tir.Expr = 16) -> tir.Func:
    """`B = 2A`, `C = B + 1`."""
    a = placeholder("A", (n,))
    b = compute("B", (n,), lambda i: a[i] * 2.0)
    c = compute("C", (n,), lambda i: b[i] + 1.0)
    return func("chain", [a], [c])


def integers(n: int = 12) -> tir.Func:
    """`B = A²`, `C = B − A` on integers."""
    a = placeholder("A", (n,), i32)
    b = compute("B", (n,), lambda i: a[i] * a[i])
    c = compute("C", (n,), lambda i: b[i] - a[i])
    return func("integers", [a], [c])


def dense(m: int = 4, n: int = 6, k: int = 8, *, relu: bool = False) -> tir.Func:
    """A matmul, with a bias and a relu behind it if wanted."""
    a, b, r = placeholder("A", (m, k)), placeholder("B", (k, n)), reduce_axis(k, "k")
    c = compute("C", (m, n), lambda i, j: sum_over(a[i, r] * b[r, j], r))
    if not relu:
        return func("dense", [a, b], [c])
    bias = placeholder("bias", (n,))
    d = compute("D", (m, n), lambda i, j: c[i, j] + bias[j])
    e = compute("E", (m, n), lambda i, j: tir.maximum(d[i, j], 0.0))
    return func("dense", [a, b, bias], [e])


def stencil(n: int = 16) -> tir.Func:
    """`C[i] = B[i] + B[i + 1] + B[i + 2]`."""
    a = placeholder("A", (n + 2,))
    b = compute("B", (n + 2,), lambda i: a[i] * 2.0)
    c = compute("C", (n,), lambda i: b[i] + b[i + 1] + b[i + 2])
    return func("stencil", [a], [c])


def windowed(n: int = 8, stride: int = 1, *, clamped: bool = False) -> tir.Func:
    """A convolution of `B = 2A`; clamped, it reads zeros where the window is outside of B."""
    length = n if clamped else (n - 1) * stride + 3
    a, w, r = placeholder("A", (length,)), placeholder("W", (3,)), reduce_axis(3, "r")
    b = compute("B", (length,), lambda i: a[i] * 2.0)

    def at(i: tir.Expr) -> tir.Expr:
        if not clamped:
            return b[i * stride + r]
        where = i + r - 1
        inside = (where >= 0) & (where < length)
        return select(inside, b[tir.maximum(tir.minimum(where, length - 1), 0)], 0.0)

    c = compute("C", (n,), lambda i: sum_over(at(i) * w[r], r))
    return func("windowed", [a, w], [c])


def diamond(n: int = 16, shift: int = 0) -> tir.Func:
    """`B` feeds `C` and (shifted) `D`, which meet in `E`."""
    a = placeholder("A", (n + shift,))
    b = compute("B", (n + shift,), lambda i: a[i] * 2.0)
    c = compute("C", (n,), lambda i: b[i] + 1.0)
    d = compute("D", (n,), lambda i: b[i + shift] * c[i])
    e = compute("E", (n,), lambda i: c[i] + d[i])
    return func("diamond", [a], [e])


def rows(m: int = 4, n: int = 12) -> tir.Func:
    """`B = A²`, then the sum of each row."""
    a, k = placeholder("A", (m, n)), reduce_axis(n, "k")
    b = compute("B", (m, n), lambda i, j: a[i, j] * a[i, j])
    c = compute("C", (m,), lambda i: sum_over(b[i, k], k))
    return func("rows", [a], [c])
