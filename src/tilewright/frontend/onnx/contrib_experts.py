"""Mixtures of experts, of which a few count for each token: `MoE`, `QMoE` (domain com.microsoft).

All experts see all tokens, and those that are not chosen have the weight zero: one product for all
of them, whatever the tokens choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from tilewright.frontend.onnx.contrib_blocks import dequantized_rows
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


class _Layer(NamedTuple):
    """Weights [experts, to, from] and biases [experts, to]."""

    weights: Value
    bias: Value | None

    def __call__(self, b: Builder, data: Value, letters: str) -> Value:
        """[experts, tokens, to] of data whose dimensions are `letters`."""
        y = b.contract(letters, "ejk", "etj", data, self.weights)
        if self.bias is None:
            return y
        column = b.reshape(self.bias, (self.bias.shape[0], 1, self.bias.shape[1]))
        return b.map(lambda v, c: v + c, y, column)


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
    gate = None if third is None else _Layer(third, third_bias)
    layers = (_Layer(first, first_bias), _Layer(second, second_bias), gate)
    is_whole = bool(node.int("normalize_routing_weights"))
    return _mixed(b, node, x, router, layers, is_whole=is_whole)


@onnx_op("QMoE", domain=DOMAIN)
def quantized_mixture_of_experts(
    b: Builder,
    node: OnnxNode,
    x: Value,
    router: Value,
    first: Value,
    first_scales: Value,
    first_bias: Value | None,
    second: Value,
    second_scales: Value,
    second_bias: Value | None = None,
    third: Value | None = None,
    third_scales: Value | None = None,
    third_bias: Value | None = None,
    first_zeros: Value | None = None,
    second_zeros: Value | None = None,
    third_zeros: Value | None = None,
    *others: Value | None,
) -> Value:
    """`MoE` with weights of few bits; the weights of those that are chosen always sum up to one."""
    if any(o is not None for o in others):
        node.decline("weights of routing that are given apart")

    def layer(packed: Value, scales: Value, zeros: Value | None, bias: Value | None) -> _Layer:
        return _Layer(dequantized_rows(b, node, packed, scales, zeros, x.dtype), bias)

    gate = None
    if third is not None and third_scales is not None:
        gate = layer(third, third_scales, third_zeros, third_bias)
    inner = layer(first, first_scales, first_zeros, first_bias)
    outer = layer(second, second_scales, second_zeros, second_bias)
    return _mixed(b, node, x, router, (inner, outer, gate), is_whole=True)


def _mixed(
    b: Builder,
    node: OnnxNode,
    x: Value,
    router: Value,
    layers: tuple[_Layer, _Layer, _Layer | None],
    *,
    is_whole: bool,
) -> Value:
    """What all experts give, by the shares of those that are chosen."""
    if node.int("use_sparse_mixer"):
        node.decline("a sparse mixer")
    tokens = b.reshape(x, (product(x.shape[:-1]), x.shape[-1]))
    rows = b.reshape(router, (tokens.shape[0], router.shape[-1]))
    shares = _shares(b, rows, node.int("k", 1), is_whole=is_whole)
    inner, outer, gate = layers
    gates = None if gate is None else gate(b, tokens, "tk")
    active = _activated(b, node, inner(b, tokens, "tk"), gates)
    results = outer(b, active, "etk")
    return b.reshape(b.contract("te", "etj", "tj", shares, results), x.shape)


def _shares(b: Builder, router: Value, count: int, *, is_whole: bool) -> Value:
    """[tokens, experts]: the weight of each expert, zero for all but the `count` greatest.

    Those of a token sum up to one if `is_whole`, otherwise if all of them were chosen.
    """
    chances = softmax_over(b, router, (1,), logarithm=False)
    places = b.add(Order(tir.Const(count), descending=True), chances)
    wide = b.reshape(places, (*places.shape, 1))
    hits = b.map(lambda p, e: p.eq(e), wide, b.tabulate((router.shape[1],), lambda e: e))
    chosen = b.reduce(tir.Fold.MAX, hits, (1,), keepdims=False)
    shares = b.map(lambda v, c: v * c.to(v.dtype), chances, chosen)
    if not is_whole:
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
