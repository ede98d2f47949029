"""The summands of an index as it is written."""

from __future__ import annotations

from tilewright.tensor import ir as tir

__all__ = ["terms"]


def terms(expr: tir.Expr, factor: int = 1) -> list[tuple[int, tir.Expr]]:
    """The summands of an expression, each with its constant factor."""
    match expr:
        case tir.Add(a=a, b=b):
            return terms(a, factor) + terms(b, factor)
        case tir.Sub(a=a, b=b):
            return terms(a, factor) + terms(b, -factor)
        case tir.Mul(a=a, b=tir.Const(value=value)) | tir.Mul(a=tir.Const(value=value), b=a):
            return terms(a, factor * int(value))
    return [(factor, expr)]
