"""Types of values as ONNX writes them, and back."""

from __future__ import annotations

import functools
from collections.abc import Callable

import onnx

from tilewright.dtypes import DType
from tilewright.frontend.onnx.node import dtype_of_onnx
from tilewright.graph import TensorType, Value
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir

__all__ = ["SizeNames", "onnx_dtype", "tensor_type", "type_name", "type_proto"]


def onnx_dtype(dtype: DType) -> int:
    """The TensorProto data type of an element type."""
    return int(onnx.helper.np_dtype_to_tensor_dtype(dtype.numpy))


@functools.cache
def type_name(dtype: DType) -> str:
    """The name that ONNX has for an element type, as in `tensor(float)`."""
    return str(onnx.TensorProto.DataType.Name(onnx_dtype(dtype))).lower()


class SizeNames:
    """Names for symbolic dimensions in ONNX types, and the dimensions of names."""

    def __init__(self) -> None:
        self._dims: dict[str, tir.Expr] = {}

    def name(self, dim: tir.Expr) -> str:
        for name, known in self._dims.items():
            if known == dim:
                return name
        name = f"tw_d{len(self._dims)}"
        self._dims[name] = dim
        return name

    def dim(self, name: str, fresh: Callable[[], tir.Expr]) -> tir.Expr:
        """The dimension of a name; a new one for a name that was made by somebody else."""
        if name not in self._dims:
            self._dims[name] = fresh()
        return self._dims[name]


def type_proto(value: Value, names: SizeNames | None = None) -> onnx.TypeProto:
    """The ONNX type of a value; symbolic dimensions get names, or stay unknown."""
    dims: list[int | str | None] = []
    for dim in value.shape:
        number = fixed(dim)
        dims.append(number if number is not None else names.name(dim) if names else None)
    return onnx.helper.make_tensor_type_proto(onnx_dtype(value.dtype), dims)


def tensor_type(
    proto: onnx.TypeProto, names: SizeNames, fresh: Callable[[], tir.Expr]
) -> TensorType | None:
    """The type that ONNX says; None if its rank is unknown or it is not a tensor."""
    if proto.WhichOneof("value") != "tensor_type" or not proto.tensor_type.HasField("shape"):
        return None
    dims: list[tir.Expr] = []
    for d in proto.tensor_type.shape.dim:
        if d.HasField("dim_value"):
            dims.append(tir.Const(int(d.dim_value)))
        else:
            dims.append(names.dim(d.dim_param, fresh) if d.dim_param else fresh())
    return TensorType(dtype_of_onnx(proto.tensor_type.elem_type), tuple(dims))
