"""`GroupQueryAttention`: heads of queries share keys, samples have caches of their own lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.dtypes import boolean, i64
from tilewright.frontend.onnx.attention import rotated, split_heads, table_rows
from tilewright.frontend.onnx.contrib_attention import DOMAIN, HEADS_FIRST, HEADS_INSIDE
from tilewright.frontend.onnx.contrib_masks import as_long
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.attend import Attend
from tilewright.graph.ops.count import Count
from tilewright.graph.ops.gather import Gather
from tilewright.graph.sizes import dims_equal, fixed, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__: list[str] = []


@dataclass(frozen=True)
class _Lengths:
    """`new` positions behind those of the cache, which has room for `room` in all.

    `before` [batch] says how many positions are in the cache already.
    """

    new: tir.Expr
    room: tir.Expr
    before: Value


@onnx_op("GroupQueryAttention", domain=DOMAIN)
def group_query_attention(
    b: Builder,
    node: OnnxNode,
    q: Value,
    k: Value | None,
    v: Value | None,
    past_key: Value | None,
    past_value: Value | None,
    lengths: Value,
    total: Value,
    cosines: Value | None = None,
    sines: Value | None = None,
    positions: Value | None = None,
    added: Value | None = None,
    sinks: Value | None = None,
    *others: Value | None,
) -> Sequence[Value]:
    """Causal attention over a cache that the new keys and values go into."""
    if any(o is not None for o in others) or node.int("sliding_window_cache") or node.wants(3):
        node.decline("a cache that is quantised or slides, norms, or scores as an output")
    heads, shared = node.int("num_heads"), node.int("kv_num_heads")
    if k is None or v is None:
        q, k, v = _unpacked(b, node, q, heads, shared)
    k, v = (b.reshape(x, (x.shape[0], q.shape[1], x.shape[2])) for x in (k, v))  # as many are new
    q, k, v = (split_heads(b, x, n) for x, n in ((q, heads), (k, shared), (v, shared)))
    known = _lengths(b, q.shape[1], total, lengths, past_key)
    if node.int("do_rotary"):
        if cosines is None or sines is None:
            node.decline("rotations without angles")
        at = _positions(b, known) if positions is None else positions
        q, k = (_turned(b, node, x, cosines, sines, at) for x in (q, k))
    keys, values = (_cached(b, known, x, past) for x, past in ((k, past_key), (v, past_value)))
    y = _attended(b, node, known, (q, keys, values), lengths, added, sinks)
    return [b.reshape(y, (*y.shape[:2], tidy(y.shape[2] * y.shape[3]))), keys, values]


def _unpacked(
    b: Builder, node: OnnxNode, packed: Value, heads: int, shared: int
) -> tuple[Value, Value, Value]:
    whole = fixed(packed.shape[2])
    if whole is None or whole % (heads + 2 * shared):
        node.decline("operands that are packed in another way")
    size = whole // (heads + 2 * shared)
    starts = (0, heads, heads + shared)
    parts = [
        b.remap(
            packed,
            (*packed.shape[:2], count * size),
            lambda n, s, c, at=at: (n, s, c + at * size),
        )
        for at, count in zip(starts, (heads, shared, shared), strict=True)
    ]
    return parts[0], parts[1], parts[2]


def _lengths(
    b: Builder, new: tir.Expr, total: Value, lengths: Value, past: Value | None
) -> _Lengths:
    """If all positions are new ones, nothing is in the cache; without a cache all are."""
    flat = b.reshape(lengths, lengths.shape[:1])
    if past is None:
        return _Lengths(new, new, b.map(lambda n: n.to(i64) * 0, flat))
    found = b.integers(total)
    if found is not None:
        whole, last = found[0], b.reshape(b.sizes([found[0] - 1]), ())
    else:
        whole = tir.Var("total")
        numbers = b.add(Count(whole), b.reshape(converted(b, total, i64), (1,)))
        last = b.reduce(tir.Fold.MAX, numbers, (0,), keepdims=False)
    room = tidy(tir.maximum(past.shape[2], whole))
    before = b.map(
        lambda n, t: select((t + 1).eq(new), tir.Const(0), n.to(i64) + 1 - new), flat, last
    )
    return _Lengths(new, room, before)


def _positions(b: Builder, known: _Lengths) -> Value:
    """[batch, new]: where the new positions stand in all."""
    place = b.tabulate((known.new,), lambda i: i)
    first = b.reshape(known.before, (*known.before.shape, 1))
    return b.map(lambda n, i: n + i, first, place)


def _turned(
    b: Builder, node: OnnxNode, x: Value, cosines: Value, sines: Value, positions: Value
) -> Value:
    tables = [table_rows(b, t, positions) for t in (cosines, sines)]
    cosines, sines = (b.reshape(t, (*t.shape[:2], 1, t.shape[2])) for t in tables)
    return rotated(b, x, cosines, sines, interleaved=bool(node.int("rotary_interleaved")))


def _cached(b: Builder, known: _Lengths, x: Value, past: Value | None) -> Value:
    """[batch, heads, room, features]: the cache with the new positions behind the old ones."""
    batch, _, heads, features = x.shape
    shape = (batch, heads, known.room, features)
    if past is None:
        return b.transpose(x, (0, 2, 1, 3))
    o = tuple(axis(k) for k in range(4))
    op = Gather(shape, ((1, (o[0],)),), (o[0], o[2] - picked(0), o[1], o[3]))
    fresh = b.add(op, x, known.before)
    place = b.tabulate((known.room, 1), lambda j, _: j)
    first = b.reshape(known.before, (batch, 1, 1, 1))
    is_new = b.map(lambda j, n: (j >= n) & (j < n + known.new), place, first, dtype=boolean)
    had = past.shape[2]
    old = past
    if not dims_equal(had, known.room):
        longer = (*past.shape[:2], known.room, past.shape[3])
        old = b.remap(past, longer, lambda *p: p, lambda *p: p[2] < had)
    return b.map(select, is_new, fresh, old, dtype=x.dtype)


def _attended(
    b: Builder,
    node: OnnxNode,
    known: _Lengths,
    operands: tuple[Value, Value, Value],
    lengths: Value,
    added: Value | None,
    sinks: Value | None,
) -> Value:
    q, keys, values = operands
    features = fixed(q.shape[-1])
    if features is None:
        node.decline("an unknown number of features")
    causal, window = bool(node.int("causal", 1)), node.int("local_window_size", -1)
    room = known.room
    ahead = b.tabulate((known.new, room), lambda i, j: j - i)
    first = b.reshape(known.before, (*known.before.shape, 1, 1, 1))

    def visible(a: tir.Expr, n: tir.Expr) -> tir.Expr:
        """Of a key `a` ahead of a query, if the queries begin at `n`."""
        held = a <= n
        return held & (a > n - window) if window > 0 else held

    if causal:
        masks = [b.map(visible, ahead, first)]
    else:
        place = b.tabulate((room,), lambda j: j)
        ends = b.reshape(lengths, (lengths.shape[0], 1, 1, 1))
        masks = [b.map(lambda j, n: j <= n.to(i64), place, ends)]
    masks += [] if added is None else [as_long(b, added, room)]
    if sinks is not None or node.int("smooth_softmax"):
        keys, values, masks = _with_sink(b, keys, values, masks, sinks)
    scale = node.float("scale") or 1 / math.sqrt(features)
    layouts = (HEADS_INSIDE, HEADS_FIRST, HEADS_FIRST, HEADS_INSIDE)
    op = Attend(layouts, scale, softcap=node.float("softcap") or None, guarded="masked")
    return b.add(op, q, keys, values, *masks)


def _with_sink(
    b: Builder, keys: Value, values: Value, masks: Sequence[Value], sinks: Value | None
) -> tuple[Value, Value, list[Value]]:
    """One more key, of zeros, that takes its share and gives nothing.

    Its score is zero, or what the head's sink is.
    """
    room = keys.shape[2]
    more = tidy(room + 1)

    def longer(x: Value) -> Value:
        shape = (*x.shape[:2], more, x.shape[3])
        return b.remap(x, shape, lambda *o: o, lambda *o: o[2] < room)

    def wider(mask: Value) -> Value:
        fill = 1 if mask.dtype.is_bool else 0
        return b.remap(mask, (*mask.shape[:-1], more), lambda *o: o, lambda *o: o[-1] < room, fill)

    held = [wider(mask) for mask in masks]
    if sinks is not None:
        column = b.reshape(sinks, (1, sinks.shape[0], 1, 1))
        shape = (1, sinks.shape[0], 1, more)
        last = b.tabulate((more,), lambda j: j)
        held.append(
            b.map(lambda s, j: select(j.eq(room), s, 0), b.expand(column, shape), last,
                  dtype=keys.dtype)
        )  # fmt: skip
    return longer(keys), longer(values), held
