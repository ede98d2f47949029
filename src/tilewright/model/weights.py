"""The constants of a model, one after another in the order of first use; equal ones are kept once.

A loop or a branch has a value of its own for each constant that it captures, passes fold the same
thing more than once, and models come with copies: what is equal and wanted in the same form is one.
Most constants differ in the few bytes of a sample; only those that do not are compared in full.

Where each goes is known before any is packed or transformed. They are then written straight to
their places, and each is let go once it is there: a model's weights are never in memory twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilewright.abi import ALIGNMENT
from tilewright.dtypes import u8
from tilewright.graph.ir import Array, Value
from tilewright.graph.ops.op import Op
from tilewright.graph.sizes import fixed
from tilewright.runtime import return_memory
from tilewright.runtime.arrays import empty
from tilewright.tensor.packing import Packing

__all__ = ["Constant", "Derived", "Form", "Weights", "padded"]

SAMPLE = 64
"""Elements that are looked at before two constants are compared."""

OFTEN = 1 << 24
"""Bytes after which memory of what was let go is given back: the heap keeps it otherwise."""

Kind = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Derived:
    """A constant that an operator makes of others, when it is wanted; `value` has its type."""

    op: Op
    sources: tuple[Array, ...]
    value: Value

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype.numpy

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(fixed(dim) or 0 for dim in self.value.shape)

    def array(self) -> Array:
        """What it is, computed anew by each call."""
        (made,) = self.op.evaluate(self.sources, lambda dim: fixed(dim) or 0)
        return made

    def slices(self) -> Iterator[Array]:
        """The same along its first dimension, one piece after another."""
        return self.op.slices(self.sources, lambda dim: fixed(dim) or 0)


Constant = Array | Derived


@dataclass(frozen=True, eq=False)
class Form:
    """A constant as some kernels want it, and where it lies among the weights."""

    constant: Constant
    packing: Packing | None
    offset: int
    guests: tuple[Constant, ...] = ()
    """Constants that are packed with it, each in its place."""

    @property
    def size_bytes(self) -> int:
        shape: tuple[int, ...] = self.constant.shape
        for step in () if self.packing is None else self.packing.steps:
            shape = step.shape(shape)
        return prod(shape) * self.constant.dtype.itemsize

    def write(self, blob: Array) -> None:
        """Bring it to its place, with zeros up to the next one."""
        end = self.offset
        guests = [_whole(guest) for guest in self.guests]
        for data in self._pieces():
            piece = data if self.packing is None else self.packing.arranged(data, *guests)
            begin, end = end, end + piece.nbytes
            if piece.size:
                blob[begin:end].view(piece.dtype).reshape(piece.shape)[...] = piece
        blob[end : self.offset + padded(end - self.offset)] = 0

    def _pieces(self) -> Iterator[Array]:
        """What is stored one after another: slices, where these are made and packed by themselves.

        Weights that grow are the largest, and need not be there a second time as a whole.
        """
        if not isinstance(self.constant, Derived):
            yield self.constant
        elif self.packing is None or self.packing.is_by_slice:
            yield from self.constant.slices()
        else:
            yield _whole(self.constant)


class Weights:
    """Constants and where they begin."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self.forms: list[Form] = []
        self._known: dict[tuple[object, ...], tuple[tuple[Constant, ...], Form]] = {}
        self._alike: dict[Kind, list[Form]] = {}

    def place(
        self,
        constant: Constant,
        packing: Packing | None = None,
        guests: Sequence[Constant] = (),
    ) -> tuple[int, int]:
        """(offset, bytes) of a constant as a kernel wants it, with others packed into it."""
        every = constant, *guests
        key = packing, *map(id, every)  # they are kept, so that no others get their numbers
        if key not in self._known:
            self._known[key] = every, self._find(every, packing)
        form = self._known[key][1]
        return form.offset, form.size_bytes

    def blob(self) -> Array:
        """All of them, of which none is here afterwards; what is between two is zero."""
        return_memory()
        blob = empty((self.size_bytes,), u8)  # aligned, and on large pages
        written = 0
        for form in self.taken():
            form.write(blob)
            written += form.size_bytes
            del form
            if written >= OFTEN:
                return_memory()
                written = 0
        return blob

    def taken(self) -> Iterator[Form]:
        """All of them in order, each let go when the next one is asked for."""
        self._known.clear()
        self._alike.clear()
        self.forms.reverse()
        while self.forms:
            yield self.forms.pop()

    def _find(self, every: tuple[Constant, ...], packing: Packing | None) -> Form:
        """The form of a constant and its guests, one that is there already if it is equal."""
        constant, *guests = every
        ops, arrays = [_parts(c)[0] for c in every], _arrays(every)
        kind = (packing, *ops, *((a.dtype, a.shape, _sample(a)) for a in arrays))
        alike = self._alike.setdefault(kind, [])
        for form in alike:
            if all(map(_same_bytes, arrays, _arrays((form.constant, *form.guests)))):
                return form
        form = Form(constant, packing, self.size_bytes, tuple(guests))
        self.forms.append(form)
        self.size_bytes += padded(form.size_bytes)
        alike.append(form)
        return form


def padded(size_bytes: int) -> int:
    """Bytes up to where another constant may begin."""
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT


def _parts(constant: Constant) -> tuple[Op | None, Sequence[Array]]:
    """What makes a constant, and of which arrays."""
    if isinstance(constant, Derived):
        return constant.op, constant.sources
    return None, (constant,)


def _arrays(every: Sequence[Constant]) -> list[Array]:
    """What all of some constants are made of."""
    return [array for constant in every for array in _parts(constant)[1]]


def _whole(constant: Constant) -> Array:
    return constant.array() if isinstance(constant, Derived) else constant


def _sample(array: Array) -> bytes:
    """A few elements, spread evenly."""
    if not array.size:
        return b""
    places = np.linspace(0, array.size - 1, min(array.size, SAMPLE), dtype=np.int64)
    return array.flat[places].tobytes()


def _same_bytes(a: Array, b: Array) -> bool:
    """Equal to the last bit, which numbers that are not equal to themselves can be as well."""
    if a is b:
        return True
    first, second = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b))
    return bool(np.array_equal(first, second))
