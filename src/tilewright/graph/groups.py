"""Groups: nodes that run in one kernel (`grouping.py` finds them), and nodes that run in none.

anchor  a contraction or window, with maps of its result (its epilogue)
rows    reductions over the trailing dimensions and maps around them: softmax, norms
map     elementwise nodes and movements
alone   anything else
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.graph.ir import Graph, Node, Shape, Value
from tilewright.graph.ops import Reduce, Reshape, Transpose
from tilewright.graph.ops.op import Role
from tilewright.graph.sizes import dims_equal, same_shape
from tilewright.tensor import ir as tir
from tilewright.tensor.stored import is_bijective, logical_index

__all__ = ["Group", "GroupKind", "is_constant", "is_view"]


class GroupKind(enum.Enum):
    """What holds a group together."""

    MAP = "map"
    ROWS = "rows"
    ANCHOR = "anchor"
    ALONE = "alone"


@dataclass
class Group:
    """Nodes of one kernel in order; `shape` is that of what leaves it.

    Members of rows share `lead` leading dimensions; the others are `row`, or ones.
    """

    kind: GroupKind
    nodes: list[Node] = field(default_factory=list)
    lead: int = 0
    row: Shape = ()
    shape: Shape = ()
    producers: dict[Value, Node] = field(default_factory=dict, repr=False)
    consumers: dict[Value, list[Node]] = field(default_factory=dict, repr=False)

    @property
    def anchor(self) -> Node | None:
        """The node with the heavy work, or the first reduction."""
        roles = (Role.ANCHOR, Role.REDUCE, Role.ALONE)
        return next((n for role in roles for n in self.nodes if n.op.role is role), None)

    def reduction_behind(self, node: Node) -> Node | None:
        """The reduction that a chain of maps of its own shape begins with; looks once at each."""
        seen: set[Value] = set()
        waiting = list(reversed(node.inputs))
        while waiting:
            value = waiting.pop()
            producer = self.producers.get(value)
            if producer is None or value in seen:
                continue
            seen.add(value)
            if not same_shape(value.shape, node.output.shape):
                continue
            if isinstance(producer.op, Reduce):
                return producer
            if producer.op.role is Role.MAP:
                waiting += reversed(producer.inputs)
        return None

    def is_epilogue(self, node: Node) -> bool:
        """Whether a chain of maps that ends with this one is all that reads an anchor's result."""
        return self.begins_with(node, Role.ANCHOR)

    def begins_with(self, node: Node, role: Role) -> bool:
        """Whether a chain of maps that ends with this one is all that reads such a result."""
        for value in dict.fromkeys(node.inputs):
            producer = self.producers.get(value)
            if producer is None or not same_shape(value.shape, node.output.shape):
                continue
            if len(self.consumers.get(value, ())) != 1:
                continue
            if producer.op.role is role:
                return True
            if producer.op.role is Role.MAP and self.begins_with(producer, role):
                return True
        return False

    def inputs(self) -> tuple[Value, ...]:
        """What the group reads, in order of first use."""
        made = {value for node in self.nodes for value in node.outputs}
        read = (value for node in self.nodes for value in node.inputs)
        return tuple(dict.fromkeys(value for value in read if value not in made))

    def outputs(self, graph: Graph, consumers: dict[Value, list[Node]]) -> tuple[Value, ...]:
        """What others read."""
        own = set(map(id, self.nodes))
        return tuple(
            value
            for node in self.nodes
            for value in node.outputs
            if value in graph.outputs or any(id(c) not in own for c in consumers.get(value, []))
        )


def is_constant(node: Node, graph: Graph) -> bool:
    """Whether a node makes weights of constants, which is done before a model runs."""
    return node.op.role is Role.WEIGHTS and all(v in graph.constants for v in node.inputs)


def is_view(node: Node) -> bool:
    """Whether a node does nothing: the same memory has another shape."""
    stored = any(value.layout for value in (*node.inputs, *node.outputs))
    if isinstance(node.op, Transpose):
        return stored and _is_stored_alike(node.inputs[0], node.output, node.op.order)
    if isinstance(node.op, Reshape) and stored:
        return _is_stored_alike(node.inputs[0], node.output)
    return node.op.role is Role.VIEW and not stored


def _is_stored_alike(x: Value, y: Value, order: Sequence[int] | None = None) -> bool:
    """Whether the elements of two values lie alike: in their order, or with dimensions moved."""
    if not (is_bijective(x.layout) and is_bijective(y.layout)):
        return False
    if not same_shape(x.stored_shape, y.stored_shape):
        return False
    places = [tir.Var(f"d{d}") for d in range(len(x.stored_shape))]
    at, there = (logical_index(v.shape, v.layout, places)[0] for v in (x, y))
    if order is not None:
        return all(dims_equal(at[d], i) for d, i in zip(order, there, strict=True))
    return dims_equal(_number(x.shape, at), _number(y.shape, there))


def _number(shape: Shape, at: Sequence[tir.Expr]) -> tir.Expr:
    """The number of an element, counted along the last dimension first."""
    found: tir.Expr = tir.Const(0)
    for size, index in zip(shape, at, strict=True):
        found = found * size + index
    return found
