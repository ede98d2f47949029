"""`MoE`: a mixture of experts, of which a few count for each token (domain com.microsoft).

All experts see all tokens, and those that are not chosen have the weight zero: one product for all
of them, whatever the tokens choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.normalization import softmax_over
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ops.sort import Order
from tilewright.graph.sizes import product, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call

__all__: list[str] = []

DOMAIN: Final = "com.microsoft"

PLAIN: Final[dict[str, Callable[[tir.Expr], tir.Expr]]] = {
    "relu": lambda v: tir.maximum(v, 0),
    "gelu": lambda v: call("gelu", v),
    "silu": lambda v: v * call("sigmoid", v),
    "identity": lambda v: v,
}


@onnx_op("MoE", domain=DOMAIN)
def mixture_of_experts(
    b: Builder,
    node: OnnxNode,
    x: Value,
    router: Value,
    first: Value,
    first_bias: Value | None,
    second: Value,
    second_bias: Value | None = None,
    third: Value | None = None,
    third_bias: Value | None = None,
) -> Value:
    """Two layers of each chosen expert, weighted by what the router says."""
    if node.int("use_sparse_mixer"):
        node.decline("a sparse mixer")
    tokens = b.reshape(x, (product(x.shape[:-1]), x.shape[-1]))
    shares = _shares(b, node, b.reshape(router, (tokens.shape[0], router.shape[-1])))

    def layer(data: Value, letters: str, weights: Value, bias: Value | None) -> Value:
        y = b.contract(letters, "ejk", "etj", data, weights)
        if bias is None:
            return y
        return b.map(lambda v, c: v + c, y, b.reshape(bias, (bias.shape[0], 1, bias.shape[1])))

    inside = layer(tokens, "tk", first, first_bias)
    gate = None if third is None else layer(tokens, "tk", third, third_bias)
    active = _activated(b, node, inside, gate)
    results = layer(active, "etk", second, second_bias)
    return b.reshape(b.contract("te", "etj", "tj", shares, results), x.shape)


def _shares(b: Builder, node: OnnxNode, router: Value) -> Value:
    """[tokens, experts]: the weight of each expert, zero for all but the k greatest."""
    chances = softmax_over(b, router, (1,), logarithm=False)
    count, experts = tir.Const(node.int("k", 1)), router.shape[1]
    places = b.add(Order(count, descending=True), chances)
    wide = b.reshape(places, (*places.shape, 1))
    hits = b.map(lambda p, e: p.eq(e), wide, b.tabulate((experts,), lambda e: e))
    chosen = b.reduce(tir.Fold.MAX, hits, (1,), keepdims=False)
    shares = b.map(lambda v, c: v * c.to(v.dtype), chances, chosen)
    if not node.int("normalize_routing_weights"):
        return shares
    return b.map(lambda v, s: v / s, shares, b.reduce(tir.Fold.ADD, shares, (1,)))


def _activated(b: Builder, node: OnnxNode, x: Value, gate: Value | None) -> Value:
    name = node.string("activation_type", "relu")
    if name in PLAIN:
        y = b.map(PLAIN[name], x)
        return y if gate is None else b.map(lambda v, w: v * w, y, gate)
    if name != "swiglu":
        node.decline(f"activation {name}")
    fusion = node.int("swiglu_fusion")
    if gate is None:
        if fusion not in (1, 2):
            node.decline("gates that are left out")
        half = tidy(x.shape[-1] // 2)
        shape = (*x.shape[:-1], half)

        def part(number: int) -> Value:
            if fusion == 1:
                return b.remap(x, shape, lambda e, t, j: (e, t, j * 2 + number))
            return b.remap(x, shape, lambda e, t, j: (e, t, j + half * number))

        x, gate = part(0), part(1)
    alpha, beta = node.float("activation_alpha", 1.0), node.float("activation_beta", 0.0)
    limit = node.float("swiglu_limit", math.inf)

    def gated(g: tir.Expr, v: tir.Expr) -> tir.Expr:
        if limit < math.inf:
            g, v = tir.minimum(g, limit), tir.maximum(tir.minimum(v, limit), -limit)
        return g * call("sigmoid", g * alpha) * (v + beta)

    return b.map(gated, x, gate)
