"""Element types: a kind, a width in bits, and a number of lanes for the vectors of lowered code.

`f16`, `bf16` and everything below eight bits or with another float format is a storage type: values
are widened to `computed` when they are loaded for arithmetic. Types of less than eight bits take a
byte for each element, as `ml_dtypes` arrays do. `i64` is the type of every index and extent.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["DType", "FloatFormat", "Kind", "DTYPES", "dtype_of"]
__all__ += ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8"]
__all__ += ["u64", "u32", "u16", "u8", "boolean", "index"]
__all__ += ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f6e2m3", "f6e3m2"]
__all__ += ["f4e2m1", "i4", "i2", "u4", "u2"]


class Kind(enum.Enum):
    """What the bits mean."""

    FLOAT = "f"
    BFLOAT = "bf"
    INT = "i"
    UINT = "u"
    BOOL = "bool"
    E4M3FN = "e4m3fn"
    E4M3FNUZ = "e4m3fnuz"
    E5M2 = "e5m2"
    E5M2FNUZ = "e5m2fnuz"
    E8M0 = "e8m0"
    E2M3 = "e2m3"
    E3M2 = "e3m2"
    E2M1 = "e2m1"


@dataclass(frozen=True)
class FloatFormat:
    """What the bits of a float of at most eight bits mean; `numpy` is its type in `ml_dtypes`.

    Above the code of the `greatest` finite value come infinity, where there is one, and NaN. Types
    without a negative zero have NaN in its place; with a `nan` of None there is none at all.
    """

    numpy: str
    exponent: int
    mantissa: int
    bias: int
    greatest: int
    infinity: int | None = None
    nan: int | None = None

    @property
    def sign(self) -> int:
        """The bit of the sign; 0 for the scales of `e8m0`, which have none."""
        return 0 if self.mantissa == 0 else 1 << (self.exponent + self.mantissa)

    @property
    def has_negative_zero(self) -> bool:
        return self.nan != self.sign

    @property
    def max_value(self) -> float:
        """The greatest finite value."""
        exponent, mantissa = divmod(self.greatest, 1 << self.mantissa)
        return (1 + mantissa / (1 << self.mantissa)) * 2.0 ** (exponent - self.bias)


_FORMATS: dict[Kind, FloatFormat] = {
    Kind.E4M3FN: FloatFormat("float8_e4m3fn", 4, 3, 7, 0x7E, nan=0x7F),
    Kind.E4M3FNUZ: FloatFormat("float8_e4m3fnuz", 4, 3, 8, 0x7F, nan=0x80),
    Kind.E5M2: FloatFormat("float8_e5m2", 5, 2, 15, 0x7B, infinity=0x7C, nan=0x7E),
    Kind.E5M2FNUZ: FloatFormat("float8_e5m2fnuz", 5, 2, 16, 0x7F, nan=0x80),
    Kind.E8M0: FloatFormat("float8_e8m0fnu", 8, 0, 127, 0xFE, nan=0xFF),
    Kind.E2M3: FloatFormat("float6_e2m3fn", 2, 3, 1, 0x1F),
    Kind.E3M2: FloatFormat("float6_e3m2fn", 3, 2, 3, 0x1F),
    Kind.E2M1: FloatFormat("float4_e2m1fn", 2, 1, 1, 0x07),
}


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
        """`f32`, `f8e5m2`, `bool`, or `f32x8` for a vector."""
        base = "bool" if self.kind is Kind.BOOL else f"{self.kind.value}{self.bits}"
        if self.format is not None:
            base = f"f{self.bits}{self.kind.value}"
        return base if self.lanes == 1 else f"{base}x{self.lanes}"

    @cached_property
    def is_float(self) -> bool:
        return self.kind in (Kind.FLOAT, Kind.BFLOAT) or self.kind in _FORMATS

    @cached_property
    def format(self) -> FloatFormat | None:
        """The format of a float of at most eight bits."""
        return _FORMATS.get(self.kind)

    @cached_property
    def is_stored(self) -> bool:
        """Whether values are only stored as this type, and computed with as another one."""
        return self.bits < (32 if self.is_float else 8) and not self.is_bool

    @cached_property
    def is_small(self) -> bool:
        """Whether it is a storage type of a byte: all but `f16` and `bf16`."""
        return self.is_stored and self.bits <= 8

    @cached_property
    def computed(self) -> DType:
        """The type in which values are computed; it holds each of them exactly."""
        if not self.is_stored:
            return self
        return f32.vector(self.lanes) if self.is_float else DType(self.kind, 8, self.lanes)

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
        element: Any = f"{self.kind.value}{self.size_bytes}"
        if self.format is not None:
            element = getattr(ml_dtypes, self.format.numpy)
        elif self.is_small:
            element = getattr(ml_dtypes, f"{'' if self.is_signed else 'u'}int{self.bits}")
        elif self.kind is Kind.BFLOAT:
            element = ml_dtypes.bfloat16
        elif self.kind is Kind.BOOL:
            element = np.bool_
        found: np.dtype[Any] = np.dtype(element)
        return found

    def __repr__(self) -> str:
        return self.name


f64, f32, f16 = (DType(Kind.FLOAT, bits) for bits in (64, 32, 16))
bf16 = DType(Kind.BFLOAT, 16)
i64, i32, i16, i8 = (DType(Kind.INT, bits) for bits in (64, 32, 16, 8))
u64, u32, u16, u8 = (DType(Kind.UINT, bits) for bits in (64, 32, 16, 8))
i4, i2, u4, u2 = (DType(kind, bits) for kind in (Kind.INT, Kind.UINT) for bits in (4, 2))
f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0 = (
    DType(kind, 8) for kind in (Kind.E4M3FN, Kind.E4M3FNUZ, Kind.E5M2, Kind.E5M2FNUZ, Kind.E8M0)
)
f6e2m3, f6e3m2, f4e2m1 = DType(Kind.E2M3, 6), DType(Kind.E3M2, 6), DType(Kind.E2M1, 4)
boolean = DType(Kind.BOOL, 1)
index = i64

_WIDE = (f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean)
_SMALL = (f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f6e2m3, f6e3m2, f4e2m1, i4, i2, u4, u2)
DTYPES: dict[str, DType] = {t.name: t for t in (*_WIDE, *_SMALL)}
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
