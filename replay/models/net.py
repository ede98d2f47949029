"""An ONNX model in the making: nodes one after another, weights from a seeded generator."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

__all__ = ["Net"]

Shape = Sequence[int | str]


class Net:
    """Values are names; `add` makes a node of the next one. Weights depend on the name alone."""

    def __init__(self, name: str, opset: int = 20) -> None:
        self.name, self.opset = name, opset
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.weights: list[onnx.TensorProto] = []

    def input(self, name: str, shape: Shape, kind: int = TensorProto.FLOAT) -> str:
        """An input of the model; a dimension is a number or a name."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def constant(self, array: NDArray[Any] | Sequence[int] | Sequence[float]) -> str:
        """A constant with these elements."""
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape: int) -> str:
        """Random weights, small enough that sums stay near one."""
        fan_in = max(1, int(np.prod(shape[1:])))
        values = self.rng.standard_normal(shape) / np.sqrt(fan_in)
        return self.constant(values.astype(np.float32))

    def integers(self, low: int, high: int, shape: Sequence[int], dtype: Any) -> str:
        """Random integers in [low, high)."""
        return self.constant(self.rng.integers(low, high, shape).astype(dtype))

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node with one result."""
        return self.add_many(op, *inputs, outputs=1, **attributes)[0]

    def add_many(self, op: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """A node with several results."""
        label = f"{op.lower()}_{len(self.nodes)}"
        results = [label] if outputs == 1 else [f"{label}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), results, label, **attributes))
        return results

    def conv(
        self, x: str, channels: int, filters: int, kernel: int, *, groups: int = 1, **options: Any
    ) -> str:
        """A convolution of images with a bias; its border keeps the size if nothing is said."""
        w, b = self.weight(filters, channels // groups, kernel, kernel), self.weight(filters)
        options.setdefault("pads", [kernel // 2] * 4)
        return self.add("Conv", x, w, b, group=groups, kernel_shape=[kernel] * 2, **options)

    def norm(self, x: str, channels: int) -> str:
        """Batch normalisation with positive variances."""
        scale, shift, mean = (self.weight(channels) for _ in range(3))
        variance = self.constant(self.rng.uniform(0.5, 1.5, channels).astype(np.float32))
        return self.add("BatchNormalization", x, scale, shift, mean, variance)

    def dense(self, x: str, inner: int, outer: int) -> str:
        """A product with weights, and a bias."""
        return self.add("Add", self.add("MatMul", x, self.weight(inner, outer)), self.weight(outer))

    def layer_norm(self, x: str, features: int) -> str:
        """Layer normalisation of the last dimension."""
        parts = self.weight(features), self.weight(features)
        return self.add("LayerNormalization", x, *parts, axis=-1)

    def reshape(self, x: str, *shape: int) -> str:
        """Another shape; 0 keeps a dimension, -1 is what remains."""
        return self.add("Reshape", x, self.constant(np.array(shape, np.int64)))

    def model(self, *outputs: str, shape: Shape | None = None) -> onnx.ModelProto:
        """The model, with the types of its outputs inferred; or all floats of this shape."""
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        if shape is not None:
            kind = TensorProto.FLOAT
            results = [helper.make_tensor_value_info(n, kind, list(shape)) for n in outputs]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, results, self.weights)
        versions = [helper.make_opsetid("", self.opset)]
        made = helper.make_model(graph, opset_imports=versions, ir_version=9)
        return onnx.shape_inference.infer_shapes(made, strict_mode=True)
