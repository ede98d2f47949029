"""Functions of a model that share a name, told apart: each gets one of its own.

A function is known by its domain, its name and its overload, and so is what a node calls. The rest
of the way knows two words for an operator, so that the third goes into the second: `F` with the
overload `half` becomes `F:half`. A node that asks for an overload that is not there asks for an
operator that nobody knows.
"""

from __future__ import annotations

import onnx

from tilewright.frontend.onnx.bodies import bodies_of

__all__ = ["without_overloads"]

Key = tuple[str, str, str]


def without_overloads(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a name for each function; the same one if there is nothing to do."""
    if not model.functions or not _has_overloads(model):
        return model
    own = onnx.ModelProto()
    own.CopyFrom(model)
    names = _Names(own)
    for function in own.functions:
        function.name = names.of((function.domain, function.name, function.overload))
        function.overload = ""
    for body in bodies_of(own):
        for node in body.node:
            if node.overload and (node.domain, node.op_type) in names.functions:
                node.op_type = names.of((node.domain, node.op_type, node.overload))
                node.overload = ""
    return own


def _has_overloads(model: onnx.ModelProto) -> bool:
    if any(function.overload for function in model.functions):
        return True
    return any(node.overload for body in bodies_of(model) for node in body.node)


class _Names:
    """A name for each function and overload, which no other function has."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.functions = {(f.domain, f.name) for f in model.functions}
        self._taken = set(self.functions)
        self._known: dict[Key, str] = {}

    def of(self, key: Key) -> str:
        domain, name, overload = key
        if not overload:
            return name
        if key not in self._known:
            made = f"{name}:{overload}"
            while (domain, made) in self._taken:
                made += "'"
            self._taken.add((domain, made))
            self._known[key] = made
        return self._known[key]
