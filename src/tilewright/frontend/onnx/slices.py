"""`Slice`, also where only data tells from where to where.

Places that are known without data make a `Remap`. Others are computed like any other numbers: how
many there are becomes a size that data tells (`Count`), and the elements are gathered.

    x[a:b:2]   becomes   n = max(0, ceil((b - a) / 2));  x[a + 2·(0, 1, …, n - 1)]
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dtypes import i64
from tilewright.frontend.onnx.movement import cut, span
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.shapes import known_axes, known_integers, known_numbers
from tilewright.frontend.onnx.taking import take
from tilewright.frontend.onnx.told import counted, element
from tilewright.graph import Builder, Value
from tilewright.graph.folding import MAX_ELEMENTS
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__ = ["slice_"]


@onnx_op("Slice")
def slice_(
    b: Builder,
    node: OnnxNode,
    x: Value,
    starts: Value | None = None,
    ends: Value | None = None,
    axes: Value | None = None,
    steps: Value | None = None,
) -> Value:
    """NumPy's `x[start:end:step]` along some axes."""
    along, by = known_axes(b, node, x.rank, axes), known_numbers(b, node, "steps", steps)
    # The second step of more elements than there can be leads outside, whatever its size.
    by = [max(-MAX_ELEMENTS, min(step, MAX_ELEMENTS)) for step in by or ()]
    if starts is not None and ends is not None and (_is_told(b, starts) or _is_told(b, ends)):
        count = _count_of(node, [fixed(v.shape[0]) for v in (starts, ends)], along, by)
        return _cut_by_data(b, x, starts, ends, along or range(count), by or [1] * count)
    first = known_integers(b, node, "starts", starts) or []
    last = known_integers(b, node, "ends", ends) or []
    by = by or [1] * len(first)
    for axis, start, end, step in zip(along or range(x.rank), first, last, by, strict=False):
        begin, length = span(x.shape[axis], start, end, step)
        x = cut(b, x, axis, begin, length, step)
    return x


def _is_told(b: Builder, ends: Value | None) -> bool:
    """Whether only data tells the starts or ends of slices."""
    return ends is not None and b.integers(ends) is None


def _count_of(node: OnnxNode, told: Sequence[int | None], *lists: Sequence[int] | None) -> int:
    """How many axes there are: all inputs of a slice have one length, of which one may be known."""
    known = [n for n in (*told, *(len(numbers) for numbers in lists if numbers)) if n is not None]
    return known[0] if known else node.decline("the number of axes depends on data")


def _cut_by_data(
    b: Builder, x: Value, starts: Value, ends: Value, along: Sequence[int], by: Sequence[int]
) -> Value:
    for k, (axis, step) in enumerate(zip(along, by, strict=True)):
        start, end = (element(b, v, k) for v in (starts, ends))
        x = take(b, x, _places(b, x.shape[axis], start, end, step), axis)
    return x


def _places(b: Builder, dim: tir.Expr, start: Value, end: Value, step: int) -> Value:
    """The numbers of the elements of a slice whose ends, vectors of one element, are data."""
    lowest, limit = (tir.Const(0), dim) if step > 0 else (tir.Const(-1), dim - 1)

    def first(place: tir.Expr) -> tir.Expr:
        front = tir.maximum(select(place < 0, place + dim, place), 0)
        return tir.minimum(front, limit)

    def length(place: tir.Expr, stop: tir.Expr) -> tir.Expr:
        front = select(stop < 0, stop + dim, stop)
        reached = tir.maximum(tir.minimum(front, limit), lowest)
        distance = reached - first(place) if step > 0 else first(place) - reached
        return tir.maximum((distance + (abs(step) - 1)) // abs(step), 0)

    numbers = counted(b, b.map(length, start, end, dtype=i64))
    return b.map(lambda i, place: i * step + first(place), numbers, start, dtype=i64)
