"""Elements that are no numbers, moved as if they were: each has one that stands for it.

What an operator only moves, compares or tells apart it does to numbers in the same way, so that
texts and complex numbers go through the graph of a node, too. Numbers are in the order of the
elements, and zero is what a tensor is filled with: the empty text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import defs

from tilewright.frontend.onnx.check import domain_of
from tilewright.frontend.onnx.reference.texts import as_texts

__all__ = ["Codes", "is_moved"]

_NAMES: Final = (
    "CenterCropPad Compress Concat DepthToSpace Equal Expand Flatten Gather GatherElements "
    "GatherND Identity OneHot Pad Reshape ReverseSequence Scatter ScatterElements ScatterND Slice "
    "SpaceToDepth Split Squeeze Tile Transpose Trilu Unique Unsqueeze Where"
)
MOVED: Final = frozenset(_NAMES.split())
"""Operators of ONNX whose results hold elements of their inputs, and facts about these."""


def is_moved(proto: onnx.NodeProto) -> bool:
    """Whether a node does nothing to elements but move them."""
    return domain_of(proto) == "" and proto.op_type in MOVED


class Codes:
    """The numbers of all elements that some inputs of a node hold."""

    def __init__(self, given: Sequence[Any]) -> None:
        arrays = [_elements(value) for value in given if _is_coded(value)]
        self.dtype = arrays[0].dtype
        zero = np.zeros(1, self.dtype) if self.dtype.kind == "c" else np.array([""], object)
        every = np.concatenate([zero, *(a.ravel() for a in arrays)])
        self.known, places = np.unique(every, return_inverse=True)
        # The zero comes first, whatever lies below it in the order of complex numbers.
        first = int(places[0])
        self.known = np.concatenate([zero, np.delete(self.known, first)])
        numbers = np.where(places == first, 0, places + (places < first))[1:]
        ends = np.cumsum([a.size for a in arrays])[:-1]
        self._coded = iter(np.split(numbers.astype(np.int64), ends))

    def inputs(self, given: Sequence[Any]) -> list[Any]:
        """The inputs with numbers in the place of elements."""
        return [
            next(self._coded).reshape(np.shape(value)) if _is_coded(value) else value
            for value in given
        ]

    def outputs(
        self, proto: onnx.NodeProto, opsets: Mapping[str, int], given: Sequence[Any], found: Any
    ) -> list[Any]:
        """The results with elements again, where their type is that of the inputs that had them."""
        schema = defs.get_schema(proto.op_type, opsets.get("", 1), "")
        letters = {_letter(schema.inputs, k) for k, value in enumerate(given) if _is_coded(value)}
        return [
            self.known[value]
            if value is not None and _letter(schema.outputs, k) in letters
            else value
            for k, value in enumerate(found)
        ]

    @classmethod
    def of(cls, given: Sequence[Any]) -> Codes | None:
        """None if all inputs are numbers, or some are neither."""
        coded = [value for value in given if _is_coded(value)]
        others = [value for value in given if value is not None and not _is_coded(value)]
        plain = all(isinstance(value, np.ndarray | np.generic) for value in others)
        return cls(given) if coded and plain and len({_kind(v) for v in coded}) == 1 else None


def _is_coded(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "OUSTc"


def _kind(value: Any) -> Any:
    return value.dtype if value.dtype.kind == "c" else "text"


def _elements(value: Any) -> Any:
    return np.asarray(value) if value.dtype.kind == "c" else as_texts(value)


def _letter(parameters: Sequence[Any], place: int) -> str:
    """What stands for the type of a parameter; the last one may repeat."""
    return str(parameters[min(place, len(parameters) - 1)].type_str)
