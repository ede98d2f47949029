"""Attention as optimised models of ONNX Runtime write it (domain com.microsoft)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tilewright.dtypes import i64
from tilewright.frontend.onnx.attention import rotated, split_heads, table_rows
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ops.attend import Attend
from tilewright.graph.sizes import fixed, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__: list[str] = []

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
    padding: Value | None = None,
    added: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    *others: Value | None,
) -> Sequence[Value]:
    """Queries, keys and values are projected already; a bias may be left for all of them."""
    if k is None or v is None or q.rank != 3 or any(o is not None for o in others):
        node.decline("packed operands")
    if k.rank != v.rank or k.rank not in {3, 4} or node.wants(3):
        node.decline("keys and values of other forms")
    heads = node.int("num_heads")
    if bias is not None:
        q, k, v = _with_bias(b, node, bias, q, k, v)
    q, stored = split_heads(b, q, heads), HEADS_FIRST if k.rank == 4 else HEADS_INSIDE
    if k.rank == 3:
        k, v = split_heads(b, k, heads), split_heads(b, v, heads)
    past: tir.Expr = tir.Const(0)
    if stored == HEADS_INSIDE and (past_key is not None or node.wants(1)):
        k, v, stored = b.transpose(k, (0, 2, 1, 3)), b.transpose(v, (0, 2, 1, 3)), HEADS_FIRST
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        k, v = b.concat([past_key, k], 2), b.concat([past_value, v], 2)
    masks = _padding(b, node, padding, q) + ([] if added is None else [added])
    y = _attended(b, node, (q, k, v), (HEADS_INSIDE, stored, stored), masks, past)
    return [y, k, v] if stored == HEADS_FIRST else [y]


def _with_bias(
    b: Builder, node: OnnxNode, bias: Value, q: Value, k: Value, v: Value
) -> tuple[Value, Value, Value]:
    """Each operand with its piece of the bias."""
    if k.rank != 3:
        node.decline("a bias for keys that are split into heads")
    start: tir.Expr = tir.Const(0)
    results: list[Value] = []
    for x in (q, k, v):
        first, width = start, x.shape[-1]
        part = b.remap(bias, (width,), lambda c, first=first: [c + first])
        results.append(b.map(lambda e, c: e + c, x, part))
        start = tidy(start + width)
    return results[0], results[1], results[2]


def _padding(b: Builder, node: OnnxNode, mask: Value | None, q: Value) -> list[Value]:
    """Keys that count (1) and those that do not (0), for each sample."""
    if mask is None:
        return []
    if mask.rank != 2:
        node.decline("a mask of lengths, or one for each query")
    low = node.float("mask_filter_value", -10000.0)
    wide = b.reshape(mask, (mask.shape[0], 1, 1, mask.shape[1]))
    return [b.map(lambda m: select(m > 0, 0.0, low), wide, dtype=q.dtype)]


def _attended(
    b: Builder,
    node: OnnxNode,
    operands: tuple[Value, Value, Value],
    layouts: tuple[str, str, str],
    masks: Sequence[Value],
    past: tir.Expr,
) -> Value:
    """Attention, and its heads side by side."""
    features = fixed(operands[0].shape[-1])
    if features is None:
        node.decline("an unknown number of features")
    scale = node.float("scale") or 1 / math.sqrt(features)
    causal = bool(node.int("unidirectional"))
    op = Attend((*layouts, HEADS_INSIDE), scale, causal, past)
    y = b.add(op, *operands, *masks)
    return b.reshape(y, (*y.shape[:2], tidy(y.shape[2] * y.shape[3])))


@onnx_op("Attention", domain=DOMAIN)
def attention(
    b: Builder,
    node: OnnxNode,
    x: Value,
    weights: Value,
    bias: Value | None = None,
    padding: Value | None = None,
    past: Value | None = None,
    added: Value | None = None,
    *others: Value | None,
) -> Value:
    """With the projection of queries, keys and values, which is one product."""
    exotic = node.has("qkv_hidden_sizes") or node.int("do_rotary") or node.wants(1)
    if exotic or past is not None or any(o is not None for o in others):
        node.decline("a cache, rotations, or operands of different widths")
    heads, whole = node.int("num_heads"), fixed(weights.shape[-1])
    if whole is None or whole % (3 * heads):
        node.decline("weights of unknown shape")
    found = b.matmul(x, weights)
    if bias is not None:
        found = b.map(lambda e, c: e + c, found, bias)
    packed = b.reshape(found, (*x.shape[:2], 3, heads, whole // (3 * heads)))
    masks = _padding(b, node, padding, x) + ([] if added is None else [added])
    layouts = ("bs0hd", "bs1hd", "bs2hd")
    return _attended(b, node, (packed, packed, packed), layouts, masks, tir.Const(0))


@onnx_op("RotaryEmbedding", domain=DOMAIN)
def rotary_embedding(
    b: Builder, node: OnnxNode, x: Value, positions: Value, cosines: Value, sines: Value
) -> Value:
    """Positions are given one by one, or only the first of them."""
    if node.int("is_packed_batching") or node.float("scale", 1.0) != 1.0:
        node.decline("packed batches, or angles that are scaled")
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
