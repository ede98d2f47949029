"""Arrays of any library as NumPy arrays that share their memory, and arrays made for kernels.

Known protocols, tried in this order: NumPy itself, DLPack, `__array_interface__`, the buffer
protocol, `__array__`. Sequences and numbers are refused: their element type would be a guess. The
buffer protocol and `__array_interface__` have no word for bfloat16: it comes as two-byte void. What
comes as one-byte void could be any of the small types, and is left for its reader to name.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.abi import Packing
from tilewright.dtypes import DTYPES, DType, Kind, bf16
from tilewright.runtime import _native

__all__ = ["NotAnArrayError", "PackedArray", "as_array", "empty"]

Array = NDArray[Any]

DLPACK_CPU = (1, 3, 11, 13)  # host memory, and host memory pinned or managed by CUDA and ROCm
# What libraries raise for arrays that they do not export: on no device, with gradients, sparse.
_REFUSALS = (BufferError, RuntimeError, TypeError, ValueError)
DLPACK_KINDS = {
    0: Kind.INT,
    1: Kind.UINT,
    2: Kind.FLOAT,
    4: Kind.BFLOAT,
    6: Kind.BOOL,
    10: Kind.E4M3FN,
    11: Kind.E4M3FNUZ,
    12: Kind.E5M2,
    13: Kind.E5M2FNUZ,
    14: Kind.E8M0,
}
"""Types of less than eight bits are packed in DLPack, and not here: they are refused."""


class NotAnArrayError(Exception):
    """The value is no array, or one that this process cannot address; the text says what it is."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedArray:
    """The stored form of an array, made by `Kernel.pack`; pass it wherever the packing is used."""

    array: Array
    packing: Packing

    def unpack(self) -> Array:
        """The plain array, without what is stored along; a view where that is possible."""
        return self.packing.unpack(self.array)

    def __repr__(self) -> str:
        return f"PackedArray({self.array.dtype}{list(self.array.shape)}, {self.packing!r})"


def empty(shape: tuple[int, ...], dtype: DType) -> Array:
    """An uninitialised array on a 64-byte boundary; MemoryError if NumPy can have none such.

    NumPy also counts the bytes of an array without elements, as if its extents of zero were ones.
    """
    element = dtype.numpy
    size_bytes = math.prod(filter(None, shape)) * element.itemsize
    if size_bytes > sys.maxsize:
        raise MemoryError(f"an array of {size_bytes} bytes")
    memory = _native.Memory(size_bytes if all(shape) else 0)
    return np.ndarray(shape, element, memory)  # type: ignore[arg-type]


def as_array(value: object, *, shares_memory: bool) -> Array:
    """`value` as an array; with `shares_memory`, never a copy. Raises `NotAnArrayError`."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise NotAnArrayError(
            "a masked array, whose mask kernels do not see: pass `array.filled(…)`"
        )
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if isinstance(value, type) or (isinstance(value, np.generic) and shares_memory):
        raise NotAnArrayError(_describe(value))
    if isinstance(value, np.generic):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value)
    if hasattr(value, "__array_interface__"):
        return _restore_bf16(np.asarray(value))
    return _from_buffer(value, shares_memory=shares_memory)


def _from_buffer(value: object, *, shares_memory: bool) -> Array:
    try:
        return _restore_bf16(np.asarray(memoryview(value)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    if not hasattr(value, "__array__"):
        raise NotAnArrayError(_describe(value))
    try:
        if not shares_memory:
            return np.asarray(value)
        return np.array(value, copy=False)
    except ValueError as error:
        raise NotAnArrayError(f"{_describe(value)} that only gives copies") from error


def _from_dlpack(value: Any) -> Array:
    try:
        device = _device_of(value)
        if device not in DLPACK_CPU:
            what = f"{_describe(value)} in the memory of a device (DLPack {device:d})"
            raise NotAnArrayError(what)
        try:
            capsule = value.__dlpack__(max_version=(1, 0))
        except TypeError:  # producers older than version 1 do not know the argument
            capsule = value.__dlpack__()
    except _REFUSALS as error:
        raise NotAnArrayError(f"{_describe(value)} that cannot be exported: {error}") from error
    try:
        return _Borrowed(capsule, _describe(value)).array()
    except _REFUSALS as error:
        raise NotAnArrayError(f"{_describe(value)} that cannot be borrowed: {error}") from error


def _device_of(value: Any) -> int:
    found = getattr(value, "__dlpack_device__", None)
    return DLPACK_CPU[0] if found is None else int(found()[0])


class _Borrowed:
    """Memory described by a DLPack capsule; arrays keep this object, and it keeps the capsule."""

    def __init__(self, capsule: object, what: str) -> None:
        address, _, code, bits, lanes, shape, strides, is_readonly = _native.read_dlpack(capsule)
        dtype = _element_type(code, bits)
        if dtype is None or lanes != 1:
            raise NotAnArrayError(f"{what} of elements with DLPack type ({code}, {bits}, {lanes})")
        self.dtype = dtype
        self.capsule = capsule
        stored = self.dtype.numpy
        if stored.isbuiltin != 1:  # an interface has no word for it: its bits are passed
            stored = np.dtype(f"u{stored.itemsize}")
        self.__array_interface__ = {
            "version": 3,
            "data": (address, is_readonly),
            "shape": shape,
            "strides": strides and tuple(stride * stored.itemsize for stride in strides),
            "typestr": stored.str,
        }

    def array(self) -> Array:
        array: Array = np.asarray(self)
        return array.view(self.dtype.numpy)


def _element_type(code: int, bits: int) -> DType | None:
    kind = DLPACK_KINDS.get(code)
    if kind is None:
        return None
    dtype = DTYPES.get(DType(kind, 1 if kind is Kind.BOOL else bits).name)
    return dtype if dtype is not None and dtype.size_bytes * 8 == bits else None


def _restore_bf16(array: Array) -> Array:
    return array.view(bf16.numpy) if array.dtype == np.dtype("V2") else array


def _describe(value: object) -> str:
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"a value of type {name}"
