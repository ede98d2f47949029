"""Attention and rotary position embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.dtypes import boolean, i64
from tilewright.frontend.onnx.attention_stages import in_stages
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ops import Gather, axis, computed_as, picked
from tilewright.graph.ops.attend import Attend
from tilewright.graph.sizes import dims_equal, fixed, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__ = ["rotated", "split_heads", "table_rows"]

HEADS_FIRST, HEADS_INSIDE = "bhsd", "bshd"


@onnx_op("Attention")
def attention(
    b: Builder,
    node: OnnxNode,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    lengths: Value | None = None,
) -> Sequence[Value | None]:
    """Softmax of scores times values; heads lie in front of positions, or inside of features."""
    flat = q.rank == 3
    if flat:
        heads, shared = node.int("q_num_heads"), node.int("kv_num_heads")
        q, k, v = (split_heads(b, x, n) for x, n in ((q, heads), (k, shared), (v, shared)))
    if {q.rank, k.rank, v.rank} != {len(HEADS_FIRST)}:
        raise ValueError("queries, keys and values have three or four dimensions, all alike")
    features = fixed(q.shape[-1])
    if features is None:
        node.decline("an unknown number of features")
    layout = stored = HEADS_INSIDE if flat else HEADS_FIRST
    many, few = (x.shape[layout.index("h")] for x in (q, k))
    if not dims_equal(many, few) and (fixed(many) is None or fixed(few) is None):
        node.decline("unknown numbers of heads")
    if flat and (past_key is not None or node.wants(1)):
        k, v, stored = b.transpose(k, (0, 2, 1, 3)), b.transpose(v, (0, 2, 1, 3)), HEADS_FIRST
    past: tir.Expr = tir.Const(0)
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        k, v = b.concat([past_key, k], 2), b.concat([past_value, v], 2)
    queries, keys = q.shape[layout.index("s")], k.shape[stored.index("s")]
    masks = [] if mask is None else [_as_long(b, node, mask, keys)]
    masks += _windows(b, node, queries, keys, past, lengths)
    op = Attend(
        (layout, stored, stored, layout),
        node.float("scale") if node.has("scale") else 1 / math.sqrt(features),
        bool(node.int("is_causal")) and lengths is None,
        past,
        node.float("softcap") or None,
        guarded="masked" if masks else None,
    )
    wide = computed_as(q.dtype)  # values may be of another type than queries and keys
    alike = v if computed_as(v.dtype) == wide else b.map(lambda e: e, v, dtype=wide)
    scores: Value | None = None
    if node.wants(3):
        y, scores = in_stages(b, op, (q, k, alike, *masks), node.int("qk_matmul_output_mode"))
    else:
        y = b.add(op, q, k, alike, *masks)
    if flat:
        y = b.reshape(y, (*y.shape[:2], tidy(y.shape[2] * y.shape[3])))
    return [y, k, v, scores] if stored == HEADS_FIRST else [y, None, None, scores]


def split_heads(b: Builder, x: Value, heads: int) -> Value:
    """(batch, positions, features) → (batch, positions, heads, features of a head)."""
    return b.reshape(x, (*x.shape[:2], heads, tidy(x.shape[2] // heads)))


def _as_long(b: Builder, node: OnnxNode, mask: Value, keys: tir.Expr) -> Value:
    """A mask with an entry for each key; what it lacks at its end is masked.

    Before opset 24 a single entry is that of all keys.
    """
    have, repeats = mask.shape[-1], node.opset < 24
    if dims_equal(have, keys) or (repeats and fixed(have) == 1):
        return mask
    may_repeat = repeats and fixed(have) is None

    def place(*o: tir.Expr) -> Sequence[tir.Expr]:
        return [*o[:-1], select(have.eq(1), 0, o[-1])] if may_repeat else o

    def inside(*o: tir.Expr) -> tir.Expr:
        return (o[-1] < have) | have.eq(1) if may_repeat else o[-1] < have

    fill = False if mask.dtype.is_bool else -math.inf
    return b.remap(mask, (*mask.shape[:-1], keys), place, inside, fill)


def _windows(
    b: Builder,
    node: OnnxNode,
    queries: tir.Expr,
    keys: tir.Expr,
    past: tir.Expr,
    lengths: Value | None,
) -> list[Value]:
    """Which keys a query may see by their places: windows, and as far as keys are valid."""
    left, right = node.int("left_window_size", -1), node.int("right_window_size", -1)
    causal = bool(node.int("is_causal")) and lengths is not None

    def visible(ahead: tir.Expr) -> tir.Expr:
        """Of a key `ahead` of the query."""
        held: tir.Expr = tir.TRUE
        if left >= 0:
            held = held & (ahead >= -left)
        if right >= 0:
            held = held & (ahead <= right)
        return held & (ahead <= 0) if causal else held

    bounded = left >= 0 or right >= 0 or causal
    if lengths is None:
        shape = (queries, keys)
        return [b.tabulate(shape, lambda i, j: visible(j - i - past), boolean)] if bounded else []
    count = b.reshape(lengths, (*lengths.shape, 1, 1, 1))
    place = b.tabulate((keys,), lambda j: j)
    masks = [b.map(lambda j, n: j < n.to(i64), place, count)]
    if bounded:  # the last query stands at the last valid key
        ahead = b.tabulate((queries, keys), lambda i, j: j - i + queries)
        masks.append(b.map(lambda a, n: visible(a - n.to(i64)), ahead, count))
    return masks


@onnx_op("RotaryEmbedding")
def rotary_embedding(
    b: Builder,
    node: OnnxNode,
    x: Value,
    cosines: Value,
    sines: Value,
    positions: Value | None = None,
) -> Value:
    """Pairs of features turned by angles that depend on the position."""
    flat, shape = x.rank == 3, x.shape
    if flat:
        x = split_heads(b, x, node.int("num_heads"))
    if positions is not None:
        cosines, sines = (table_rows(b, t, positions) for t in (cosines, sines))
    head = 2 if flat else 1  # angles are the same for all heads
    cosines, sines = (b.reshape(t, (*t.shape[:head], 1, *t.shape[head:])) for t in (cosines, sines))
    y = rotated(b, x, cosines, sines, interleaved=bool(node.int("interleaved")))
    return b.reshape(y, shape) if flat else y


def table_rows(b: Builder, table: Value, positions: Value) -> Value:
    """(batch, positions, pairs): a row of a table for each position."""
    shape = (*positions.shape, table.shape[-1])
    o = [axis(n) for n in range(len(shape))]
    read = (1, tuple(o[:-1]))
    return b.add(Gather(shape, (read,), (picked(0), o[-1])), table, positions)


def rotated(b: Builder, x: Value, cosines: Value, sines: Value, *, interleaved: bool) -> Value:
    """x·cos + partner·sin, the partner of the first of a pair negative.

    Pairs are neighbours, or lie half of the turned features apart; features behind stay.
    """
    half = cosines.shape[-1]
    turned = tidy(half * 2)
    sines = b.reshape(sines, cosines.shape)  # of the same size, or nothing runs

    def pair(d: tir.Expr) -> tir.Expr:
        return d // 2 if interleaved else d % half

    def partner(d: tir.Expr) -> tir.Expr:
        return d + 1 - d % 2 * 2 if interleaved else (d + half) % turned

    def second(d: tir.Expr) -> tir.Expr:
        return (d % 2).eq(1) if interleaved else d >= half

    whole = dims_equal(turned, x.shape[-1])
    inside = None if whole else (lambda *o: o[-1] < turned)

    def spread(table: Value, fill: float) -> Value:
        shape = (*table.shape[:-1], x.shape[-1])
        return b.remap(table, shape, lambda *o: [*o[:-1], pair(o[-1])], inside, fill)

    other = b.remap(x, x.shape, lambda *o: [*o[:-1], partner(o[-1])], inside)
    sign = b.tabulate((x.shape[-1],), lambda d: select(second(d), tir.Const(1), tir.Const(-1)), i64)
    return b.map(
        lambda v, w, c, s, n: v * c + w * s * n.to(v.dtype),
        x, other, spread(cosines, 1), spread(sines, 0), sign, dtype=x.dtype,
    )  # fmt: skip
