"""Quantised products and convolutions in the forms in which models have them, as ONNX files.

A form is how exporters write the operator: with integer results, quantised on both sides, or as an
operator of floats between QuantizeLinear and DequantizeLinear. Data are u8 with a zero point,
weights i8 with a scale for each column or filter and no zero point, as quantisers make them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.convolutions import FAMILIES, TAGS, Convolution, Layer
from benchmarks.models.spec import Arrays

__all__ = ["FORMS", "LAYERS", "QuantisedWorkload", "write_quantised"]

OPSET, IR_VERSION = 17, 8
DATA_ZERO, RESULT_ZERO = 113, 120

PRODUCTS: Final = (
    (128, 768, 768),
    (128, 3072, 768),
    (384, 1024, 1024),
    (1024, 1024, 1024),
    (49, 512, 2048),
    (1, 4096, 4096),
)
CONVOLVED: Final = (
    *(layer for layer in FAMILIES["resnet18"] if TAGS[layer] in ("C1", "C2", "C4", "C6", "C9")),
    FAMILIES["resnet18"][-1],
    *(("conv2d", shape) for shape in ((56, 64, 256, 1, 1, 0), (14, 1024, 256, 1, 1, 0))),
    *(layer for layer in FAMILIES["mobilenet-dw"] if TAGS[layer] in ("D1", "D5", "D9")),
)
LAYERS: Final[tuple[Layer, ...]] = (*(("matmul", shape) for shape in PRODUCTS), *CONVOLVED)

FORMS: Final = {
    "matmul": ("MatMulInteger", "QLinearMatMul", "QDQ MatMul"),
    "conv": ("ConvInteger", "QLinearConv", "QDQ Conv"),
}


@dataclass(frozen=True, slots=True)
class QuantisedWorkload:
    """One layer in one form; `path` is its file, once it is written."""

    form: str
    op: str
    shape: tuple[int, ...]
    path: str = ""

    group: ClassVar[str] = "tensorize"

    @property
    def name(self) -> str:
        """`QLinearConv 56x64x64x3x1x1 (C2)`."""
        tag = TAGS.get((self.op, self.shape))
        size = "x".join(map(str, self.shape))
        return f"{self.form} {size}" + (f" ({tag})" if tag else "")

    @property
    def convolution(self) -> Convolution | None:
        """The layer as a convolution of floats; None for a product."""
        return None if self.op == "matmul" else Convolution.of(self.op, self.shape)

    @property
    def flops(self) -> int:
        """Multiply-adds count twice, whatever they are of."""
        return self.convolution.flops if self.convolution else 2 * math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes that must be read and written at least."""
        result = math.prod(self.result_shape) * (4 if "Integer" in self.form else 1)
        return result + sum(math.prod(shape) for shape in self.operand_shapes)

    @property
    def tolerance(self) -> float:
        """Integers are exact; what is quantised from floats may be rounded the other way."""
        return 0.0 if "Integer" in self.form else 1 / 127

    @property
    def operand_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of the data and of the weights."""
        if self.convolution is not None:
            return self.convolution.shapes["x"], self.convolution.shapes["w"]
        m, n, k = self.shape
        return (m, k), (k, n)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Of the one output."""
        return self.convolution.result_shape if self.convolution else self.shape[:2]

    def inputs(self) -> Arrays:
        """Data of all values."""
        rng = np.random.default_rng(0)
        return {"x": rng.integers(0, 256, self.operand_shapes[0]).astype(np.uint8)}

    def to_dict(self) -> dict[str, Any]:
        return {"group": self.group, **asdict(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        own = {key: value for key, value in data.items() if key != "group"}
        return cls(**{**own, "shape": tuple(own["shape"])})


def write_quantised(workload: QuantisedWorkload, path: Path) -> None:
    """The file of a layer: `x` is the input, `y` the output."""
    quantised = TensorProto.UINT8
    kind = TensorProto.INT32 if "Integer" in workload.form else quantised
    constants = _constants(workload)
    nodes = _nodes(workload)
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", quantised, workload.operand_shapes[0])],
        [helper.make_tensor_value_info("y", kind, workload.result_shape)],
        [numpy_helper.from_array(a, name) for name, a in constants.items() if name in used],
    )
    opset = helper.make_opsetid("", OPSET)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION), path)


def _constants(workload: QuantisedWorkload) -> Arrays:
    """Weights and the parameters of all forms; results fill the range of their type."""
    rng = np.random.default_rng(1)
    shape = workload.operand_shapes[1]
    filters = shape[-1] if workload.op == "matmul" else shape[0]
    terms = math.prod(shape) // filters
    spread = 74 * 73 * math.sqrt(terms)  # of a sum of products of uniform numbers
    return {
        "w": rng.integers(-127, 128, shape).astype(np.int8),
        "x_scale": np.array(0.02, np.float32),
        "x_zero": np.array(DATA_ZERO, np.uint8),
        "w_scale": rng.uniform(0.005, 0.01, filters).astype(np.float32),
        "w_zero": np.zeros(filters, np.int8),
        "y_scale": np.array(0.02 * 0.0075 * spread / 40, np.float32),
        "y_zero": np.array(RESULT_ZERO, np.uint8),
    }


def _nodes(workload: QuantisedWorkload) -> Sequence[onnx.NodeProto]:
    axis = 1 if workload.op == "matmul" else 0
    floats = "MatMul" if workload.op == "matmul" else "Conv"
    attributes = _attributes(workload)
    quantised = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"]
    match workload.form:
        case "MatMulInteger" | "ConvInteger":
            return [helper.make_node(workload.form, ["x", "w", "x_zero"], ["y"], **attributes)]
        case "QLinearMatMul" | "QLinearConv":
            return [helper.make_node(workload.form, quantised, ["y"], **attributes)]
    return [
        helper.make_node("DequantizeLinear", ["x", "x_scale", "x_zero"], ["x_float"]),
        helper.make_node("DequantizeLinear", ["w", "w_scale", "w_zero"], ["w_float"], axis=axis),
        helper.make_node(floats, ["x_float", "w_float"], ["y_float"], **attributes),
        helper.make_node("QuantizeLinear", ["y_float", "y_scale", "y_zero"], ["y"]),
    ]


def _attributes(workload: QuantisedWorkload) -> dict[str, Any]:
    conv = workload.convolution
    if conv is None:
        return {}
    return {
        "strides": [conv.stride] * conv.rank,
        "pads": [conv.padding] * (2 * conv.rank),
        "group": conv.groups,
        "kernel_shape": conv.window,
    }
