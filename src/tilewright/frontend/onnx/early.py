"""Operators of the first opsets that later ones dropped, and that onnxruntime still runs.

Converters of the time wrote them, up to opset 9. ONNX has forgotten their definitions, so that
nothing but these handlers says what they take.
"""

from __future__ import annotations

import numpy as np

from tilewright.frontend.onnx.activations import PLAIN
from tilewright.frontend.onnx.movement import cut, span
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.slices import slice_
from tilewright.graph import Builder, Value
from tilewright.graph.sizes import fixed, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call

__all__: list[str] = []

onnx_op("DynamicSlice")(slice_)


def _require_floats(x: Value) -> None:
    if not x.dtype.is_float:
        raise TypeError(f"it takes floats, and is given {x.dtype.name}")


def _needed(node: OnnxNode, name: str) -> float:
    if not node.has(name):
        raise ValueError(f"the attribute `{name}` is missing")
    return node.float(name)


@onnx_op("Affine")
def affine(b: Builder, node: OnnxNode, x: Value) -> Value:
    """alpha·x + beta."""
    _require_floats(x)
    alpha, beta = node.float("alpha", 1.0), node.float("beta")
    return b.map(lambda v: v * alpha + beta, x)


@onnx_op("Scale")
def scale(b: Builder, node: OnnxNode, x: Value) -> Value:
    """All elements by one factor."""
    _require_floats(x)
    factor = node.float("scale", 1.0)
    return b.map(lambda v: v * factor, x)


@onnx_op("ParametricSoftplus")
def parametric_softplus(b: Builder, node: OnnxNode, x: Value) -> Value:
    """alpha·log(1 + e^(beta·x))."""
    _require_floats(x)
    alpha, beta, softplus = _needed(node, "alpha"), _needed(node, "beta"), PLAIN["Softplus"]
    return b.map(lambda v: softplus(v * beta) * alpha, x)


@onnx_op("ScaledTanh")
def scaled_tanh(b: Builder, node: OnnxNode, x: Value) -> Value:
    """alpha·tanh(beta·x)."""
    _require_floats(x)
    alpha, beta = _needed(node, "alpha"), _needed(node, "beta")
    return b.map(lambda v: call("tanh", v * beta) * alpha, x)


@onnx_op("ImageScaler")
def image_scaler(b: Builder, node: OnnxNode, x: Value) -> Value:
    """All elements by one factor, and a bias for each channel."""
    _require_floats(x)
    _require_images(x)
    factor, biases = node.float("scale", 1.0), node.floats("bias") or [0.0]
    column = np.array(biases, x.dtype.numpy).reshape(-1, 1, 1)
    return b.map(lambda v, c: v * factor + c, x, b.constant(column, "bias"))


@onnx_op("Crop")
def crop(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Images without borders (left, top, right, bottom), or of a size (height, width)."""
    _require_images(x)
    border, size = node.ints("border") or [], node.ints("scale")
    if len(border) != 4 or min(border) < 0:
        raise ValueError(f"borders {border}: there are four, and none is negative")
    if size is not None and (len(size) != 2 or min(size) < 0):
        raise ValueError(f"a size {size}: there are two, and none is negative")
    left, top, right, bottom = border
    for along, before, behind, kept in (
        (2, top, bottom, size and size[0]),
        (3, left, right, size and size[1]),
    ):
        dim = x.shape[along]
        end: tir.Expr = tir.maximum(dim - behind, 0) if kept is None else tir.Const(before + kept)
        known = fixed(dim)
        if known is not None and before + (behind if kept is None else kept) > known:
            raise ValueError(f"it leaves nothing of a dimension of {known}, or asks for more")
        x = cut(b, x, along, *span(dim, tir.Const(before), tidy(end), 1))
    return x


def _require_images(x: Value) -> None:
    if x.rank != 4:
        raise ValueError(f"it takes images, of four dimensions, and is given {x.rank}")
