"""How large a size may be, in floats: what integers of 64 bits would not show, because they wrap.

Scratch memory is measured by code of the kernel, from sizes that a model and its caller choose. A
border of 2⁶² elements, or the product of three large dimensions, must be more memory than there is,
and not the few bytes that are left of it modulo 2⁶⁴.
"""

from __future__ import annotations

from tilewright.dtypes import f64
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__ = ["checked"]

TOO_MUCH = 2.0**60
"""Bytes. Sizes below are exact in 64 bits. Quotients count as what is divided, so that a size which
is rounded up to whole tiles seems larger, by thousands at most: 2⁴⁸ bytes would be memory still."""


def checked(total: tir.Expr) -> tir.Expr:
    """A size; -1 if it, or a part of its computation, is too large to be memory."""
    return select(magnitude(total) < tir.const(TOO_MUCH, f64), tir.as_index(total), tir.Const(-1))


def magnitude(expr: tir.Expr) -> tir.Expr:
    """A float that no part of the computation of an integer exceeds, signs left aside."""
    match expr:
        case tir.Const(value=value):
            return tir.const(float(abs(int(value))), f64)
        case tir.Add(a=a, b=b) | tir.Sub(a=a, b=b):
            return magnitude(a) + magnitude(b)
        case tir.Mul(a=a, b=b):
            return magnitude(a) * magnitude(b)
        case tir.Min(a=a, b=b) | tir.Max(a=a, b=b):
            return tir.maximum(magnitude(a), magnitude(b))
        case tir.Select(if_true=a, if_false=b):
            return tir.maximum(magnitude(a), magnitude(b))
        case tir.FloorDiv(a=a) | tir.FloorMod(a=a):
            return magnitude(a)
    size = expr.to(f64)
    return tir.maximum(size, -size)
