"""A whole model on the ONNX reference implementation.

The last resort for models that have no graph: sequences, optionals or strings among their inputs,
or results of which not even the rank is known before they run (`Unknown`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import onnx

from tilewright.errors import Code, MissingInputError
from tilewright.frontend.onnx.settled import open_inputs
from tilewright.shown import listed, shown
from tilewright.unsupported import LONGEST, Unsupported

__all__ = ["WholeModel"]

C301 = Code("C301", "`{input}` is missing among the inputs of `{model}`")


class WholeModel:
    """A model by its meaning alone: `run` takes values by name and gives a list of results.

    Values are arrays, or lists of arrays for sequences, or None for optionals that hold nothing.
    `nodes` are those that are the reason.
    """

    def __init__(
        self, model: onnx.ModelProto, reason: str, nodes: Sequence[Unsupported] = ()
    ) -> None:
        self.model, self.reason, self.nodes = model, reason, tuple(nodes)
        self.inputs = {info.name: _described(info) for info in open_inputs(model)}
        self.outputs = {info.name: _described(info) for info in model.graph.output}

    @property
    def name(self) -> str:
        return str(self.model.graph.name) or "model"

    @cached_property
    def _evaluator(self) -> Any:
        from tilewright.frontend.onnx.reference.evaluator import evaluator_of

        return evaluator_of(self.model)

    def run(self, feeds: Mapping[str, object]) -> list[Any]:
        """The outputs for these inputs, in order."""
        for name in self.inputs:
            if name not in feeds:
                hint = f"pass all of {listed(self.inputs)} by name"
                raise MissingInputError(C301, {"input": name, "model": self.name}, hint=hint)
        from tilewright.frontend.onnx.reference.nodes import told_as_call_error

        with told_as_call_error():
            given = {name: self._given(name, value) for name, value in feeds.items()}
            found = self._evaluator.run(None, given)
        outputs = self.model.graph.output
        return [_texts(_held(v, o.type)) for v, o in zip(found, outputs, strict=True)]

    def _given(self, name: str, value: object) -> Any:
        """A value as the reference implementation takes it: texts may come in many forms."""
        if name not in self._texts or value is None:
            return value
        from tilewright.frontend.onnx.reference.texts import as_texts

        return [as_texts(v) for v in value] if self._texts[name] else as_texts(value)  # type: ignore[attr-defined]

    @cached_property
    def _texts(self) -> dict[str, bool]:
        """The inputs that are texts, and whether they are sequences of tensors."""
        found: dict[str, bool] = {}
        for info in self.model.graph.input:
            kind, is_sequence = info.type, False
            while (which := kind.WhichOneof("value")) in ("sequence_type", "optional_type"):
                is_sequence = is_sequence or which == "sequence_type"
                kind = getattr(kind, which).elem_type
            if kind.tensor_type.elem_type == onnx.TensorProto.STRING:
                found[info.name] = is_sequence
        return found

    def __repr__(self) -> str:
        inputs, outputs = (
            ", ".join(f"{shown(name)}: {shown(kind)}" for name, kind in ports.items())
            for ports in (self.inputs, self.outputs)
        )
        reason = shown(self.reason, LONGEST)
        return f"<model {shown(self.name)}({inputs}) -> ({outputs}) by reference: {reason}>"


def _held(value: Any, kind: onnx.TypeProto) -> Any:
    """What an optional holds: the reference implementation wraps it in a list."""
    if kind.WhichOneof("value") != "optional_type" or not isinstance(value, list):
        return value
    inner = kind.optional_type.elem_type.WhichOneof("value")
    wrapped = len(value) == 1 and isinstance(value[0], list) == (inner == "sequence_type")
    return value[0] if wrapped else value


def _texts(value: Any) -> Any:
    """Texts as Python has them, whatever their lengths: the reference implementation pads some."""
    if isinstance(value, list):
        return [_texts(v) for v in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "US":
        return value.astype(np.str_).astype(object)
    return value


def _described(info: onnx.ValueInfoProto) -> str:
    """The type of an input or output in words, for example `sequence of float[n, 3]`."""
    return _type_text(info.type)


def _type_text(kind: onnx.TypeProto) -> str:
    which = kind.WhichOneof("value")
    if which == "sequence_type":
        return f"sequence of {_type_text(kind.sequence_type.elem_type)}"
    if which == "optional_type":
        return f"optional {_type_text(kind.optional_type.elem_type)}"
    if which != "tensor_type":
        return str(which or "unknown").removesuffix("_type")
    tensor = kind.tensor_type
    known = onnx.TensorProto.DataType
    number = tensor.elem_type
    element = known.Name(number).lower() if number in known.values() else f"type {number}"
    if not tensor.HasField("shape"):
        return f"{element}[...]"
    dims = [
        d.dim_param or (d.dim_value if d.HasField("dim_value") else "?") for d in tensor.shape.dim
    ]
    return f"{element}[{', '.join(map(str, dims))}]"
