"""A small model for each kind of kernel: everything that recipes, lowering and LLVM tell apart.

Sizes are no multiples of any vector, so that what is left over runs as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]
OPSET = 22


@dataclass(frozen=True)
class Sample:
    """A model, its inputs, and how far integers of its results may be from onnxruntime's."""

    model: onnx.ModelProto
    feeds: Arrays
    steps: int = 0


def _model(nodes: list[onnx.NodeProto], inputs: Arrays, constants: Arrays) -> onnx.ModelProto:
    """Dimensions of size 13 have a name; the last node's results are those of the model."""
    infos = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            ["n" if d == 13 else d for d in array.shape],
        )
        for name, array in inputs.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output]
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "sample", infos, results, held)
    imports = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


class _Samples:
    """Collects samples; numbers come from one generator."""

    def __init__(self) -> None:
        self.found: dict[str, Sample] = {}
        self.rng = np.random.default_rng(0)

    def normal(self, *shape: int) -> Array:
        return self.rng.standard_normal(shape).astype(np.float32)

    def integers(self, low: int, high: int, shape: tuple[int, ...], dtype: Any) -> Array:
        return self.rng.integers(low, high, shape).astype(dtype)

    def add(
        self,
        name: str,
        nodes: list[onnx.NodeProto],
        inputs: Arrays,
        constants: Arrays | None = None,
        *,
        steps: int = 0,
    ) -> None:
        self.found[name] = Sample(_model(nodes, inputs, constants or {}), inputs, steps)

    def one(
        self,
        name: str,
        op: str,
        inputs: Arrays,
        constants: Arrays | None = None,
        *,
        outputs: int = 1,
        steps: int = 0,
        **attributes: Any,
    ) -> None:
        names = [*inputs, *(constants or {})]
        made = [f"r{k}" for k in range(outputs)]
        node = helper.make_node(op, names, made, **attributes)
        self.add(name, [node], inputs, constants, steps=steps)


def _products(s: _Samples) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["t"]),
        helper.make_node("Add", ["t", "b"], ["u"]),
        helper.make_node("Relu", ["u"], ["r"]),
    ]
    constants = {"w": s.normal(33, 45), "b": s.normal(45)}
    s.add("product with an epilogue", nodes, {"x": s.normal(13, 33)}, constants)
    s.one("batched product", "MatMul", {"x": s.normal(3, 13, 17), "y": s.normal(3, 17, 9)})
    s.one("row times matrix", "MatMul", {"x": s.normal(1, 2050)}, {"w": s.normal(2050, 7)})
    s.one("long product", "MatMul", {"x": s.normal(2, 9000)}, {"w": s.normal(9000, 3)})
    doubles = {"x": s.normal(13, 9).astype(np.float64), "y": s.normal(9, 11).astype(np.float64)}
    s.one("product of doubles", "MatMul", doubles)


def _windows(s: _Samples) -> None:
    image, pads = {"x": s.normal(1, 6, 11, 14)}, [1, 1, 1, 1]
    s.one("convolution", "Conv", image, {"w": s.normal(9, 6, 3, 3), "b": s.normal(9)}, pads=pads)
    strided = {"w": s.normal(10, 3, 3, 3)}
    s.one("grouped convolution", "Conv", image, strided, strides=[2, 2], group=2)
    s.one("depthwise convolution", "Conv", image, {"w": s.normal(6, 1, 3, 3)}, pads=pads, group=6)
    s.one("transposed convolution", "ConvTranspose", image, {"w": s.normal(6, 5, 2, 2)})
    s.one("greatest of windows", "MaxPool", image, kernel_shape=[3, 3], strides=[2, 2])
    s.one("mean of windows", "AveragePool", image, kernel_shape=[2, 3])
    s.one("convolution of a line", "Conv", {"x": s.normal(1, 3, 50)}, {"w": s.normal(4, 3, 5)})
    resized = {"roi": np.zeros(0, np.float32), "scales": np.float32([1, 1, 2, 2])}
    s.one("resized image", "Resize", image, resized, mode="linear")


def _rows(s: _Samples) -> None:
    x = {"x": s.normal(13, 37)}
    s.one("softmax", "Softmax", x)
    s.one("sums of rows", "ReduceSum", x, {"axes": np.int64([1])})
    s.one("sums of columns", "ReduceSum", x, {"axes": np.int64([0])})
    s.one("sum of everything", "ReduceSum", x)
    s.one("greatest", "ReduceMax", x, {"axes": np.int64([1])})
    s.one("place of the greatest", "ArgMax", x, axis=1)
    s.one("sums so far", "CumSum", x, {"axis": np.int64(1)})
    s.one("layer norm", "LayerNormalization", x, {"scale": s.normal(37), "bias": s.normal(37)})
    scaled = {"scale": s.normal(6), "bias": s.normal(6)}
    s.one("instance norm", "InstanceNormalization", {"x": s.normal(2, 6, 5, 7)}, scaled)


