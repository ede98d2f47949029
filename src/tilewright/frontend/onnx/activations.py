"""Activations: scalar expressions, written so that they neither overflow nor lose digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from tilewright.dtypes import f32, f64
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["PLAIN", "gelu_tanh"]

SELU_ALPHA: Final = 1.67326319217681884765625
SELU_GAMMA: Final = 1.05070102214813232421875


def _softplus(x: tir.Expr) -> tir.Expr:
    """log(1 + eˣ), which is x for large x."""
    return tir.maximum(x, 0) + call("log1p", call("exp", -call("abs", x)))


def _hard_swish(x: tir.Expr) -> tir.Expr:
    return x * tir.maximum(tir.minimum(x * (1 / 6) + 0.5, 1), 0)


def _mish(x: tir.Expr) -> tir.Expr:
    """x·tanh(log(1 + eˣ)): with e = eˣ the tanh is e(e + 2) / (e(e + 2) + 2)."""
    e = call("exp", tir.minimum(x, 20))
    n = e * (e + 2)
    return x * (n / (n + 2))


def gelu_tanh(x: tir.Expr) -> tir.Expr:
    """0.5·x·(1 + tanh(u)) is x·sigmoid(2u)."""
    inner = x * (1 + x * x * 0.044715)
    return x * call("sigmoid", inner * (2 * math.sqrt(2 / math.pi)))


PLAIN: Final[dict[str, Callable[[tir.Expr], tir.Expr]]] = {
    "Relu": lambda x: tir.maximum(x, 0),
    "HardSwish": _hard_swish,
    "Softplus": _softplus,
    "Softsign": lambda x: x / (1 + call("abs", x)),
    "Mish": _mish,
}


@onnx_op(*PLAIN)
def plain(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Without parameters."""
    return b.map(PLAIN[node.op], x)


@onnx_op("LeakyRelu")
def leaky_relu(b: Builder, node: OnnxNode, x: Value) -> Value:
    """x, or alpha·x below zero."""
    alpha = node.float("alpha", 0.01)
    return b.map(lambda v: select(v < 0, v * alpha, v), x)


@onnx_op("PRelu")
def parametric_relu(b: Builder, node: OnnxNode, x: Value, slope: Value) -> Value:
    """x, or slope·x below zero; before opset 7 a slope is for all, or for one channel."""
    if node.opset < 7 and slope.rank == 1:
        slope = b.reshape(slope, [*slope.shape, *(1 for _ in range(x.rank - 2))])
    return b.map(lambda v, s: select(v < 0, v * s, v), x, slope)


@onnx_op("Elu")
def elu(b: Builder, node: OnnxNode, x: Value) -> Value:
    """x, or alpha·(eˣ - 1) below zero."""
    alpha = node.float("alpha", 1.0)
    return b.map(lambda v: select(v < 0, call("expm1", v) * alpha, v), x)


@onnx_op("Selu")
def selu(b: Builder, node: OnnxNode, x: Value) -> Value:
    """An `Elu` times gamma."""
    alpha, gamma = node.float("alpha", SELU_ALPHA), node.float("gamma", SELU_GAMMA)
    return b.map(lambda v: select(v > 0, v, call("expm1", v) * alpha) * gamma, x)


@onnx_op("Celu")
def celu(b: Builder, node: OnnxNode, x: Value) -> Value:
    """max(x, 0) + min(alpha·(exp(x / alpha) - 1), 0)."""
    alpha = node.float("alpha", 1.0)

    def body(v: tir.Expr) -> tir.Expr:
        return tir.maximum(v, 0) + tir.minimum(call("expm1", v * (1 / alpha)) * alpha, 0)

    return b.map(body, x)


@onnx_op("ThresholdedRelu")
def thresholded_relu(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Zero up to alpha, x above it."""
    alpha = node.float("alpha", 1.0)
    return b.map(lambda v: select(v > alpha, v, 0), x)


@onnx_op("HardSigmoid")
def hard_sigmoid(b: Builder, node: OnnxNode, x: Value) -> Value:
    """alpha·x + beta between 0 and 1."""
    alpha, beta = node.float("alpha", 0.2), node.float("beta", 0.5)
    return b.map(lambda v: tir.maximum(tir.minimum(v * alpha + beta, 1), 0), x)


@onnx_op("Swish")
@onnx_op("QuickGelu", domain="com.microsoft")
def swish(b: Builder, node: OnnxNode, x: Value) -> Value:
    """x·sigmoid(alpha·x)."""
    alpha = node.float("alpha", 1.0 if node.op == "Swish" else 1.702)
    return b.map(lambda v: v * call("sigmoid", v if alpha == 1 else v * alpha), x)


@onnx_op("Gelu")
def gelu(b: Builder, node: OnnxNode, x: Value) -> Value:
    """x·Φ(x), or its approximation by tanh."""
    if node.string("approximate", "none") == "tanh":
        return b.map(gelu_tanh, x)
    return b.map(lambda v: call("gelu", v), x)


@onnx_op("Gelu", "BiasGelu", "FastGelu", domain="com.microsoft")
def biased_gelu(b: Builder, node: OnnxNode, x: Value, bias: Value | None = None) -> Value:
    """`Gelu` of x + bias; the fast one is the approximation by tanh."""
    function = gelu_tanh if node.op == "FastGelu" else (lambda v: call("gelu", v))
    if bias is None:
        return b.map(function, x)
    return b.map(lambda v, w: function(v + w), x, bias)


@onnx_op("Shrink")
def shrink(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Zero between -lambd and lambd, moved by `bias` toward zero outside."""
    bias, edge = node.float("bias", 0.0), node.float("lambd", 0.5)

    def body(v: tir.Expr) -> tir.Expr:
        wide = v if v.dtype.is_float else v.to(f64 if v.dtype.bits > 16 else f32)
        moved = select(wide < -edge, wide + bias, select(wide > edge, wide - bias, 0))
        return moved.to(v.dtype)

    return b.map(body, x)
