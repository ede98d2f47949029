"""Element types and literals as LLVM text.

Values of storage types travel as their bits (`i16`, smaller ones `i8`): arithmetic widens them
first, and conversions do not depend on library functions that an object may not find. A bool is
`i1` as a value and a byte in memory.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from tilewright.dtypes import DType, Kind

__all__ = ["element_type", "identifier", "integer", "is_narrow", "lane_literals", "like", "literal"]
__all__ += ["memory_type", "suffix", "value_type", "vector"]

Number = int | float | bool

_ELEMENTS = {
    (Kind.FLOAT, 64): "double",
    (Kind.FLOAT, 32): "float",
    (Kind.FLOAT, 16): "i16",
    (Kind.BFLOAT, 16): "i16",
    (Kind.BOOL, 1): "i1",
}


def vector(element: str, lanes: int) -> str:
    """`<lanes x element>`, or the element itself for one lane."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


@cache
def element_type(dtype: DType) -> str:
    """The type of one lane in registers."""
    return _ELEMENTS.get((dtype.kind, dtype.bits), f"i{max(8, dtype.bits)}")


@cache
def value_type(dtype: DType) -> str:
    """The type of a value in registers."""
    return vector(element_type(dtype), dtype.lanes)


@cache
def like(kind: str, element: str) -> str:
    """A type with as many lanes as `kind` and another element."""
    return f"{kind.partition(' x ')[0]} x {element}>" if kind[0] == "<" else element


@cache
def integer(number: int, kind: str) -> str:
    """An integer constant of a scalar type, or in every lane of a vector type."""
    return f"splat ({kind[1:-1].partition(' x ')[2]} {number})" if kind[0] == "<" else str(number)


@cache
def memory_type(dtype: DType) -> str:
    """The type that is loaded and stored."""
    return vector("i8", dtype.lanes) if dtype.is_bool else value_type(dtype)


@cache
def is_narrow(dtype: DType) -> bool:
    """Floats that are only stored: arithmetic happens in `f32`."""
    return dtype.is_float and dtype.is_stored


@cache
def suffix(dtype: DType) -> str:
    """How an overloaded intrinsic names this type: `f32`, `v8f32`, `v4i64`."""
    letter = "f" if dtype.is_float else "i"
    element = f"{letter}{dtype.bits}"
    return element if dtype.lanes == 1 else f"v{dtype.lanes}{element}"


@cache
def _literal(value: Number, dtype: DType, _sign: float) -> str:
    if dtype.is_bool:
        return "true" if value else "false"
    if is_narrow(dtype):
        with np.errstate(all="ignore"):
            stored = np.array(value, np.float64).astype(dtype.numpy)
        return str(int(stored.view(np.int8 if dtype.is_small else np.int16)))
    if dtype.is_float:
        with np.errstate(all="ignore"):
            rounded = float(np.dtype(f"f{dtype.bits // 8}").type(value))
        # LLVM wants the bits of a double, also for `float`.
        return "0x" + struct.pack(">d", rounded).hex().upper()
    bits = int(value) & ((1 << dtype.bits) - 1)
    if dtype.is_small:
        return str(bits)
    return str(bits - (1 << dtype.bits) if bits >> (dtype.bits - 1) else bits)


def literal(value: Number, dtype: DType) -> str:
    """A constant of the scalar `dtype`, or of all lanes of a vector."""
    # 0.0 and -0.0 are equal as cache keys, and so are 1 and True.
    sign = str(value).startswith("-") if isinstance(value, float) else False
    text = _literal(value, dtype.scalar, sign)
    return text if dtype.lanes == 1 else f"splat ({value_type(dtype.scalar)} {text})"


def lane_literals(values: Sequence[int], element: str) -> str:
    """A vector constant with one integer per lane."""
    return "<" + ", ".join(f"{element} {value}" for value in values) + ">"


LONGEST: Final = 200


def identifier(name: str) -> str:
    """A name of the program as part of a name in LLVM; without dots, which the writer uses.

    LLVM tells names apart by their first thousand characters, so that long ones are cut.
    """
    return re.sub(r"\W", "_", name[:LONGEST], flags=re.ASCII) or "_"
