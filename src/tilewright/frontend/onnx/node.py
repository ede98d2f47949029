"""A node of an ONNX model as handlers see it: attributes by name with defaults, and the opset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import onnx

from tilewright.dtypes import DType, dtype_of
from tilewright.frontend.onnx.registry import Declined
from tilewright.frontend.onnx.scope import Item
from tilewright.frontend.onnx.tensors import array_of
from tilewright.graph import Builder, Value
from tilewright.graph.ir import Array
from tilewright.shown import shown

__all__ = ["OnnxNode", "dtype_of_onnx", "normal_axis", "normal_border"]


def dtype_of_onnx(element_type: int) -> DType:
    """The element type of a TensorProto data type; `Declined` for strings, complex numbers, …"""
    try:
        return dtype_of(onnx.helper.tensor_dtype_to_np_dtype(element_type))
    except (TypeError, KeyError, ValueError):
        known = onnx.TensorProto.DataType
        name = known.Name(element_type).lower() if element_type in known.values() else element_type
        raise Declined(f"element type {name}") from None


def normal_axis(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of a tensor with {rank} dimensions")
    return axis + rank if axis < 0 else axis


def normal_border(axis: int, rank: int) -> int:
    """The axis from which on something counts, from the front; behind the last, nothing does.

    Scalars have a border at 1, too: that is where operators begin if they are not told.
    """
    return axis if axis == max(rank, 1) or axis == rank == 0 else normal_axis(axis, rank)


BuildGraph = Callable[
    [onnx.GraphProto, Builder, Callable[[Value], Value], Sequence[Item]], Sequence[Item]
]


@dataclass(frozen=True)
class OnnxNode:
    """One node; `opset` is the version of its domain, `attributes` are converted.

    `build(graph, builder, outside, inputs)` imports a graph inside of the node with a builder,
    which may be that of the node or one of its own; `outside` brings values from around the node
    into it.
    """

    proto: onnx.NodeProto
    opset: int
    build: BuildGraph
    attributes: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, proto: onnx.NodeProto, opset: int, build: BuildGraph) -> OnnxNode:
        values = {a.name: _converted(a) for a in proto.attribute}
        return cls(proto, opset, build, values)

    @property
    def op(self) -> str:
        return str(self.proto.op_type)

    @property
    def label(self) -> str:
        """Its name, or its operator with its first result."""
        return str(self.proto.name) or f"{self.op}({next(iter(self.proto.output), '')})"

    @property
    def output_count(self) -> int:
        return len(self.proto.output)

    def wants(self, output: int) -> bool:
        """Whether somebody may read this output."""
        return output < len(self.proto.output) and bool(self.proto.output[output])

    def has(self, name: str) -> bool:
        return name in self.attributes

    def int(self, name: str, default: int = 0) -> int:
        return int(self.attributes.get(name, default))

    def float(self, name: str, default: float = 0.0) -> float:
        """As ONNX stores it, which is f32: a default is no more exact than what a model writes."""
        return float(np.float32(self.attributes.get(name, default)))

    def ints(self, name: str, default: Sequence[Any] | None = None) -> list[Any] | None:
        found = self.attributes.get(name, default)
        return None if found is None else [int(v) for v in found]

    def floats(self, name: str, default: Sequence[Any] | None = None) -> list[Any] | None:
        found = self.attributes.get(name, default)
        return None if found is None else [float(v) for v in found]

    def string(self, name: str, default: str = "") -> str:
        found = self.attributes.get(name, default)
        return found.decode() if isinstance(found, bytes) else str(found)

    def array(self, name: str) -> Array | None:
        """A tensor attribute."""
        return self.attributes.get(name)

    def graph(self, name: str) -> onnx.GraphProto:
        """A graph inside."""
        found = self.attributes[name]
        if not isinstance(found, onnx.GraphProto):
            raise TypeError(f"its attribute `{name}` is not a graph")
        return found

    def decline(self, reason: str) -> NoReturn:
        """Leave this node to the body of its ONNX function, or to the reference implementation.

        The reason may have a word of the model in it, which is as long as its author liked.
        """
        raise Declined(shown(reason))


def _converted(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type == onnx.AttributeProto.TENSOR:
        return array_of(value)
    return value
