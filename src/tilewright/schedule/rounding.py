"""Domains that grow to whole tiles: the new extent, and loads that stay inside their buffers."""

from __future__ import annotations

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.node import Node
from tilewright.tensor.visit import rewrite, substitute

__all__ = ["clamped", "rounded_up"]


def rounded_up(extent: tir.Expr, multiple: int) -> tir.Expr:
    """The least multiple that is not below the extent."""
    known = tir.int_value(extent)
    if known is not None:
        return tir.Const(-(-known // multiple) * multiple)
    return (extent + (multiple - 1)) // multiple * multiple


def clamped(
    stmt: tir.Stmt,
    own: tir.Buffer,
    it: tir.Iter,
    larger: tir.Expr,
    grown: Analyzer | None = None,
) -> tir.Stmt:
    """A body whose iterator grows: other buffers that are too short are read at their last element.

    `own` is the buffer that the body writes, which grows with it; `grown` knows all iterators, this
    one with its new extent, and thus which buffers are long enough.
    """
    last = {it.var: tir.minimum(it.var, it.extent - 1)}

    def fits(index: tir.Expr, size: tir.Expr) -> bool:
        if index is it.var and size == larger:
            return True
        inside = tir.BitAnd(tir.Le(tir.Const(0), index), tir.Lt(index, size))
        return grown is not None and grown.prove(inside) is True

    def change(part: Node) -> Node | None:
        if type(part) is not tir.Load or part.buffer is own:
            return None
        pairs = zip(part.indices, part.buffer.shape, strict=True)
        return part.with_fields(
            indices=tuple(
                [index if fits(index, size) else substitute(index, last) for index, size in pairs]
            )
        )

    return rewrite(stmt, change)
