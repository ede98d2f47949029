"""Bringing NumPy arrays into the memory layout of a parameter, and back.

Callers see the parameters as the program was written: `layout_store_at` takes one away, but its
array is still passed, at its old place, and packed into that of its host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.tensor.expr import Buffer
from tilewright.tensor.layout import Fuse, LayoutStep, Reorder, StoreAt, logical_shape
from tilewright.tensor.node import Node, node

__all__ = ["Packing", "guest_packing", "packing_of", "passed"]

Array = np.ndarray[Any, np.dtype[Any]]
Dim = Any  # an int or an index expression
Dims = tuple[Dim, ...]


@node
class Packing(Node):
    """What brings logical arrays into the memory of a buffer whose layout is `steps`.

    `logical_shape` has numbers for known sizes and expressions for symbolic ones.
    """

    steps: tuple[LayoutStep, ...]
    logical_shape: Dims
    physical_shape: Dims

    @property
    def guests(self) -> tuple[StoreAt, ...]:
        """The buffers stored in this one, in the order in which `pack` wants their arrays."""
        return tuple([step for step in self.steps if isinstance(step, StoreAt)])

    def pack(self, array: Array, *guests: Array) -> Array:
        """A contiguous packed copy; the arrays of `guests` follow in their order."""
        return np.ascontiguousarray(self.arranged(array, *guests))

    def arranged(self, array: Array, *guests: Array) -> Array:
        """The packed array, a view of what it is made of where that is possible."""
        if len(guests) != len(self.guests):
            names = ", ".join(f"`{guest.name}`" for guest in self.guests) or "no other buffer"
            raise ValueError(f"{names} is stored along: give {len(self.guests) + 1} arrays to pack")
        rest = iter(guests)
        for step in self.steps:
            if isinstance(step, StoreAt):
                guest = guest_packing(step).pack(next(rest))
                array = step.pack_with(array, guest)
            else:
                array = step.pack(array)
        return array

    @property
    def is_by_slice(self) -> bool:
        """Whether slices along the first dimension are packed one by one, each in its place."""
        return not self.guests and all(
            step.order[0] == 0 if isinstance(step, Reorder) else getattr(step, "dim", 0) > 0
            for step in self.steps
        )

    def unpack(self, array: Array, shape: tuple[int, ...] | None = None) -> Array:
        """The logical array of a packed one, a view where that is possible.

        `shape` helps where symbolic sizes were fused.
        """
        shapes = self._shapes(shape)
        for step, before in zip(reversed(self.steps), reversed(shapes), strict=True):
            symbolic = isinstance(step, Fuse) and before is not None
            array = array.reshape(before) if symbolic else step.unpack(array)
        return array

    def unpack_guests(self, array: Array) -> tuple[Array, ...]:
        """The logical arrays of the guests, in order."""
        found: list[Array] = []
        for step in reversed(self.steps):
            if isinstance(step, StoreAt):
                found.append(guest_packing(step).unpack(step.unpack_guest(array)))
            array = step.unpack(array)
        return tuple(reversed(found))

    def _shapes(self, shape: tuple[int, ...] | None) -> list[tuple[int, ...] | None]:
        """The concrete shape before each step."""
        if shape is None:
            return [None] * len(self.steps)
        shapes: list[tuple[int, ...] | None] = []
        for step in self.steps:
            shapes.append(shape)
            shape = tuple(int(d) for d in step.shape(shape))
        return shapes


def packing_of(buffer: Buffer) -> Packing | None:
    """How arrays for this buffer are packed; None if they are stored as they are."""
    if not buffer.layout:
        return None
    logical = tuple(map(_plain, logical_shape(buffer.shape, buffer.layout)))
    return Packing(buffer.layout, logical, tuple(map(_plain, buffer.shape)))


def guest_packing(step: StoreAt) -> Packing:
    """How the array of a guest is packed before it joins its host."""
    logical = tuple(map(_plain, logical_shape(step.size, step.layout)))
    return Packing(step.layout, logical, step.size)


def passed(params: Sequence[Buffer]) -> list[Buffer | StoreAt]:
    """Parameters and their guests in the order in which callers pass them."""
    found: list[Buffer | StoreAt] = list(params)
    guests = [step for param in params for step in param.layout if isinstance(step, StoreAt)]
    for guest in sorted(guests, key=lambda guest: guest.place):
        found.insert(guest.place, guest)
    return found


def _plain(dim: Dim) -> Dim:
    """A known size as a number."""
    value = getattr(dim, "value", None)
    return value if isinstance(value, int) else dim
