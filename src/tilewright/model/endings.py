"""Outputs that are no tensors of numbers: labels that are texts, and maps from classes to scores.

Models of scikit-learn end with them. What computes is compiled as if labels were numbers and scores
a matrix; the last step, which makes texts and maps of these, is Python and belongs to the module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import onnx

__all__ = ["Ending", "split_endings"]

ML: Final = "ai.onnx.ml"
LABELS: Final = {
    "TreeEnsembleClassifier": "classlabels_int64s",
    "LinearClassifier": "classlabels_ints",
    "SVMClassifier": "classlabels_ints",
}
"""Operators with labels, and how they are called if they are numbers."""
KEEPS: Final = frozenset({"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Cast"})
"""Operators that leave texts as they are."""

Key = int | str


@dataclass(frozen=True)
class Ending:
    """What an output is made of: a map for each row of scores, or a text for each number."""

    keys: tuple[Key, ...]
    is_map: bool

    @property
    def type(self) -> str:
        """As the ONNX world writes it."""
        if not self.is_map:
            return "tensor(string)"
        key = "string" if isinstance(self.keys[0], str) else "int64"
        return f"seq(map({key},tensor(float)))"

    def apply(self, result: Any) -> Any:
        """The output of what the program gave."""
        if self.is_map:
            rows = np.atleast_2d(np.asarray(result)).tolist()
            return [dict(zip(self.keys, row, strict=True)) for row in rows]
        return np.array(self.keys, dtype=object)[np.asarray(result)]

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return {"keys": list(self.keys), "is_map": self.is_map}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ending:
        """The inverse of `to_dict`."""
        return cls(tuple(data["keys"]), bool(data["is_map"]))


def split_endings(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, Ending]]:
    """The model with numbers instead of texts and maps, and what makes these of them, by output.

    The model itself if there is nothing to do.
    """
    if not any(node.domain == ML for node in model.graph.node):
        return model, {}
    own = type(model)()
    own.CopyFrom(model)
    found = dict(_Rewriting(own.graph).endings())
    return (own, found) if found else (model, {})


class _Rewriting:
    """Changes a graph in place."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.makers = {name: node for node in graph.node for name in node.output if name}
        names = (name for node in graph.node for name in node.input if name)
        self.readers: dict[str, int] = {}
        for name in (*names, *(o.name for o in graph.output)):
            self.readers[name] = self.readers.get(name, 0) + 1

    def endings(self) -> Iterator[tuple[str, Ending]]:
        """Those of all outputs that have one."""
        from onnx import TensorProto, helper

        for output in self.graph.output:
            maker = self.makers.get(output.name)
            if maker is None:
                continue
            if (maker.domain, maker.op_type) == (ML, "ZipMap"):
                kind, ending = TensorProto.FLOAT, _zipped(maker)
            else:
                texts = self._texts(output.name)
                kind, ending = TensorProto.INT64, Ending(texts, is_map=False) if texts else None
            if ending is not None:
                output.CopyFrom(helper.make_tensor_value_info(output.name, kind, None))
                yield output.name, ending

    def _texts(self, name: str) -> tuple[str, ...]:
        """The texts that a value has, which become their numbers; empty if they are not known."""
        from onnx import TensorProto

        path: list[onnx.NodeProto] = []
        while True:
            node = self.makers.get(name)
            if node is None or self.readers.get(name, 0) != 1:
                return ()
            if node.domain not in ("", "ai.onnx") or node.op_type not in KEEPS:
                break
            path.append(node)
            name = node.input[0]
        texts = self._numbered(node, name)
        for step in path if texts else ():
            if step.op_type == "Cast":
                if _attribute(step, "to").i != TensorProto.STRING:
                    return ()  # texts that become numbers: nothing of this concerns them
                _attribute(step, "to").i = TensorProto.INT64
        return texts

    def _numbered(self, node: onnx.NodeProto, name: str) -> tuple[str, ...]:
        """Let the source of texts give their numbers instead."""
        if node.domain != ML or node.output[0] != name:
            return ()
        if node.op_type in LABELS:
            return _renamed(node, "classlabels_strings", LABELS[node.op_type])
        if node.op_type == "LabelEncoder" and _attribute(node, "keys_int64s") is not None:
            texts = _renamed(node, "values_strings", "values_int64s")
            return (*texts, _with_default(node, len(texts))) if texts else ()
        if node.op_type == "ArrayFeatureExtractor":
            return self._table(node)
        return ()

    def _table(self, node: onnx.NodeProto) -> tuple[str, ...]:
        """Texts that are chosen from a constant."""
        from onnx import TensorProto, numpy_helper

        for tensor in self.graph.initializer:
            if tensor.name != node.input[0] or tensor.data_type != TensorProto.STRING:
                continue
            if self.readers[tensor.name] != 1:
                return ()
            texts = numpy_helper.to_array(tensor)
            numbers = np.arange(texts.size).reshape(texts.shape)
            tensor.CopyFrom(numpy_helper.from_array(numbers, tensor.name))
            return tuple(_text(v) for v in texts.ravel())
        return ()


def _zipped(node: onnx.NodeProto) -> Ending | None:
    """What a ZipMap does, which becomes an Identity."""
    texts, numbers = (_attribute(node, f"classlabels_{n}") for n in ("strings", "int64s"))
    keys: Sequence[Key] = ()
    if texts is not None and texts.strings:
        keys = [_text(v) for v in texts.strings]
    elif numbers is not None:
        keys = list(numbers.ints)
    if not keys:
        return None
    node.op_type, node.domain = "Identity", ""
    del node.attribute[:]
    return Ending(tuple(keys), is_map=True)


def _renamed(node: onnx.NodeProto, texts: str, numbers: str) -> tuple[str, ...]:
    """An attribute of texts becomes one of their numbers."""
    from onnx import helper

    found = _attribute(node, texts)
    if found is None or not found.strings:
        return ()
    names = tuple(_text(v) for v in found.strings)
    found.CopyFrom(helper.make_attribute(numbers, list(range(len(names)))))
    return names


def _with_default(node: onnx.NodeProto, number: int) -> str:
    """A text for what is not known becomes the last number."""
    from onnx import helper

    found = _attribute(node, "default_string")
    text = "_Unused" if found is None else _text(found.s)
    new = helper.make_attribute("default_int64", number)
    (node.attribute.add() if found is None else found).CopyFrom(new)
    return text


def _attribute(node: onnx.NodeProto, name: str) -> Any:
    return next((a for a in node.attribute if a.name == name), None)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
