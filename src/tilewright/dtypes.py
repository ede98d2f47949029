"""Element types: a kind, a width in bits, and a number of lanes for the vectors of lowered code.

`f16` and `bf16` are storage types: values are widened to `f32` when they are loaded for arithmetic.
`i64` is the type of every index and extent.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["DType", "Kind", "DTYPES", "dtype_of"]
__all__ += ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8"]
__all__ += ["u64", "u32", "u16", "u8", "boolean", "index"]


class Kind(enum.Enum):
    """What the bits mean."""

    FLOAT = "f"
    BFLOAT = "bf"
    INT = "i"
    UINT = "u"
    BOOL = "bool"


@dataclass(frozen=True)
class DType:
    """An element type; `lanes` > 1 only in lowered code."""

    kind: Kind
    bits: int
    lanes: int = 1

    def __eq__(self, other: object) -> bool:
        if self is other:  # nearly always: there are few types
            return True
        return isinstance(other, DType) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _key(self) -> tuple[object, ...]:
        return self.kind, self.bits, self.lanes

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    @cached_property
    def name(self) -> str:
        """`f32`, `bool`, or `f32x8` for a vector."""
        base = "bool" if self.kind is Kind.BOOL else f"{self.kind.value}{self.bits}"
        return base if self.lanes == 1 else f"{base}x{self.lanes}"

    @cached_property
    def is_float(self) -> bool:
        return self.kind in (Kind.FLOAT, Kind.BFLOAT)

    @cached_property
    def is_integer(self) -> bool:
        """Signed or unsigned, not bool."""
        return self.kind in (Kind.INT, Kind.UINT)

    @cached_property
    def is_signed(self) -> bool:
        return self.kind is not Kind.UINT and self.kind is not Kind.BOOL

    @cached_property
    def is_bool(self) -> bool:
        return self.kind is Kind.BOOL

    @cached_property
    def size_bytes(self) -> int:
        """Bytes of one stored element (a bool takes one)."""
        return max(8, self.bits) // 8

    @cached_property
    def scalar(self) -> DType:
        """The element type of a vector; itself for a scalar."""
        return self if self.lanes == 1 else DType(self.kind, self.bits)

    def vector(self, lanes: int) -> DType:
        """The same element with this many lanes; always the same object for the same answer."""
        if lanes == self.lanes:
            return self
        found = self._vectors.get(lanes)
        if found is None:
            found = self._vectors[lanes] = DType(self.kind, self.bits, lanes)
        return found

    @cached_property
    def _vectors(self) -> dict[int, DType]:
        """Made so far: every load asks for one, and making one costs as much as the load."""
        return {}

    @cached_property
    def min_value(self) -> int | float:
        """The least value (minus infinity for floats): the identity of `max`."""
        if self.is_float:
            return float("-inf")
        return -(1 << (self.bits - 1)) if self.kind is Kind.INT else 0

    @cached_property
    def max_value(self) -> int | float:
        """The greatest value (infinity for floats): the identity of `min`."""
        if self.is_float:
            return float("inf")
        return (1 << (self.bits - (self.kind is Kind.INT))) - 1

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type of one stored element."""
        if self.kind is Kind.BFLOAT:
            return np.dtype(ml_dtypes.bfloat16)  # type: ignore[no-any-return]
        if self.kind is Kind.BOOL:
            return np.dtype(np.bool_)
        return np.dtype(f"{self.kind.value}{self.size_bytes}")

    def __repr__(self) -> str:
        return self.name


f64, f32, f16 = (DType(Kind.FLOAT, bits) for bits in (64, 32, 16))
bf16 = DType(Kind.BFLOAT, 16)
i64, i32, i16, i8 = (DType(Kind.INT, bits) for bits in (64, 32, 16, 8))
u64, u32, u16, u8 = (DType(Kind.UINT, bits) for bits in (64, 32, 16, 8))
boolean = DType(Kind.BOOL, 1)
index = i64

DTYPES: dict[str, DType] = {
    t.name: t for t in (f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean)
}
"""Scalar types by name."""

_BY_NUMPY = {t.numpy: t for t in DTYPES.values()}


def dtype_of(value: object) -> DType:
    """The element type meant by a `DType`, a name (`"f32"`, `"float32"`) or a NumPy type."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in DTYPES:
        return DTYPES[value]
    try:
        return _BY_NUMPY[np.dtype(value)]  # type: ignore[call-overload]
    except (KeyError, TypeError):
        known = ", ".join(DTYPES)
        raise TypeError(f"{value!r} is not an element type; known: {known}") from None
