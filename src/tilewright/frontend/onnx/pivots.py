"""The step that elimination begins each column with, for determinants and inverse matrices."""

from __future__ import annotations

from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.ops import ArgReduce, axis, picked
from tilewright.graph.ops.gather import Gather
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["pivoted"]


def pivoted(b: Builder, step: Value, matrices: Value) -> tuple[Value, Value, Value]:
    """Matrices with the greatest element of a column, from the diagonal on down, on the diagonal.

    Beside them the row that each came from, and the numbers of all rows.
    """
    numbers = b.tabulate((1, matrices.shape[1]), lambda _, i: i)
    column = take(b, matrices, step, 2)
    sizes = b.map(
        lambda v, i, k: select(i < k, tir.const(-1, v.dtype), call("abs", v)), column, numbers, step
    )
    pivot = b.add(ArgReduce(tir.Fold.MAX, 1), sizes)
    rows = b.map(lambda i, p, k: select(i.eq(k), p, select(i.eq(p), k, i)), numbers, pivot, step)
    swap = Gather(matrices.shape, ((1, (axis(0), axis(1))),), (axis(0), picked(0), axis(2)))
    return b.add(swap, matrices, rows), pivot, numbers
