"""The constants of a model, one after another in the order of first use; equal ones are kept once.

A loop or a branch has a value of its own for each constant that it captures, passes fold the same
thing more than once, and models come with copies: what is equal and wanted in the same form is one.
Most constants differ in the few bytes of a sample; only those that do not are compared in full.
"""

from __future__ import annotations

import numpy as np

from tilewright.abi import ALIGNMENT
from tilewright.dtypes import u8
from tilewright.graph.ir import Array
from tilewright.runtime.arrays import empty
from tilewright.tensor.packing import Packing

__all__ = ["Weights"]

SAMPLE = 64
"""Elements that are looked at before two constants are compared."""

Kind = tuple[object, ...]


class Weights:
    """Constants and where they begin."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._packed: list[tuple[int, Array]] = []
        self._known: dict[tuple[int, Packing | None], tuple[Array, tuple[int, int]]] = {}
        self._alike: dict[Kind, list[tuple[Array, tuple[int, int]]]] = {}

    def place(self, array: Array, packing: Packing | None = None) -> tuple[int, int]:
        """(offset, bytes) of a constant as a kernel wants it."""
        key = id(array), packing  # the array is kept, so that no other one gets its number
        if key not in self._known:
            self._known[key] = array, self._find(array, packing)
        return self._known[key][1]

    def blob(self) -> Array:
        """All of them; what is between two is zero."""
        blob = empty((self.size_bytes,), u8)  # aligned, and on large pages
        for offset, data in self._packed:
            end = offset + data.nbytes
            blob[offset:end] = data.reshape(-1).view(np.uint8)
            blob[end : offset + _padded(data.nbytes)] = 0
        return blob

    def _find(self, array: Array, packing: Packing | None) -> tuple[int, int]:
        kind = (array.dtype, array.shape, packing, _sample(array))
        alike = self._alike.setdefault(kind, [])
        for other, place in alike:
            if _same_bytes(array, other):
                return place
        data = np.ascontiguousarray(array if packing is None else packing.pack(array))
        place = (self.size_bytes, data.nbytes)
        self._packed.append((self.size_bytes, data))
        self.size_bytes += _padded(data.nbytes)
        alike.append((array, place))
        return place


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


def _padded(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT
