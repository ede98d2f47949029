"""Nodes that run on the reference implementation together, because of what lies between them.

A graph holds tensors of known rank and element type. What else a node gives (a tensor of unknown
rank, strings, a sequence of any length) is an `Opaque` item: it holds the segment that computes it,
which is nodes and the tensors that these read. Whatever reads it joins the segment; where there are
tensors of known type again, these are results of one `Host` node, and native code goes on. A
segment whose values are read in several places is computed for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeVar

import onnx

from tilewright.frontend.onnx.extent import graphs_in
from tilewright.graph import Value
from tilewright.unsupported import Unsupported

__all__ = ["Collected", "Opaque", "Place", "Segment", "following", "fresh_name", "renamed"]

Place = tuple[str, str]
"""The graph in which a node stands, and its first output: no other node there has it."""

_numbers = count()


def fresh_name() -> str:
    """A name of a value that no other value of a segment has."""
    return f"tw_{next(_numbers)}"


@dataclass(frozen=True, eq=False)
class Segment:
    """A node behind other segments, or what these read: `tensors` of the graph, and `weights`.

    All names are fresh, so that segments can be joined, if their nodes have the same `opsets`.
    `notes` say which nodes of the model these are, and why they run so. A segment refers to its
    parts: long chains of nodes, each a part of the next one, take no more room than their nodes.
    """

    parts: tuple[Segment, ...] = ()
    node: onnx.NodeProto | None = None
    number: int = -1
    tensors: Mapping[str, Value] = field(default_factory=dict)
    weights: Mapping[str, onnx.TensorProto] = field(default_factory=dict)
    notes: Mapping[Place, Unsupported] = field(default_factory=dict)
    opsets: Mapping[str, int] = field(default_factory=dict)

    def collected(self) -> Collected:
        """All that there is in the segment and its parts, each once."""
        seen: dict[int, Segment] = {}
        waiting = [self]
        while waiting:
            part = waiting.pop()
            if id(part) not in seen:
                seen[id(part)] = part
                waiting += part.parts
        ordered = sorted(seen.values(), key=lambda part: part.number)
        names: dict[Value, str] = {}
        read = [(name, v) for part in ordered for name, v in part.tensors.items()]
        return Collected(
            [part.node for part in ordered if part.node is not None],
            {name: names.setdefault(value, name) for name, value in read},
            {name: value for value, name in names.items()},
            {name: t for part in ordered for name, t in part.weights.items()},
            {place: node for part in ordered for place, node in part.notes.items()},
            self.opsets,
        )

    def seen_through(self, outside: Callable[[Value], Value]) -> Segment:
        """The same inside of another graph, into which `outside` brings tensors."""
        whole = self.collected()
        tensors = {name: outside(whole.tensors[own]) for name, own in whole.same.items()}
        read = Segment(tensors=tensors, weights=whole.weights, notes=whole.notes)
        for node in whole.nodes:
            read = following(node, (read,), whole.opsets)
        return read


def following(
    node: onnx.NodeProto,
    parts: tuple[Segment, ...],
    opsets: Mapping[str, int] | None = None,
    notes: Mapping[Place, Unsupported] | None = None,
) -> Segment:
    """A node behind the segments that it reads."""
    known = opsets or next((part.opsets for part in parts if part.opsets), {})
    return Segment(parts, node, next(_numbers), notes=notes or {}, opsets=known)


@dataclass(frozen=True, eq=False)
class Collected:
    """Nodes in the order in which they run, and what they read.

    Tensors are there once: `same` says which name stands for each that nodes read.
    """

    nodes: Sequence[onnx.NodeProto]
    same: Mapping[str, str] = field(default_factory=dict)
    tensors: Mapping[str, Value] = field(default_factory=dict)
    weights: Mapping[str, onnx.TensorProto] = field(default_factory=dict)
    notes: Mapping[Place, Unsupported] = field(default_factory=dict)
    opsets: Mapping[str, int] = field(default_factory=dict)

    def model(
        self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]
    ) -> onnx.ModelProto:
        """A model of its own, with names that depend on nothing but its nodes."""
        made = [name for proto in self.nodes for name in proto.output if name]
        order = dict.fromkeys((*(info.name for info in inputs), *self.weights, *made))
        names = {name: f"v{k}" for k, name in enumerate(order)}
        names |= {name: names[own] for name, own in self.same.items()}
        graph = onnx.helper.make_graph(
            [renamed(proto, names) for proto in self.nodes],
            "segment",
            [_named(info, names) for info in inputs],
            [_named(info, names) for info in outputs],
            [_named(tensor, names) for tensor in self.weights.values()],
        )
        imports = [onnx.helper.make_opsetid(d, v) for d, v in self.opsets.items()]
        return onnx.helper.make_model(graph, opset_imports=imports)


Named = TypeVar("Named", onnx.ValueInfoProto, onnx.TensorProto)


def _named(what: Named, names: Mapping[str, str]) -> Named:
    own = type(what)()
    own.CopyFrom(what)
    own.name = names[what.name]
    return own


@dataclass(frozen=True, eq=False)
class Opaque:
    """A value with a name in its segment, and the type as far as ONNX infers it."""

    name: str
    kind: onnx.TypeProto
    segment: Segment

    def seen_through(self, outside: Callable[[Value], Value]) -> Opaque:
        """The same inside of another graph."""
        return replace(self, segment=self.segment.seen_through(outside))


def renamed(proto: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """A copy of a node with other names of what it reads, also in graphs inside of it, and gives.

    Nothing inside has one of these names: ONNX forbids to hide a name of the outside.
    """
    made = onnx.NodeProto()
    made.CopyFrom(proto)
    _rename(made, names)
    return made


def _rename(proto: onnx.NodeProto, names: Mapping[str, str]) -> None:
    proto.input[:] = [names.get(name, name) for name in proto.input]
    proto.output[:] = [names.get(name, name) for name in proto.output]
    for graph in graphs_in(proto.attribute):
        for inner in graph.node:
            _rename(inner, names)
        for output in graph.output:
            output.name = names.get(output.name, output.name)
