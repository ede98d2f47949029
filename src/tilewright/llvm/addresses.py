"""Where buffers live and how their elements are addressed.

A pointer is built from the terms of the index, outermost loop first, then a constant: statements
of an unrolled tile share everything but the constant, which becomes the displacement of the
instruction, and each loop only adds what changes in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.llvm.linear import Linear
from tilewright.llvm.spelling import element_type
from tilewright.llvm.writer import Value, Writer
from tilewright.tensor import ir as tir

__all__ = ["Address", "Place", "locate", "sum_of"]


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer's first element: pointer, alignment in bytes, and whether the call never changes it."""

    pointer: Value
    alignment: int
    constant: bool = False


@dataclass(frozen=True, slots=True)
class Address:
    """`base` plus a constant number of bytes; two addresses with one base differ by constants."""

    base: Value
    offset_bytes: int
    alignment: int

    def pointer(self, w: Writer, more_bytes: int = 0) -> Value:
        """The pointer itself, `more_bytes` further on."""
        offset = self.offset_bytes + more_bytes
        if offset == 0:
            return self.base
        return w.pure("ptr", f"getelementptr i8, ptr {self.base.text}, i64 {offset}", self.base)

    def aligned(self, more_bytes: int = 0) -> int:
        """What surely divides the pointer."""
        return math.gcd(self.alignment, self.offset_bytes + more_bytes)


def locate(w: Writer, place: Place, buffer: tir.Buffer, index: Linear) -> Address:
    """The address of an element."""
    size = buffer.dtype.size_bytes
    element = "i8" if buffer.dtype.is_bool else element_type(buffer.dtype)
    pointer = place.pointer
    by_depth: dict[int, dict[tuple[Value, ...], int]] = {}
    for product, coefficient in index.terms.items():
        depth = max(value.depth for value in product)
        by_depth.setdefault(depth, {})[product] = coefficient
    for depth in sorted(by_depth):
        offset = sum_of(w, by_depth[depth])
        text = f"getelementptr {element}, ptr {pointer.text}, i64 {offset.text}"
        pointer = w.pure("ptr", text, pointer, offset)
    alignment = math.gcd(place.alignment, index.factor() * size)
    return Address(pointer, index.constant * size, alignment)


def sum_of(w: Writer, terms: dict[tuple[Value, ...], int]) -> Value:
    """Σ coefficient · Π values."""
    total: Value | None = None
    for product, coefficient in terms.items():
        term = product[0]
        for factor in product[1:]:
            term = w.binary("mul", term, factor)
        if coefficient == 1:
            total = term if total is None else w.binary("add", total, term)
        else:
            term = w.binary("mul", term, coefficient)
            total = term if total is None else w.binary("add", total, term)
    return total if total is not None else Value("0", "i64")
