"""Branches, bodies for the members of sequences, and optionals, on any values.

Those of the reference implementation refuse an optional that holds nothing, or put what one holds
into a list, and let the body of `SequenceMap` see nothing around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import onnx

__all__ = ["Held", "If", "Inside", "SequenceMap"]


class Body(Protocol):
    """The evaluator of a graph inside of a node."""

    input_names: list[str]
    output_names: list[str]

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs for inputs, and what lies around."""


Inside = Callable[[onnx.GraphProto], Body]
"""What makes the evaluator of a graph inside of a node."""


class If:
    """One of two graphs."""

    def __init__(self, node: onnx.NodeProto, inside: Inside) -> None:
        self.graphs = {attribute.name: attribute.g for attribute in node.attribute}
        self.inside = inside
        self._bodies: dict[str, Body] = {}

    def __call__(self, given: Sequence[Any], around: Mapping[str, Any]) -> Sequence[Any]:
        name = "then_branch" if np.asarray(given[0]).item() else "else_branch"
        if name not in self._bodies:
            self._bodies[name] = self.inside(self.graphs[name])
        return self._bodies[name].run(None, around)


class Held:
    """What an optional holds stands for itself, and None for nothing."""

    def __init__(self, node: onnx.NodeProto, inside: Inside) -> None:
        pass

    def __call__(self, given: Sequence[Any], _around: Mapping[str, Any]) -> Sequence[Any]:
        return [given[0] if given else None]


class SequenceMap:
    """A graph for each member; other sequences go along with the first, tensors are for all."""

    def __init__(self, node: onnx.NodeProto, inside: Inside) -> None:
        self.graph, self.inside = node.attribute[0].g, inside

    @cached_property
    def body(self) -> Body:
        return self.inside(self.graph)

    def __call__(self, given: Sequence[Any], around: Mapping[str, Any]) -> Sequence[Any]:
        rows: list[list[Any]] = []
        for place in range(len(given[0])):
            members = [value[place] if isinstance(value, list) else value for value in given]
            feeds = {**around, **dict(zip(self.body.input_names, members, strict=False))}
            rows.append(self.body.run(None, feeds))
        return [[row[k] for row in rows] for k in range(len(self.body.output_names))]
