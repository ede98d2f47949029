"""Which keys count in the attention of onnxruntime's domain: lengths, spans, and whole masks."""

from __future__ import annotations

from tilewright.dtypes import i64
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.graph import Builder, Value
from tilewright.graph.sizes import dims_equal, fixed, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__ = ["as_long", "padding"]


def padding(
    b: Builder, node: OnnxNode, mask: Value | None, q: Value, keys: tir.Expr
) -> list[Value]:
    """What is added to scores [batch, heads, queries, keys]: nothing, or a low number.

    A mask has an element for each key of each sample, or for each query and key, which is positive
    where the key counts; or it says how many keys each sample has; or where these end (first half)
    and where they begin (second half); or how many there are, followed by where the queries and the
    keys of samples begin if all are stored one behind another, which says nothing new.
    """
    if mask is None:
        return []
    low = node.float("mask_filter_value", -10000.0)

    def added(counts: Value) -> list[Value]:
        return [b.map(lambda m: select(m, 0.0, low), counts, dtype=q.dtype)]

    if mask.rank == 1:
        place = b.tabulate((keys,), lambda j: j)
        ends, starts = _spans(b, node, mask, q.shape[0])
        if starts is None:
            return added(b.map(lambda j, n: j < n.to(i64), place, ends))
        return added(b.map(lambda j, n, m: (j < n.to(i64)) & (j >= m.to(i64)), place, ends, starts))
    if mask.rank == 2:
        wide = b.reshape(mask, (mask.shape[0], 1, 1, mask.shape[1]))
    elif mask.rank == 3:
        wide = b.reshape(mask, (mask.shape[0], 1, *mask.shape[1:]))
    else:
        node.decline("a mask of four dimensions")
    return added(as_long(b, b.map(lambda m: m > 0, wide), keys))


def _spans(b: Builder, node: OnnxNode, mask: Value, batch: tir.Expr) -> tuple[Value, Value | None]:
    """[batch, 1, 1, 1]: where the keys of samples end and, if that is not 0, where they begin.

    Of a length and a batch that are not known, a run tells whether it is once or twice the batch.
    """
    column, have = (batch, 1, 1, 1), mask.shape[0]
    if dims_equal(have, batch):
        return b.reshape(mask, column), None
    if dims_equal(have, tidy(batch * 3 + 2)):
        return b.reshape(b.remap(mask, (batch,), lambda k: [k]), column), None
    length, samples = fixed(have), fixed(batch)
    if length is not None and samples is not None and length != 2 * samples:
        node.decline("a mask of another length")
    times = tir.minimum(tir.maximum(have - batch + 1, 1), 2)  # two if it is longer than the batch
    halves = b.reshape(mask, (tidy(times * batch),))  # another length ends the run
    ends, starts = (
        b.remap(halves, (batch,), lambda k, at=at: [k + at], lambda k, at=at: k + at < have)
        for at in (tir.Const(0), batch)
    )
    return b.reshape(ends, column), b.reshape(starts, column)


def as_long(b: Builder, mask: Value, keys: tir.Expr) -> Value:
    """A mask with an element for each key; those that it lacks are zero."""
    have = mask.shape[-1]
    if dims_equal(have, keys) or fixed(have) == 1:
        return mask
    return b.remap(mask, (*mask.shape[:-1], keys), lambda *o: o, lambda *o: o[-1] < have)
