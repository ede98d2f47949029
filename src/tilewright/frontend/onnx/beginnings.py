"""Models that begin with texts, cut behind these: what follows can be compiled.

Encoders of categories and counters of words stand in front of many models of scikit-learn. What
reads texts that a caller gives, and what that needs, is a model of its own, which runs by
reference; the rest has its results as inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import onnx
from onnx import TensorProto, helper, shape_inference

from tilewright.frontend.onnx.check import domain_of, graphs_of, opsets_of
from tilewright.frontend.onnx.settled import defaulted_inputs, element_type, open_inputs
from tilewright.unsupported import Unsupported

__all__ = ["Halves", "split_beginning"]

REASON = "it is of texts, or what these need"


@dataclass(frozen=True)
class Halves:
    """Two models, of which the `front` gives what the `rest` takes beside its own inputs."""

    front: onnx.ModelProto
    rest: onnx.ModelProto

    @property
    def nodes(self) -> tuple[Unsupported, ...]:
        """Those of the front, which run by reference."""
        opsets = opsets_of(self.front.opset_import)
        return tuple(
            Unsupported(
                node.name or next(iter(node.output), ""),
                node.op_type,
                domain_of(node),
                opsets.get(domain_of(node), 1),
                (),
                REASON,
            )
            for node in self.front.graph.node
        )


def split_beginning(model: onnx.ModelProto) -> Halves | None:
    """The halves of a model; None if it does not begin with texts, or ends with these."""
    texts = {info.name for info in open_inputs(model) if _is_text(info.type)}
    if not texts or defaulted_inputs(model) or model.graph.sparse_initializer:
        return None
    cut = _Cut(model.graph, _types(model))
    if not cut.follow(texts) or not cut.follow_back():
        return None
    crossing = cut.crossing()
    if crossing is None:
        return None
    return Halves(_front(model, cut, crossing), _rest(model, cut, crossing))


@dataclass
class _Cut:
    """Which nodes of a graph are in front, by their places."""

    graph: onnx.GraphProto
    types: Mapping[str, onnx.TypeProto]
    front: set[int] = field(default_factory=set)

    def follow(self, texts: Collection[str]) -> bool:
        """Put all that reads texts of callers in front; False if that cannot be told."""
        derived = set(texts)
        for place, node in enumerate(self.graph.node):
            if derived.isdisjoint(node.input):
                continue
            if any(graphs_of(node)) or any(name not in self.types for name in node.output if name):
                return False
            self.front.add(place)
            derived.update(name for name in node.output if name and _is_text(self.types[name]))
        return derived.isdisjoint(o.name for o in self.graph.output)

    def follow_back(self) -> bool:
        """Put what these nodes need in front, too."""
        needed: set[str] = set()
        for place, node in reversed(list(enumerate(self.graph.node))):
            if place not in self.front and needed.isdisjoint(node.output):
                continue
            if any(graphs_of(node)):
                return False
            self.front.add(place)
            needed.update(node.input)
        return True

    def crossing(self) -> list[onnx.ValueInfoProto] | None:
        """What the rest reads of the front; None if that is not all tensors of known rank."""
        if len(self.front) == len(self.graph.node):
            return None
        wanted = self.read(in_front=False) | {o.name for o in self.graph.output}
        names = [n for node in self.nodes(in_front=True) for n in node.output if n in wanted]
        types = [self.types.get(name) for name in names]
        for kind in types:
            if kind is None or element_type(kind) is None or not kind.tensor_type.HasField("shape"):
                return None
        return [helper.make_value_info(n, t) for n, t in zip(names, types, strict=True)]

    def nodes(self, *, in_front: bool) -> list[onnx.NodeProto]:
        return [n for k, n in enumerate(self.graph.node) if (k in self.front) == in_front]

    def read(self, *, in_front: bool) -> set[str]:
        """The names that one of the halves reads, those inside of graphs included."""
        return {name for node in self.nodes(in_front=in_front) for name in _read(node)}


def _read(node: onnx.NodeProto) -> set[str]:
    found = set(node.input)
    for _, graph in graphs_of(node):
        found.update(o.name for o in graph.output)
        found.update(name for inner in graph.node for name in _read(inner))
    return found


def _front(
    model: onnx.ModelProto, cut: _Cut, crossing: list[onnx.ValueInfoProto]
) -> onnx.ModelProto:
    read = cut.read(in_front=True)
    inputs = [info for info in open_inputs(model) if info.name in read]
    return _half(model, cut.nodes(in_front=True), inputs, crossing, read)


def _rest(
    model: onnx.ModelProto, cut: _Cut, crossing: list[onnx.ValueInfoProto]
) -> onnx.ModelProto:
    outputs = list(model.graph.output)
    read = cut.read(in_front=False) | {o.name for o in outputs}
    elsewhere = cut.read(in_front=True) - read
    own = [info for info in open_inputs(model) if info.name not in elsewhere]
    nodes = cut.nodes(in_front=False)
    return _half(model, nodes, [*own, *crossing], outputs, read)


def _half(
    model: onnx.ModelProto,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    read: Collection[str],
) -> onnx.ModelProto:
    """A model of some of the nodes, with all that is said about the whole."""
    weights = [tensor for tensor in model.graph.initializer if tensor.name in read]
    own = onnx.ModelProto()
    own.CopyFrom(model)
    own.graph.CopyFrom(helper.make_graph(nodes, model.graph.name or "model", inputs, outputs))
    own.graph.initializer.extend(weights)
    return own


def _types(model: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    """The types of values by ONNX's inference, which does not know of tokens."""
    own = onnx.ModelProto()
    own.CopyFrom(model)
    found = _inferred(own)
    tokens = [
        n for n in model.graph.node if (n.domain, n.op_type) == ("com.microsoft", "Tokenizer")
    ]
    for node in tokens:
        kind = found.get(node.input[0])
        if kind is not None and kind.tensor_type.HasField("shape") and node.output:
            dims = [None] * (len(kind.tensor_type.shape.dim) + 1)
            info = helper.make_tensor_value_info(node.output[0], TensorProto.STRING, dims)
            own.graph.value_info.append(info)
    return _inferred(own) if tokens else found


def _inferred(model: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    try:
        graph = shape_inference.infer_shapes(model).graph
    except Exception:  # noqa: BLE001  (what it cannot infer is not known, whatever it raises)
        graph = model.graph
    infos = (*graph.value_info, *graph.output, *graph.input)
    return {info.name: info.type for info in infos if info.type.WhichOneof("value")}


def _is_text(kind: onnx.TypeProto) -> bool:
    return bool(kind.tensor_type.elem_type == TensorProto.STRING)
