"""Two models made from nothing but `onnx.helper` and a seed: a ResNet-18 and a small transformer.

    python examples/models.py resnet18.onnx transformer.onnx

Their shapes are those of real models, their weights random: good for timing and for checking that
results are right, not for telling cats from dogs.
"""

from __future__ import annotations

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20


class Writer:
    """Nodes and weights of a model under construction; values are named by what they come from."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        output = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], output, **attributes))
        return output

    def weight(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def normal(self, *shape: int, scale: float) -> str:
        return self.weight(self.rng.standard_normal(shape, np.float32) * np.float32(scale))

    def ones(self, n: int) -> str:
        return self.weight(1 + self.rng.standard_normal(n, np.float32) / 10)

    def numbers(self, *values: int) -> str:
        return self.weight(np.array(values, np.int64))

    def model(self, name: str, inputs: list, outputs: list) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.weights)
        imports = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=imports, ir_version=9)


def resnet18(seed: int = 0) -> onnx.ModelProto:
    """Pictures (batch, 3, 224, 224) to 1000 logits; batch normalisation as training leaves it."""
    w = Writer(seed)

    def conv(x: str, channels: int, filters: int, kernel: int, stride: int) -> str:
        weights = w.normal(filters, channels, kernel, kernel, scale=(2 / channels) ** 0.5 / kernel)
        pads = [kernel // 2] * 4
        y = w.add("Conv", x, weights, strides=[stride, stride], pads=pads)
        shift, mean = w.normal(filters, scale=0.1), w.normal(filters, scale=0.1)
        return w.add("BatchNormalization", y, w.ones(filters), shift, mean, w.ones(filters))

    def block(x: str, channels: int, filters: int, stride: int) -> str:
        y = w.add("Relu", conv(x, channels, filters, 3, stride))
        y = conv(y, filters, filters, 3, 1)
        if stride != 1 or channels != filters:
            x = conv(x, channels, filters, 1, stride)
        return w.add("Relu", w.add("Add", y, x))

    x = w.add("Relu", conv("image", 3, 64, 7, 2))
    x = w.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for filters, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        x = block(x, channels, filters, stride)
        x = block(x, filters, filters, 1)
        channels = filters
    x = w.add("Flatten", w.add("GlobalAveragePool", x))
    w.nodes.append(
        helper.make_node(
            "Gemm",
            [x, w.normal(512, 1000, scale=0.05), w.normal(1000, scale=0.1)],
            ["logits"],
            "fc",
        )
    )
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 224, 224])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1000])
    return w.model("resnet18", [image], [logits])


def transformer(
    seed: int = 0, layers: int = 4, width: int = 256, heads: int = 4, words: int = 2000
) -> onnx.ModelProto:
    """Token numbers (batch, seq), up to 512 of them, to a score for each word of a vocabulary."""
    w = Writer(seed)

    def linear(x: str, n: int, m: int) -> str:
        return w.add(
            "Add", w.add("MatMul", x, w.normal(n, m, scale=n**-0.5)), w.normal(m, scale=0.02)
        )

    def norm(x: str) -> str:
        shift = w.normal(width, scale=0.02)
        return w.add("LayerNormalization", x, w.ones(width), shift, axis=-1, epsilon=1e-5)

    def split_heads(x: str) -> str:
        x = w.add("Reshape", x, w.numbers(0, 0, heads, width // heads))
        return w.add("Transpose", x, perm=[0, 2, 1, 3])

    def attention(x: str) -> str:
        q, k, v = (split_heads(linear(x, width, width)) for _ in range(3))
        scores = w.add("MatMul", q, w.add("Transpose", k, perm=[0, 1, 3, 2]))
        scale = w.weight(np.float32((width // heads) ** -0.5))
        shares = w.add("Softmax", w.add("Mul", scores, scale), axis=-1)
        y = w.add("Transpose", w.add("MatMul", shares, v), perm=[0, 2, 1, 3])
        return linear(w.add("Reshape", y, w.numbers(0, 0, width)), width, width)

    length = w.add("Shape", "ids", start=1, end=2)
    places = w.add("Slice", w.normal(512, width, scale=0.02), w.numbers(0), length, w.numbers(0))
    x = w.add("Add", w.add("Gather", w.normal(words, width, scale=1.0), "ids"), places)
    for _ in range(layers):
        x = w.add("Add", x, attention(norm(x)))
        inner = w.add("Gelu", linear(norm(x), width, 4 * width))
        x = w.add("Add", x, linear(inner, 4 * width, width))
    weights = w.normal(width, words, scale=width**-0.5)
    w.nodes.append(helper.make_node("MatMul", [norm(x), weights], ["scores"], "head"))
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "seq"])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", "seq", words])
    return w.model("transformer", [ids], [scores])


if __name__ == "__main__":
    for path, model in zip(sys.argv[1:], (resnet18(), transformer()), strict=True):
        onnx.save(model, path)
