"""`OrtValue`: an array with the face of ONNX Runtime's tensors. All of them are in main memory."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tilewright.dtypes import DType, dtype_of
from tilewright.errors import CallError, Code
from tilewright.model.info import dtype_of_number, element_type, type_name
from tilewright.runtime.arrays import as_array, empty

__all__ = ["OrtDevice", "OrtValue", "array_at", "meant_dtype", "require_cpu"]

C030 = Code("C030", "there is no memory of the device `{device}`")
C031 = Code("C031", "{found} is not an element type")
C034 = Code("C034", "a value of type {found} is no single tensor")

STRING: Final = 8
"""The number of texts in ONNX's `TensorProto.DataType`."""

Array = NDArray[Any]


def require_cpu(device: str) -> None:
    """Only main memory is known."""
    if str(device).lower() != "cpu":
        raise CallError(C030, {"device": device}, hint="use `cpu`")


def meant_dtype(kind: object) -> DType:
    """The type meant by a NumPy type, a name, or a number of ONNX's `TensorProto.DataType`."""
    found = dtype_of_number(kind) if isinstance(kind, int) and not isinstance(kind, bool) else None
    if found is not None:
        return found
    try:
        return dtype_of(kind)
    except TypeError:
        hint = "give a NumPy type such as `numpy.float32`"
        raise CallError(C031, {"found": repr(kind)}, hint=hint) from None


def array_at(address: int, shape: Sequence[int], kind: object) -> Array:
    """Memory of somebody else as an array; it must outlive all runs that use it."""
    dtype = meant_dtype(kind).numpy
    count = math.prod(shape) * dtype.itemsize
    memory = (ctypes.c_ubyte * count).from_address(address)
    array: Array = np.ndarray(tuple(shape), dtype, memory)  # type: ignore[arg-type]
    return array


class OrtDevice:
    """Where a value lies: in main memory."""

    @staticmethod
    def make(device_type: str, device_id: int = 0) -> OrtDevice:  # noqa: ARG004
        """The device of this name; only `cpu` is known."""
        require_cpu(device_type)
        return OrtDevice()

    def device_type(self) -> str:
        return "cpu"

    def device_id(self) -> int:
        return 0


class OrtValue:
    """A tensor, or the list of tensors that a sequence is."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    @classmethod
    def ortvalue_from_numpy(
        cls,
        array: Array,
        device_type: str = "cpu",
        device_id: int = 0,  # noqa: ARG003
    ) -> OrtValue:
        """An array, which is not copied."""
        require_cpu(device_type)
        return cls(np.asarray(array))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: object,
        device_type: str = "cpu",
        device_id: int = 0,  # noqa: ARG003
    ) -> OrtValue:
        """An array whose elements are not set."""
        require_cpu(device_type)
        return cls(empty(tuple(shape), meant_dtype(element_type)))

    @classmethod
    def from_dlpack(cls, data: object) -> OrtValue:
        """The tensor of another library, which is not copied."""
        return cls(as_array(data, shares_memory=True))

    def numpy(self) -> Any:
        """The array itself, or the list of arrays."""
        return self._value

    def shape(self) -> list[int]:
        return list(self._array().shape)

    def data_type(self) -> str:
        """`tensor(float)` and the like."""
        if isinstance(self._value, list):
            first = next(iter(self._value), None)
            return f"seq({'tensor(float)' if first is None else _type_of(first)})"
        return _type_of(self._value)

    def element_type(self) -> int:
        """The number of the element type in ONNX's `TensorProto.DataType`."""
        array = self._array()
        return STRING if _is_texts(array) else element_type(dtype_of(array.dtype))

    def tensor_size_in_bytes(self) -> int:
        return int(self._array().nbytes)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._array().ctypes.data)

    def device_name(self) -> str:
        return "cpu"

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list) and not any(isinstance(v, dict) for v in self._value)

    def is_sparse_tensor(self) -> bool:
        return False

    def update_inplace(self, data: object) -> None:
        """Copy elements into the array."""
        np.copyto(self._array(), np.asarray(data), casting="no")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:  # noqa: FBT001
        if copy:
            return np.array(self._array(), dtype)
        return np.asarray(self._array(), dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array().__dlpack_device__()

    def __repr__(self) -> str:
        shown = "" if isinstance(self._value, list) else f" {self.shape()}"
        return f"<OrtValue {self.data_type()}{shown}>"

    def _array(self) -> Array:
        if isinstance(self._value, list):
            raise CallError(C034, {"found": self.data_type()}, hint="look at `numpy()` instead")
        array: Array = np.asarray(self._value)
        return array


def _type_of(value: Any) -> str:
    """The type of a tensor, of texts too, or of a map, as the ONNX world writes it."""
    if isinstance(value, dict):
        key = "string" if any(isinstance(k, str) for k in value) else "int64"
        return f"map({key},tensor(float))"
    return "tensor(string)" if _is_texts(value) else type_name(dtype_of(value.dtype))


def _is_texts(array: Array) -> bool:
    return array.dtype.kind in "OUS"
