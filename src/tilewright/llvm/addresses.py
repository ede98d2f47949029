"""Where buffers live and how their elements are addressed.

A pointer is built from the terms of the index, outermost loop first, then a constant: statements
of an unrolled tile share everything but the constant, which becomes the displacement of the
instruction, and each loop only adds what changes in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from tilewright.dtypes import DType
from tilewright.llvm.linear import Linear, Terms
from tilewright.llvm.spelling import element_type
from tilewright.llvm.writer import Value, Writer

__all__ = ["Address", "Place", "locate", "sum_of"]

SCALES: Final = (1, 2, 4, 8)
"""Bytes per step that an address can scale a register by."""


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer's first element: pointer, alignment in bytes, and whether no call changes it."""

    pointer: Value
    alignment: int
    constant: bool = False


class Address(NamedTuple):
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


def locate(
    w: Writer, place: Place, dtype: DType, index: Linear, innermost: Mapping[Value, Value]
) -> Address:
    """The address of an element; `innermost` gives the start of loops that have no loop inside."""
    size = dtype.size_bytes
    element = "i8" if dtype.is_bool else element_type(dtype)
    pointer = place.pointer
    by_depth: dict[int, Terms] = {}
    for product, coefficient in index.terms.items():
        depth = max([value.depth for value in product])
        by_depth.setdefault(depth, {})[product] = coefficient
    for depth in sorted(by_depth):
        terms = by_depth[depth]
        if len(terms) == 1:
            ((product, coefficient),) = terms.items()
            start = innermost.get(product[0]) if len(product) == 1 else None
            if start is not None and coefficient * size not in SCALES:
                pointer = pointer if index.is_named() else _opaque(w, pointer)
                pointer = _moved(w, pointer, start, coefficient, element, size, depth)
                continue
        pointer = _displaced(w, element, pointer, sum_of(w, terms))
    alignment = math.gcd(place.alignment, index.factor() * size)
    return Address(pointer, index.constant * size, alignment)


def _displaced(w: Writer, element: str, pointer: Value, offset: Value) -> Value:
    text = f"getelementptr {element}, ptr {pointer.text}, i64 {offset.text}"
    return w.pure("ptr", text, pointer, offset)


def _moved(
    w: Writer, pointer: Value, start: Value, step: int, element: str, size: int, depth: int
) -> Value:
    """A pointer that advances by `step` elements, which no address can scale a register by."""
    if start.text != "0":
        pointer = _displaced(w, element, pointer, w.binary("mul", start, step))
    return w.moving(pointer, step * size, depth)


def _opaque(w: Writer, pointer: Value) -> Value:
    """The pointer without its history.

    LLVM's strength reduction would take the sum behind each of several pointers apart, and try its
    quotients in all combinations: a tenth of a second and no gain.
    """
    return w.pure("ptr", f"freeze ptr {pointer.text}", pointer)


def sum_of(w: Writer, terms: Terms) -> Value:
    """Σ coefficient · Π values."""
    total: Value | None = None
    for product, coefficient in terms.items():
        term = product[0]
        for factor in product[1:]:
            term = w.binary("mul", term, factor)
        if coefficient != 1:
            term = w.binary("mul", term, coefficient)
        total = term if total is None else w.binary("add", total, term)
    return total if total is not None else Value("0", "i64")
