"""Outputs made for a call that passes only the inputs, without looking at the inputs twice.

The plan says for every extent of every output either its value or the argument and axis to read it
from. It trusts the arguments: the C side checks all arrays, made outputs included, before it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tilewright.dtypes import DType
from tilewright.runtime.arrays import PackedArray, empty
from tilewright.runtime.signature import Signature

__all__ = ["OutputPlan"]

Array = NDArray[Any]
Source = int | tuple[int, int]
"""An extent, or (argument, axis) where to read it."""


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """How to make the outputs, and the place of inputs and outputs in parameter order."""

    input_count: int
    outputs: tuple[tuple[tuple[Source, ...], DType], ...]
    order: tuple[int, ...]

    @classmethod
    def of(cls, signature: Signature) -> OutputPlan | None:
        """The plan of a kernel; None if there is nothing to make, or not by this simple way."""
        outputs = [param for param in signature.free if not param.is_input]
        sources = dict(_sources(signature))
        sizes = {size for param in outputs for size in param.shape if isinstance(size, str)}
        packed = any(param.packing is not None for param in outputs)
        if not outputs or packed or not sizes <= sources.keys():
            return None
        made = tuple(
            (tuple(sources[d] if isinstance(d, str) else d for d in param.shape), param.dtype)
            for param in outputs
        )
        both = [*signature.inputs, *outputs]
        return cls(
            len(signature.inputs), made, tuple(both.index(param) for param in signature.free)
        )

    def make(self, args: tuple[Any, ...]) -> tuple[Array, ...]:
        """Outputs that go with these inputs; () if the arguments are something else."""
        if len(args) != self.input_count:
            return ()
        try:
            return tuple(
                empty(tuple([_extent(args, source) for source in shape]), dtype)
                for shape, dtype in self.outputs
            )
        except (AttributeError, IndexError, TypeError, ValueError):
            return ()

    def merge(self, args: tuple[object, ...], made: tuple[Array, ...]) -> tuple[object, ...]:
        """All arrays in parameter order."""
        both = args + made
        return tuple([both[place] for place in self.order])


def _extent(args: tuple[Any, ...], source: Source) -> int:
    if isinstance(source, int):
        return source
    extent: int = args[source[0]].shape[source[1]]
    return extent


def _sources(signature: Signature) -> Iterator[tuple[str, Source]]:
    """Where each size can be read; of several places, any will do."""
    for place, param in enumerate(signature.inputs):
        if param.packing is None:
            yield from (
                (d, (place, axis)) for axis, d in enumerate(param.shape) if isinstance(d, str)
            )
    for param in signature.params:
        value = signature.bound.get(param.name)
        if value is not None:
            array = value.array if isinstance(value, PackedArray) else value
            pairs = zip(param.shape, array.shape, strict=True)
            yield from ((d, extent) for d, extent in pairs if isinstance(d, str))
