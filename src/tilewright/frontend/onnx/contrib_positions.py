"""Biases of attention that depend on how far queries and keys are apart (domain com.microsoft)."""

from __future__ import annotations

import math

from tilewright.dtypes import f32, i64
from tilewright.frontend.onnx.contrib_attention import DOMAIN
from tilewright.frontend.onnx.indexing import known_scalar
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.gather import Gather
from tilewright.graph.sizes import fixed, product, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []


@onnx_op("RelativePositionBias", domain=DOMAIN)
def relative_position_bias(
    b: Builder, node: OnnxNode, table: Value, queries: Value, keys: Value
) -> Value:
    """[1, heads, queries, keys]: a bias for each bucket of distances.

    Near distances have buckets of their own, far ones share them by their logarithm. The table has
    the shape [buckets, heads], but its elements lie head by head.
    """
    buckets = fixed(table.shape[0])
    if buckets is None:
        node.decline("an unknown number of buckets")
    rows, columns = known_scalar(b, node, "length", queries), known_scalar(b, node, "length", keys)
    both, furthest = bool(node.int("is_bidirectional")), node.int("max_distance", 128)
    half = buckets // 2 if both else buckets
    near = half // 2
    behind = b.tabulate((rows, columns), lambda i, j: i - j)
    factor = (half - near) / math.log(furthest / near)

    def bucket(n: tir.Expr) -> tir.Expr:
        size = tir.maximum(select(n < 0, -n, n) if both else n, 0)
        share = call("log", tir.maximum(size, 1).to(f32) * (1 / near)) * factor
        far = tir.minimum(share.to(i64) + near, half - 1)
        found = select(size < near, size, far)
        return found + select(n < 0, tir.Const(half), tir.Const(0)) if both else found

    places = b.map(bucket, behind, dtype=i64)
    flat = b.reshape(table, (product(table.shape),))
    o = tuple(axis(k) for k in range(4))
    shape = (tir.Const(1), table.shape[1], rows, columns)
    return b.add(Gather(shape, ((1, o[2:]),), (o[1] * buckets + picked(0),)), flat, places)


@onnx_op("GatedRelativePositionBias", domain=DOMAIN)
def gated_relative_position_bias(
    b: Builder,
    node: OnnxNode,
    query: Value,
    query_bias: Value,
    distances: Value,
    weight: Value,
    bias: Value,
    factor: Value,
    offsets: Value | None = None,
) -> Value:
    """The bias of each query times what two gates make of the query."""
    if offsets is not None or query.rank != 3:
        node.decline("tokens without padding")
    heads, width = node.int("num_heads"), fixed(weight.shape[1])
    if width is None:
        node.decline("gates of unknown width")
    batch, length, features = query.shape
    moved = b.map(lambda v, c: v + c, query, query_bias)
    split = b.reshape(moved, (batch, length, heads, tidy(features // heads)))
    turned = b.transpose(split, (0, 2, 1, 3))
    gates = b.map(lambda v, c: v + c, b.matmul(turned, weight), bias)
    halves = b.reshape(gates, (batch, heads, length, 2, width // 2))
    sums = b.reduce(tir.Fold.ADD, halves, (4,), keepdims=False)
    first, second = (
        b.remap(sums, (batch, heads, length, 1), lambda n, h, s, _, at=at: (n, h, s, at))
        for at in (0, 1)
    )

    def gated(u: tir.Expr, r: tir.Expr, a: tir.Expr, d: tir.Expr) -> tir.Expr:
        return (call("sigmoid", u) * (call("sigmoid", r) * a - 1) + 2) * d

    return b.map(gated, first, second, factor, distances, dtype=query.dtype)
