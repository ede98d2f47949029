"""Quantised layers: the operators, the pairs around plain ones, dynamic ranges, half precision."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto

from replay.models.net import Net

__all__ = ["MODELS"]


def quantised_convolution() -> onnx.ModelProto:
    """`QLinearConv` with a scale for each filter."""
    net = Net("quantised_convolution")
    x = net.input("x", [1, 32, 28, 28], TensorProto.UINT8)
    weights = net.integers(-127, 128, (32, 32, 3, 3), np.int8)
    scales = net.constant(net.rng.uniform(0.001, 0.01, 32).astype(np.float32))
    zeros = net.constant(np.zeros(32, np.int8))
    data = _scale(net, 0.02, 128)
    result = _scale(net, 0.05, 120)
    bias = net.integers(-100, 100, (32,), np.int32)
    parts = (x, *data, weights, scales, zeros, *result, bias)
    return net.model(net.add("QLinearConv", *parts, pads=[1] * 4))


def quantised_pairs() -> onnx.ModelProto:
    """Plain operators between `DequantizeLinear` and `QuantizeLinear`."""
    net = Net("quantised_pairs")
    x = _rounded(net, net.input("x", [1, 16, 28, 28]), 0.03)
    for _ in range(2):
        weights = net.integers(-127, 128, (16, 16, 3, 3), np.int8)
        plain = net.add("DequantizeLinear", weights, net.constant(np.array(0.005, np.float32)))
        x = _rounded(net, net.add("Relu", net.add("Conv", x, plain, pads=[1] * 4)), 0.04)
    return net.model(x)


def dynamic_product() -> onnx.ModelProto:
    """Ranges found while running, an integer product, and back."""
    net = Net("dynamic_product")
    x = net.input("x", ["rows", 128])
    small, scale, zero = net.add_many("DynamicQuantizeLinear", x, outputs=3)
    weights = net.integers(-127, 128, (128, 64), np.int8)
    product = net.add("MatMulInteger", small, weights, zero, net.constant(np.array(0, np.int8)))
    factor = net.add("Mul", scale, net.constant(np.array(0.004, np.float32)))
    return net.model(net.add("Mul", net.add("Cast", product, to=TensorProto.FLOAT), factor))


def half_precision() -> onnx.ModelProto:
    """A convolution and a product of f16."""
    net = Net("half_precision")
    x = net.input("x", [1, 16, 28, 28], TensorProto.FLOAT16)
    weights = net.constant((net.rng.standard_normal((32, 16, 3, 3)) / 12).astype(np.float16))
    x = net.add("Relu", net.add("Conv", x, weights, pads=[1] * 4))
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    last = net.constant((net.rng.standard_normal((32, 10)) / 6).astype(np.float16))
    return net.model(net.add("MatMul", x, last))


def _scale(net: Net, scale: float, zero: int) -> tuple[str, str]:
    return net.constant(np.array(scale, np.float32)), net.constant(np.array(zero, np.uint8))


def _rounded(net: Net, x: str, scale: float) -> str:
    """To u8 and back."""
    parts = _scale(net, scale, 128)
    return net.add("DequantizeLinear", net.add("QuantizeLinear", x, *parts), *parts)


MODELS: Final = (quantised_convolution, quantised_pairs, dynamic_product, half_precision)
