"""Blocks that convolutional networks repeat."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx

from replay.models.net import Net

__all__ = ["MODELS"]


def residual() -> onnx.ModelProto:
    """Two convolutions of 56 × 56 × 64, and the input added to them."""
    net = Net("residual")
    x = net.input("x", [1, 64, 56, 56])
    y = net.add("Relu", net.norm(net.conv(x, 64, 64, 3), 64))
    y = net.norm(net.conv(y, 64, 64, 3), 64)
    return net.model(net.add("Relu", net.add("Add", x, y)))


def bottleneck() -> onnx.ModelProto:
    """Narrow, three by three with a stride, wide; and a projection beside it."""
    net = Net("bottleneck")
    x = net.input("x", [1, 64, 28, 28])
    y = net.add("Relu", net.conv(x, 64, 32, 1))
    y = net.add("Relu", net.conv(y, 32, 32, 3, strides=[2, 2]))
    beside = net.conv(x, 64, 128, 1, strides=[2, 2])
    return net.model(net.add("Relu", net.add("Add", net.conv(y, 32, 128, 1), beside)))


def inverted_residual() -> onnx.ModelProto:
    """The block of MobileNet: wide, each channel by itself, narrow."""
    net = Net("inverted_residual")
    x = net.input("x", [1, 24, 56, 56])
    low, high = net.constant(np.float32(0)), net.constant(np.float32(6))  # type: ignore[arg-type]
    y = net.add("Clip", net.conv(x, 24, 96, 1), low, high)
    y = net.add("Clip", net.conv(y, 96, 96, 3, groups=96), low, high)
    return net.model(net.add("Add", x, net.conv(y, 96, 24, 1)))


def separable() -> onnx.ModelProto:
    """Depthwise separable convolutions with a stride, for any batch."""
    net = Net("separable")
    x = net.input("x", ["batch", 32, 28, 28])
    for channels, filters in ((32, 64), (64, 96)):
        x = net.add("Relu", net.conv(x, channels, channels, 3, groups=channels, strides=[2, 2]))
        x = net.add("Relu", net.conv(x, channels, filters, 1))
    return net.model(x)


def squeeze_excite() -> onnx.ModelProto:
    """Channels that are weighted by what they hold on the whole."""
    net = Net("squeeze_excite")
    x = net.add("HardSwish", net.conv(net.input("x", [1, 48, 28, 28]), 48, 48, 5, groups=48))
    y = net.add("ReduceMean", x, net.constant(np.array([2, 3])), keepdims=1)
    y = net.conv(net.add("Relu", net.conv(y, 48, 12, 1)), 12, 48, 1)
    return net.model(net.conv(net.add("Mul", x, net.add("HardSigmoid", y)), 48, 32, 1))


def dense_block() -> onnx.ModelProto:
    """Each layer sees all layers before it."""
    net = Net("dense_block")
    x = net.input("x", [1, 32, 28, 28])
    for channels in (32, 48, 64):
        y = net.add("Relu", net.norm(x, channels))
        y = net.conv(net.add("Relu", net.conv(y, channels, 64, 1)), 64, 16, 3)
        x = net.add("Concat", x, y, axis=1)
    return net.model(net.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]))


def shuffled() -> onnx.ModelProto:
    """Grouped convolutions whose channels are mixed in between."""
    net = Net("shuffled")
    x = net.input("x", [1, 48, 28, 28])
    y = net.add("Relu", net.conv(x, 48, 48, 1, groups=3))
    y = net.add("Transpose", net.reshape(y, 1, 3, 16, 28, 28), perm=[0, 2, 1, 3, 4])
    y = net.conv(net.reshape(y, 1, 48, 28, 28), 48, 48, 3, groups=48)
    return net.model(net.add("Relu", net.add("Add", x, net.conv(y, 48, 48, 1, groups=3))))


def group_norm() -> onnx.ModelProto:
    """Channels normalised in groups, as exporters write it, and a swish."""
    net = Net("group_norm")
    x = net.input("x", [1, 32, 28, 28])
    ones, zeros = net.constant(np.ones(8, np.float32)), net.constant(np.zeros(8, np.float32))
    y = net.add("InstanceNormalization", net.reshape(x, 0, 8, -1), ones, zeros)
    y = net.add("Mul", net.reshape(y, 1, 32, 28, 28), net.weight(32, 1, 1))
    y = net.add("Mul", y, net.add("Sigmoid", y))
    return net.model(net.add("Add", x, net.conv(y, 32, 32, 3)))


def split_stage() -> onnx.ModelProto:
    """Half of the channels go on, the other half waits beside them."""
    net = Net("split_stage")
    x = net.add("Relu", net.conv(net.input("x", [1, 32, 28, 28]), 32, 64, 1))
    left, right = net.add_many("Split", x, outputs=2, axis=1, num_outputs=2)
    right = net.add("Relu", net.conv(net.add("Relu", net.conv(right, 32, 32, 3)), 32, 32, 3))
    return net.model(net.conv(net.add("Concat", left, right, axis=1), 64, 64, 1))


MODELS: Final = (
    residual, bottleneck, inverted_residual, separable, squeeze_excite, dense_block, shuffled,
    group_norm, split_stage,
)  # fmt: skip
