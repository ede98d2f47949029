"""Models that end with texts or maps, cut off before these: what is left can be compiled.

Models of scikit-learn do. Labels become numbers and scores a matrix; what makes texts and maps of
them again is told beside the model, for whoever runs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.errors import ModelError
from tilewright.frontend.onnx.check import graphs_of
from tilewright.frontend.onnx.ml_scores import DOMAIN
from tilewright.frontend.onnx.tensors import M002
from tilewright.graph.ir import Graph
from tilewright.graph.sizes import fixed
from tilewright.shown import shown

__all__ = ["Told", "require_fit", "split_endings"]

LABELS: Final = {
    "TreeEnsembleClassifier": "classlabels_int64s",
    "LinearClassifier": "classlabels_ints",
    "SVMClassifier": "classlabels_ints",
}
"""Operators with labels, and how they are called if they are numbers."""
KEEPS: Final = frozenset({"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Cast"})
"""Operators that leave texts as they are."""

Key = int | str


class Told(NamedTuple):
    """What an output is: maps with these keys, or texts, which the model gives as their numbers."""

    keys: tuple[Key, ...]
    is_map: bool


def split_endings(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, Told]]:
    """The model with numbers instead of texts and maps, and what makes these of them, by output.

    The model itself if there is nothing to do.
    """
    if not any(node.domain == DOMAIN for node in model.graph.node):
        return model, {}
    own = type(model)()
    own.CopyFrom(model)
    is_less = _drop_unread(own.graph)
    rewriting = _Rewriting(own.graph)
    found = dict(rewriting.endings())
    is_less |= rewriting.drop_texts()
    return (own, found) if found or is_less else (model, {})


def require_fit(graph: Graph, endings: Mapping[str, Told]) -> None:
    """Refuse maps with another number of keys than there are scores (M002)."""
    for name, value in zip(graph.output_names, graph.outputs, strict=True):
        told = endings.get(name)
        width = fixed(value.shape[-1]) if value.shape else 1
        if told is not None and told.is_map and width not in (None, len(told.keys)):
            facts = {
                "place": f"the map `{shown(name)}`",
                "problem": f"it has {len(told.keys)} keys, and there are {width} scores",
            }
            raise ModelError(M002, facts, hint="export the model again")


class _Rewriting:
    """Changes a graph in place."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.makers = {name: node for node in graph.node for name in node.output if name}
        texts = (t for t in graph.initializer if t.data_type == TensorProto.STRING)
        self.tables = {tensor.name: tensor for tensor in texts}
        self.readers = Counter(name for node in graph.node for name in _read(node))
        self.readers.update(o.name for o in graph.output)

    def endings(self) -> Iterator[tuple[str, Told]]:
        """Those of all outputs that have one."""
        for output in self.graph.output:
            maker = self.makers.get(output.name)
            if maker is None:
                continue
            if (maker.domain, maker.op_type) == (DOMAIN, "ZipMap"):
                kind, ending = TensorProto.FLOAT, _zipped(maker)
            else:
                texts = self._texts(output.name)
                kind, ending = TensorProto.INT64, Told(texts, is_map=False) if texts else None
            if ending is not None:
                output.CopyFrom(helper.make_tensor_value_info(output.name, kind, None))
                yield output.name, ending

    def drop_texts(self) -> bool:
        """Labels that nobody reads become numbers, and such tables go; whether there were some."""
        given = {info.name for info in self.graph.input}
        unread = [n for n in self.tables if not self.readers[n] and n not in given]
        for name in unread:
            self.graph.initializer.remove(self.tables[name])
        found = bool(unread)
        for node in self.graph.node:
            has_labels = node.domain == DOMAIN and node.op_type in LABELS and bool(node.output)
            if has_labels and not self.readers[node.output[0]]:
                found |= bool(_renamed(node, "classlabels_strings", LABELS[node.op_type]))
        return found

    def _texts(self, name: str) -> tuple[str, ...]:
        """The texts that a value has, which become their numbers; empty if they are not known."""
        path: list[onnx.NodeProto] = []
        while True:
            node = self.makers.get(name)
            if node is None or self.readers[name] != 1:
                return ()
            if node.domain not in ("", "ai.onnx") or node.op_type not in KEEPS:
                break
            if not node.input:
                return ()
            path.append(node)
            name = node.input[0]
        texts = self._numbered(node, name)
        for step in path if texts else ():
            if step.op_type == "Cast":
                to = _attribute(step, "to")
                if to is None or to.i != TensorProto.STRING:
                    return ()  # texts that become numbers: nothing of this concerns them
                to.i = TensorProto.INT64
        return texts

    def _numbered(self, node: onnx.NodeProto, name: str) -> tuple[str, ...]:
        """Let the source of texts give their numbers instead."""
        if node.domain != DOMAIN or node.output[0] != name:
            return ()
        if node.op_type in LABELS:
            texts = _renamed(node, "classlabels_strings", LABELS[node.op_type])
            return texts * 2 if len(texts) == 1 else texts  # a single class may be 0 or 1
        if node.op_type == "LabelEncoder" and _attribute(node, "keys_int64s") is not None:
            texts = _renamed(node, "values_strings", "values_int64s")
            return (*texts, _with_default(node, len(texts))) if texts else ()
        if node.op_type == "ArrayFeatureExtractor":
            return self._table(node)
        return ()

    def _table(self, node: onnx.NodeProto) -> tuple[str, ...]:
        """Texts that are chosen from a constant."""
        tensor = self.tables.get(node.input[0]) if node.input else None
        if tensor is None:
            return ()
        texts = numpy_helper.to_array(tensor)
        numbers = np.arange(texts.size).reshape(texts.shape)
        self.readers[tensor.name] -= 1  # others may want the texts
        node.input[0] = f"numbers of {node.output[0]}"
        self.graph.initializer.append(numpy_helper.from_array(numbers, node.input[0]))
        return tuple(_text(v) for v in texts.ravel())