def _attention(s: _Samples) -> None:
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["t"]),
        helper.make_node("Softmax", ["t"], ["p"]),
        helper.make_node("MatMul", ["p", "v"], ["r"]),
    ]
    keys = {"k": s.normal(1, 2, 24, 130), "v": s.normal(1, 2, 130, 24)}
    s.add("attention", nodes, {"q": s.normal(1, 2, 40, 24), **keys})
    s.add("attention of one query", nodes, {"q": s.normal(1, 2, 1, 24), **keys})


def _elements(s: _Samples) -> None:
    x = {"x": s.normal(13, 37)}
    ops = ("Tanh", "Erf", "Sin", "Sigmoid", "Exp")
    names = ["x", *(op.lower() for op in ops)]
    pairs = zip(ops, names, names[1:], strict=False)
    s.add("functions", [helper.make_node(op, [a], [b]) for op, a, b in pairs], x)
    s.one("turned matrix", "Transpose", {"x": s.normal(5, 21, 19)}, perm=[2, 0, 1])
    s.one("choice", "Where", {"c": s.normal(13, 37) > 0, **x, "y": s.normal(37)})
    joined = {"a": s.normal(13, 5), "b": s.normal(13, 6)}
    s.one("joined", "Concat", joined, axis=1)
    whole = {"a": s.integers(-99, 99, (13, 37), np.int64), "b": s.integers(1, 9, (37,), np.int64)}
    s.one("quotients of integers", "Div", whole)


def _small_types(s: _Samples) -> None:
    x = {"x": s.normal(13, 37)}
    for name, kind in {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}.items():
        nodes = [
            helper.make_node("Cast", ["x"], ["t"], to=kind),
            helper.make_node("Cast", ["t"], ["r"], to=TensorProto.FLOAT),
        ]
        s.add(f"{name} and back", nodes, x)
    s.one("whole numbers", "Cast", {"x": s.normal(13, 37) * 50}, to=TensorProto.INT8)
    bytes_ = {
        "x": s.integers(0, 255, (13, 37), np.uint8),
        "w": s.integers(-127, 127, (37, 9), np.int8),
    }
    s.one("product of bytes", "MatMulInteger", bytes_)
    s.one("dynamic quantisation", "DynamicQuantizeLinear", x, outputs=3, steps=1)
    scale = {"s": np.float32(0.02), "z": np.uint8(120)}
    s.one("quantisation", "QuantizeLinear", x, scale, steps=1)
    picture = {"x": s.integers(0, 255, (1, 6, 9, 13), np.uint8)}
    held = {
        "xs": np.float32(0.03), "xz": np.uint8(7), "w": s.integers(-99, 99, (5, 6, 3, 3), np.int8),
        "ws": np.float32(0.02), "wz": np.int8(0), "ys": np.float32(0.5), "yz": np.uint8(9),
    }  # fmt: skip
    s.one("convolution of bytes", "QLinearConv", picture, held, steps=1)


def _places(s: _Samples) -> None:
    x, rows = {"x": s.normal(37, 11)}, s.integers(0, 37, (13,), np.int64)
    s.one("gathered rows", "Gather", {**x, "i": rows})
    s.one("gathered elements", "GatherElements", {**x, "i": s.integers(0, 37, (13, 11), np.int64)})
    added = {**x, "i": rows[:, None], "u": s.normal(13, 11)}
    s.one("scattered sums", "ScatterND", added, reduction="add")
    s.one("greatest in order", "TopK", {"x": s.normal(13, 37)}, {"k": np.int64([5])}, outputs=2)


def _loops(s: _Samples) -> None:
    nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=5)]
    s.add(
        "recurrence",
        nodes,
        {"x": s.normal(7, 2, 6)},
        {"w": s.normal(1, 20, 6), "r": s.normal(1, 20, 5)},
    )


FAMILIES: tuple[Callable[[_Samples], None], ...] = (
    _products, _windows, _rows, _attention, _elements, _small_types, _places, _loops,
)  # fmt: skip


def samples() -> dict[str, Sample]:
    """All of them by name."""
    made = _Samples()
    for family in FAMILIES:
        family(made)
    return made.found
