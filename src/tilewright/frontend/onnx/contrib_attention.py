"""Attention as optimised models of ONNX Runtime write it (domain com.microsoft)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import ml_dtypes

from tilewright.dtypes import i64
from tilewright.frontend.onnx.attention import rotated, split_heads, table_rows
from tilewright.frontend.onnx.contrib_masks import as_long, padding
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.products import integer_product
from tilewright.frontend.onnx.quantization import aligned
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ops.attend import Attend
from tilewright.graph.sizes import fixed, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__ = ["DOMAIN", "HEADS_FIRST", "HEADS_INSIDE", "attended"]

DOMAIN: Final = "com.microsoft"
HEADS_FIRST, HEADS_INSIDE = "bhsd", "bshd"


@onnx_op("MultiHeadAttention", domain=DOMAIN)
def multi_head_attention(
    b: Builder,
    node: OnnxNode,
    q: Value,
    k: Value | None = None,
    v: Value | None = None,
    bias: Value | None = None,
    mask: Value | None = None,
    added: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    *others: Value | None,
) -> Sequence[Value | None]:
    """Queries, keys and values are projected already; a bias may be left for all of them.

    The last of four results are the scores, before they become shares.
    """
    if any(o is not None for o in others):
        node.decline("a cache that is shared")
    if k is None or v is None:
        q, k, v = _unpacked(b, node, q, k)
    if q.rank != 3 or k.rank != v.rank or k.rank not in {3, 4}:
        node.decline("keys and values of other forms")
    heads = node.int("num_heads")
    if k.rank == 3:
        q, k = _as_wide(b, q, k), _as_wide(b, k, q)
    if bias is not None:
        q, k, v = _with_bias(b, bias, q, k, v)
    q, stored = split_heads(b, q, heads), HEADS_FIRST if k.rank == 4 else HEADS_INSIDE
    if k.rank == 3:
        k, v = split_heads(b, k, heads), split_heads(b, v, heads)
    past: tir.Expr = tir.Const(0)
    if stored == HEADS_INSIDE and (past_key is not None or node.wants(1)):
        k, v, stored = b.transpose(k, (0, 2, 1, 3)), b.transpose(v, (0, 2, 1, 3)), HEADS_FIRST
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        k, v = b.concat([past_key, k], 2), b.concat([past_value, v], 2)
    masks = padding(b, node, mask, q, k.shape[stored.index("s")])
    masks += [] if added is None else [as_long(b, added, k.shape[stored.index("s")])]
    y = attended(b, node, (q, k, v), (HEADS_INSIDE, stored, stored), masks, past)
    cached: list[Value | None] = [k, v] if stored == HEADS_FIRST else [None, None]
    scores = _scores(b, node, q, k, stored, masks, past) if node.wants(3) else None
    return [y, *cached, scores]


def _as_wide(b: Builder, x: Value, other: Value) -> Value:
    """Features of an unknown number as many as those of the other one, which are known."""
    if fixed(x.shape[2]) is not None or fixed(other.shape[2]) is None:
        return x
    return b.reshape(x, (*x.shape[:2], other.shape[2]))


def _scores(
    b: Builder,
    node: OnnxNode,
    q: Value,
    k: Value,
    stored: str,
    masks: Sequence[Value],
    past: tir.Expr,
) -> Value:
    """[batch, heads, queries, keys]: products, scaled, with masks; the lowest number for others."""
    order = [stored.index(letter) for letter in "bhds"]
    found = b.matmul(b.transpose(q, (0, 2, 1, 3)), b.transpose(k, order))
    scale = _scale(node, q)
    found = b.map(lambda v, *added: sum(added, v * scale), found, *masks)
    if not node.int("unidirectional"):
        return found
    lowest = tir.const(float(ml_dtypes.finfo(q.dtype.numpy).min), q.dtype)
    counts = b.tabulate(found.shape[2:], lambda i, j: (j <= i + past).to(i64))
    return b.map(lambda v, c: select(c.ne(0), v, lowest), found, counts)


def _unpacked(b: Builder, node: OnnxNode, q: Value, k: Value | None) -> tuple[Value, Value, Value]:
    """Operands from one tensor [batch, positions, heads, 2 or 3, features], as three of rank 3."""
    packed = q if k is None else k
    if packed.rank != 5:
        node.decline("keys without values")
    batch, positions, heads, count, features = packed.shape

    def part(number: int) -> Value:
        shape = (batch, positions, heads, features)
        found = b.remap(packed, shape, lambda n, s, h, d: (n, s, h, number, d))
        return b.reshape(found, (batch, positions, tidy(heads * features)))

    if fixed(count) != (3 if k is None else 2):
        node.decline("operands that are packed in another number")
    return (part(0), part(1), part(2)) if k is None else (q, part(0), part(1))


def _with_bias(b: Builder, bias: Value, q: Value, k: Value, v: Value) -> tuple[Value, Value, Value]:
    """Each operand with its piece of the bias; keys that are split into heads have theirs."""
    start: tir.Expr = tir.Const(0)
    results: list[Value] = []
    for x in (q, k, v):
        if x.rank == 4:
            results.append(x)
            continue
        first, width = start, x.shape[-1]
        part = b.remap(bias, (width,), lambda c, first=first: [c + first])
        results.append(b.map(lambda e, c: e + c, x, part))
        start = tidy(start + width)
    return results[0], results[1], results[2]


def attended(
    b: Builder,
    node: OnnxNode,
    operands: tuple[Value, Value, Value],
    layouts: tuple[str, str, str],
    masks: Sequence[Value],
    past: tir.Expr,
) -> Value:
    """Attention, and its heads side by side."""
    causal = bool(node.int("unidirectional"))
    op = Attend((*layouts, HEADS_INSIDE), _scale(node, operands[0]), causal, past)
    y = b.add(op, *operands, *masks)
    return b.reshape(y, (*y.shape[:2], tidy(y.shape[2] * y.shape[3])))


def _scale(node: OnnxNode, q: Value) -> float:
    features = fixed(q.shape[-1])
    if features is None:
        node.decline("an unknown number of features")
    return node.float("scale") or 1 / math.sqrt(features)


@onnx_op("DecoderMaskedMultiHeadAttention", domain=DOMAIN)
def decoder_attention(
    b: Builder,
    node: OnnxNode,
    q: Value,
    k: Value | None = None,
    v: Value | None = None,
    mask: Value | None = None,
    added: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    length: Value | None = None,
    width: Value | None = None,
    cache: Value | None = None,
    bias: Value | None = None,
) -> Sequence[Value | None]:
    """`MultiHeadAttention` of one query, with its inputs in another order."""
    if node.int("past_present_share_buffer") or cache is not None or k is None or v is None:
        node.decline("a cache that is shared")
    if node.wants(3):
        node.decline("scores as a result")
    made = multi_head_attention(b, node, q, k, v, bias, mask, added, past_key, past_value)
    assert isinstance(made, list)
    return made


@onnx_op("Attention", domain=DOMAIN)
def attention(
    b: Builder,
    node: OnnxNode,
    x: Value,
    weights: Value,
    bias: Value | None = None,
    mask: Value | None = None,
    past: Value | None = None,
    added: Value | None = None,
    *others: Value | None,
) -> Sequence[Value]:
    """With the projection of queries, keys and values, which is one product."""
    if node.int("do_rotary") or any(o is not None for o in others):
        node.decline("rotations, or a cache that is shared")
    found = b.matmul(x, weights)
    if bias is not None:
        found = b.map(lambda e, c: e + c, found, bias)
    return _projected(b, node, found, mask, past, added)


@onnx_op("QAttention", domain=DOMAIN)
def quantized_attention(
    b: Builder,
    node: OnnxNode,
    x: Value,
    weights: Value,
    bias: Value,
    x_scale: Value,
    scale: Value,
    mask: Value | None = None,
    x_zero: Value | None = None,
    zero: Value | None = None,
    past: Value | None = None,
) -> Sequence[Value]:
    """`Attention` whose projection is a product of quantised matrices."""
    if node.int("do_rotary") or node.int("past_present_share_buffer"):
        node.decline("rotations, or a cache that is shared")
    zeros = [None if z is None else aligned(b, z, x, x.rank - 1) for z in (x_zero, zero)]
    total = integer_product(b, x, weights, *zeros)
    steps = [aligned(b, s, total, total.rank - 1) for s in (x_scale, scale)]
    found = b.map(lambda v, s, t, c: v.to(s.dtype) * (s * t) + c, total, *steps, bias)
    return _projected(b, node, found, mask, past, None)


def _projected(
    b: Builder,
    node: OnnxNode,
    found: Value,
    mask: Value | None,
    past: Value | None,
    added: Value | None,
) -> Sequence[Value]:
    """Attention of queries, keys and values side by side; the new cache if it is wanted."""
    heads, whole = node.int("num_heads"), fixed(found.shape[-1])
    if whole is None or (not node.has("qkv_hidden_sizes") and whole % (3 * heads)):
        node.decline("weights of unknown shape")
    widths = node.ints("qkv_hidden_sizes") or [whole // 3] * 3
    cached = past is not None or node.wants(1)
    before: tir.Expr = tir.Const(0)
    length = tidy(found.shape[1] + (0 if past is None else past.shape[3]))
    extra = [] if added is None else [as_long(b, added, length)]
    if len(set(widths)) == 1 and not cached:
        packed = b.reshape(found, (*found.shape[:2], 3, heads, widths[0] // heads))
        masks = padding(b, node, mask, packed, packed.shape[1]) + extra
        layouts = ("bs0hd", "bs1hd", "bs2hd")
        return [attended(b, node, (packed, packed, packed), layouts, masks, before)]
    starts = [sum(widths[:n]) for n in range(3)]
    q, k, v = (
        split_heads(
            b,
            b.remap(found, (*found.shape[:2], w), lambda n, s, c, at=at: (n, s, c + at)),
            heads,
        )
        for at, w in zip(starts, widths, strict=True)
    )
    if not cached:
        masks = padding(b, node, mask, q, k.shape[1]) + extra
        return [attended(b, node, (q, k, v), (HEADS_INSIDE,) * 3, masks, before)]
    k, v = b.transpose(k, (0, 2, 1, 3)), b.transpose(v, (0, 2, 1, 3))
    if past is not None:
        before = past.shape[3]
        old = [b.remap(past, past.shape[1:], lambda *o, n=n: [n, *o]) for n in range(2)]
        k, v = b.concat([old[0], k], 2), b.concat([old[1], v], 2)
    present = b.concat([b.reshape(c, (1, *c.shape)) for c in (k, v)], 0)
    masks = padding(b, node, mask, q, k.shape[2]) + extra
    layouts = (HEADS_INSIDE, HEADS_FIRST, HEADS_FIRST)
    return [attended(b, node, (q, k, v), layouts, masks, before), present]


@onnx_op("RotaryEmbedding", domain=DOMAIN)
def rotary_embedding(
    b: Builder, node: OnnxNode, x: Value, positions: Value, cosines: Value, sines: Value
) -> Value:
    """Positions are given one by one, or only the first of them."""
    shape, flat = x.shape, x.rank == 3
    pairs = fixed(cosines.shape[-1])
    if flat:
        features = node.int("rotary_embedding_dim") or (pairs or 0) * 2
        heads = node.int("num_heads") or (fixed(shape[2]) or 0) // max(features, 1)
        x = split_heads(b, x, heads)
    length = x.shape[1 if flat else 2]
    if positions.rank == 1:
        place = b.tabulate((1, length), lambda _, i: i)
        positions = b.map(lambda p, i: p.to(i64) + i, positions, place)
    cosines, sines = (table_rows(b, t, positions) for t in (cosines, sines))
    head = 2 if flat else 1
    cosines, sines = (b.reshape(t, (*t.shape[:head], 1, *t.shape[head:])) for t in (cosines, sines))
    y = rotated(b, x, cosines, sines, interleaved=bool(node.int("interleaved")))
    return b.reshape(y, shape) if flat else y
