"""`Det`: determinants of stacks of square matrices, by elimination with pivots."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.pivots import pivoted
from tilewright.frontend.onnx.reductions import widened
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.loops import Outside, Turn, loop
from tilewright.graph.sizes import fixed, product
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__: list[str] = []


@onnx_op("Det")
def determinant(b: Builder, node: OnnxNode, x: Value) -> Value:
    """A number for each matrix; one for matrices without elements."""
    lead, size = x.shape[:-2], x.shape[-1]
    matrices = b.reshape(widened(b, x), (product(lead), size, size))
    ones = b.expand(b.constant(1, "one", matrices.dtype), (product(lead),))
    if fixed(size) == 0:
        return converted(b, b.reshape(ones, lead), x.dtype)
    steps = b.reshape(b.sizes([size]), ())
    _, found = loop(b, _eliminate, steps, [matrices, ones])
    return converted(b, b.reshape(found, lead), x.dtype)


def _eliminate(b: Builder, step: Value, carried: Sequence[Value], outside: Outside) -> Turn:
    """One column: its greatest element below comes to the diagonal, and clears those below it."""
    matrices, found = carried
    count, size, _ = matrices.shape
    swapped, pivot, numbers = pivoted(b, step, matrices)
    top = take(b, swapped, step, 1)
    corner = take(b, top, step, 1)
    below = b.map(
        lambda v, c, i, k: select((k < i) & c.ne(0.0), v / c, tir.const(0, v.dtype)),
        take(b, swapped, step, 2),
        b.reshape(corner, (count, 1)),
        numbers,
        step,
    )
    left = b.map(
        lambda v, w, t: v - w * t,
        swapped,
        b.reshape(below, (count, size, 1)),
        b.reshape(top, (count, 1, size)),
    )
    signed = b.map(
        lambda d, c, p, k: select(p.eq(k), d * c, -(d * c)),
        found,
        corner,
        b.reshape(pivot, (count,)),
        step,
    )
    return Turn([left, signed])
