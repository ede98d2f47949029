"""Networks of images: classifiers, encoders and decoders, one and three dimensions of space."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx

from replay.models.net import Net

__all__ = ["MODELS"]


def convnet() -> onnx.ModelProto:
    """Two convolutions, pooling and a classifier."""
    return _convnet("convnet", 1)


def convnet_of_any_batch() -> onnx.ModelProto:
    """The same for a symbolic batch."""
    return _convnet("convnet_of_any_batch", "batch")


def _convnet(name: str, batch: int | str) -> onnx.ModelProto:
    net = Net(name)
    x = net.input("image", [batch, 3, 64, 64])
    x = net.add("Relu", net.norm(net.conv(x, 3, 32, 3, strides=[2, 2]), 32))
    x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("Relu", net.conv(x, 32, 64, 3))
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    x = net.add("Gemm", x, net.weight(10, 64), net.weight(10), transB=1)
    return net.model(net.add("Softmax", x, axis=-1))


def convnet_of_any_size() -> onnx.ModelProto:
    """Convolutions of images whose height and width are symbolic."""
    net = Net("convnet_of_any_size")
    x = net.input("image", [1, 3, "height", "width"])
    x = net.add("Relu", net.conv(x, 3, 16, 3))
    x = net.add("Relu", net.conv(x, 16, 32, 3, strides=[2, 2]))
    return net.model(net.add("Sigmoid", net.conv(x, 32, 1, 1)))


def unet() -> onnx.ModelProto:
    """Down, up again, and what was there before beside it."""
    net = Net("unet")
    x = net.input("image", [1, 8, 32, 32])
    wide = net.add("Relu", net.conv(x, 8, 16, 3))
    low = net.add("MaxPool", wide, kernel_shape=[2, 2], strides=[2, 2])
    low = net.add("Relu", net.conv(low, 16, 32, 3))
    weights = net.weight(32, 16, 2, 2)
    up = net.add("ConvTranspose", low, weights, net.weight(16), strides=[2, 2])
    x = net.add("Concat", up, wide, axis=1)
    return net.model(net.conv(net.add("Relu", net.conv(x, 32, 16, 3)), 16, 2, 1))


def decoder() -> onnx.ModelProto:
    """Transposed convolutions with windows of four and of three, as generators have them."""
    net = Net("decoder")
    x = net.reshape(net.dense(net.input("code", [1, 64]), 64, 32 * 16), 1, 32, 4, 4)
    x = net.add("ConvTranspose", x, net.weight(32, 32, 4, 4), strides=[2, 2], pads=[1] * 4)
    x = net.add("LeakyRelu", net.norm(x, 32), alpha=0.2)
    options = {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}
    x = net.add("ConvTranspose", x, net.weight(32, 3, 3, 3), net.weight(3), **options)
    return net.model(net.add("Tanh", x))


def video() -> onnx.ModelProto:
    """Convolutions and pooling in three dimensions."""
    net = Net("video")
    x = net.input("frames", [1, 3, 8, 24, 24])
    x = net.add("Conv", x, net.weight(16, 3, 3, 3, 3), net.weight(16), pads=[1] * 6)
    x = net.add("MaxPool", net.add("Relu", x), kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    x = net.add("Conv", x, net.weight(32, 16, 3, 3, 3), net.weight(32), pads=[1] * 6)
    return net.model(net.add("GlobalAveragePool", net.add("Relu", x)))


def sound() -> onnx.ModelProto:
    """Dilated convolutions along a line of symbolic length, with gates."""
    net = Net("sound")
    x = net.input("samples", [1, 16, "length"])
    for dilation in (1, 2, 4):
        options = {"dilations": [dilation], "pads": [dilation, dilation]}
        value = net.add("Tanh", net.add("Conv", x, net.weight(16, 16, 3), **options))
        gate = net.add("Sigmoid", net.add("Conv", x, net.weight(16, 16, 3), **options))
        x = net.add("Add", x, net.add("Mul", value, gate))
    return net.model(x)


def pyramid() -> onnx.ModelProto:
    """Poolings of several kinds beside each other."""
    net = Net("pyramid")
    x = net.add("Relu", net.conv(net.input("image", [1, 16, 28, 28]), 16, 32, 3))
    same = {"kernel_shape": [3, 3], "pads": [1] * 4}
    parts = [
        net.add("MaxPool", x, **same),
        net.add("AveragePool", x, **same),
        net.add("AveragePool", x, count_include_pad=1, **same),
        net.add("LpPool", x, p=2, **same),
    ]
    return net.model(net.conv(net.add("Concat", *parts, axis=1), 128, 16, 1))


def resized() -> onnx.ModelProto:
    """Images made larger between convolutions, by nearest and by linear interpolation."""
    net = Net("resized")
    x = net.conv(net.input("image", [1, 8, 14, 14]), 8, 16, 3)
    scales = net.constant(np.array([1, 1, 2, 2], np.float32))
    x = net.add("Resize", x, "", scales, mode="nearest")
    x = net.add("Resize", net.conv(x, 16, 16, 3), "", scales, mode="linear")
    return net.model(net.conv(x, 16, 3, 1))


def patches() -> onnx.ModelProto:
    """The first layer of a vision transformer: patches, a class token, positions."""
    net = Net("patches")
    x = net.input("image", [1, 3, 64, 64])
    x = net.conv(x, 3, 96, 16, pads=[0] * 4, strides=[16, 16])
    x = net.add("Transpose", net.reshape(x, 1, 96, -1), perm=[0, 2, 1])
    x = net.add("Concat", net.weight(1, 1, 96), x, axis=1)
    return net.model(net.layer_norm(net.add("Add", x, net.weight(1, 17, 96)), 96))


MODELS: Final = (
    convnet, convnet_of_any_batch, convnet_of_any_size, unet, decoder, video, sound, pyramid,
    resized, patches,
)  # fmt: skip