def _drop_unread(graph: onnx.GraphProto) -> bool:
    """Drop nodes of this domain, and those that keep texts, whose results nobody reads.

    Whether there were some. Classifiers of classifiers have the labels of all of them inside.
    """
    wanted = {o.name for o in graph.output}
    kept: list[onnx.NodeProto] = []
    for node in reversed(graph.node):
        may_go = node.domain == DOMAIN or (not node.domain and node.op_type in KEEPS)
        if may_go and wanted.isdisjoint(node.output):
            continue
        wanted.update(_read(node))
        kept.append(node)
    if len(kept) == len(graph.node):
        return False
    nodes = [type(node).FromString(node.SerializeToString()) for node in reversed(kept)]
    del graph.node[:]
    graph.node.extend(nodes)
    return True


def _read(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node reads, those inside of its graphs included."""
    yield from (name for name in node.input if name)
    for _, graph in graphs_of(node):
        yield from (name for inner in graph.node for name in _read(inner))
        yield from (o.name for o in graph.output)


def _zipped(node: onnx.NodeProto) -> Told | None:
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
    return Told(tuple(keys), is_map=True)


def _renamed(node: onnx.NodeProto, texts: str, numbers: str) -> tuple[str, ...]:
    """An attribute of texts becomes one of their numbers."""
    found = _attribute(node, texts)
    if found is None or not found.strings:
        return ()
    names = tuple(_text(v) for v in found.strings)
    found.CopyFrom(helper.make_attribute(numbers, list(range(len(names)))))
    return names


def _with_default(node: onnx.NodeProto, number: int) -> str:
    """A text for what is not known becomes the last number."""
    found = _attribute(node, "default_string")
    text = "_Unused" if found is None else _text(found.s)
    new = helper.make_attribute("default_int64", number)
    (node.attribute.add() if found is None else found).CopyFrom(new)
    return text


def _attribute(node: onnx.NodeProto, name: str) -> Any:
    return next((a for a in node.attribute if a.name == name), None)


def _text(value: Any) -> str:
    """What a label says; bytes that are no text stand as such."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
