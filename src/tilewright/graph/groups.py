"""Which nodes run in one kernel.

Nodes are visited from the outputs back. A node joins the group of its consumers if all of them are
in one group and their recipes can work together; no other path can then lead from it into the
group, so groups never wait for each other in a circle.

    anchor  a contraction or window, with maps of its result (its epilogue)
    rows    reductions over the trailing dimensions and maps around them: softmax, norms
    map     elementwise nodes and movements
    alone   anything else
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tilewright.graph.ir import Graph, Node, Shape, Value
from tilewright.graph.ops import Expand, Gather, Reduce, Remap, Reshape, Transpose
from tilewright.graph.ops.op import Role
from tilewright.graph.sizes import count, dims_equal, fixed, same_shape
from tilewright.tensor import ir as tir
from tilewright.tensor.stored import is_bijective, logical_index

__all__ = ["Group", "GroupKind", "group_nodes", "is_constant", "is_view"]

MAX_NODES: Final = 40
MAX_INPUTS: Final = 16


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
        for value in dict.fromkeys(node.inputs):
            producer = self.producers.get(value)
            if producer is None or not same_shape(value.shape, node.output.shape):
                continue
            if len(self.consumers.get(value, ())) != 1:
                continue
            if producer.op.role is Role.ANCHOR:
                return True
            if producer.op.role is Role.MAP and self.is_epilogue(producer):
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


def group_nodes(graph: Graph) -> list[Group]:
    """Groups in an order in which they can run; views and weights belong to none."""
    consumers = graph.consumers()
    outputs = set(graph.outputs)
    producers = graph.producers()
    group_of: dict[int, Group] = {}
    groups: list[Group] = []
    for node in reversed(graph.nodes):
        if is_view(node) or is_constant(node, graph):
            continue
        group = _home(node, consumers, outputs, group_of)
        if group is None:
            kind = _KINDS.get(node.op.role, GroupKind.ALONE)
            group = Group(
                kind, shape=node.outputs[0].shape, producers=producers, consumers=consumers
            )
            groups.append(group)
        _enter(group, node)
        group_of[id(node)] = group
    for group in groups:
        group.nodes.reverse()
    return _ordered(groups[::-1], graph)


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


_KINDS: Final = {
    Role.MAP: GroupKind.MAP,
    Role.MOVE: GroupKind.MAP,
    Role.REDUCE: GroupKind.ROWS,
    Role.ANCHOR: GroupKind.ANCHOR,
}


def _home(
    node: Node,
    consumers: dict[Value, list[Node]],
    outputs: set[Value],
    group_of: dict[int, Group],
) -> Group | None:
    """The group that a node can join."""
    if len(node.outputs) != 1 or node.output in outputs:
        return None
    readers = consumers.get(node.output, [])
    found = {id(g): g for r in readers if (g := group_of.get(id(r))) is not None}
    if len(found) != 1 or any(id(r) not in group_of for r in readers):
        return None
    (group,) = found.values()
    if len(group.nodes) >= MAX_NODES or _inputs_with(group, node) > MAX_INPUTS:
        return None
    return group if _may_join(node, group, readers) else None


def _inputs_with(group: Group, node: Node) -> int:
    made = {v for n in (*group.nodes, node) for v in n.outputs}
    return len({v for n in (*group.nodes, node) for v in n.inputs} - made)


def _may_join(node: Node, group: Group, readers: Sequence[Node]) -> bool:
    if group.kind is GroupKind.ALONE:
        return False
    match node.op.role:
        case Role.MAP:
            return _map_may_join(node, group, readers)
        case Role.MOVE:
            return group.kind is GroupKind.MAP and _read_once_each(node, readers)
        case Role.REDUCE:
            return _reduce_may_join(node, group)
        case Role.ANCHOR:
            return group.kind is GroupKind.MAP and all(
                n.op.role is Role.MAP and same_shape(n.output.shape, node.output.shape)
                for n in group.nodes
            )
    return False


def _map_may_join(node: Node, group: Group, readers: Sequence[Node]) -> bool:
    match group.kind:
        case GroupKind.ROWS:
            return _fits_rows(node.output.shape, group)
        case GroupKind.ANCHOR:
            shape = node.output.shape
            return same_shape(shape, group.shape) and all(r.op.role is Role.MAP for r in readers)
    if any(n.op.role is Role.MOVE for n in group.nodes) and group.is_epilogue(node):
        return False  # it costs nothing in the registers of its anchor
    return _read_once_each(node, readers) or _is_row_statistic(node, group)


def _is_row_statistic(node: Node, group: Group) -> bool:
    """Whether a map continues a reduction, one number for each row of a group of maps.

    The reduction is visited later and joins then; the group must fit it.
    """
    source = group.reduction_behind(node)
    if source is None or any(n.op.role is not Role.MAP for n in group.nodes):
        return False
    lead = _lead_of(source)
    if lead is None or len(group.shape) != source.output.rank:
        return False
    probe = Group(GroupKind.ROWS, group.nodes, lead, group.shape[lead:], group.shape)
    rows = same_shape(group.shape[lead:], source.inputs[0].shape[lead:])
    return rows and all(_fits_rows(n.output.shape, probe) for n in (*group.nodes, node))


def _lead_of(node: Node) -> int | None:
    """How many dimensions a reduction over trailing dimensions leaves."""
    op, rank = node.op, node.inputs[0].rank
    return rank - len(op.axes) if isinstance(op, Reduce) and _is_trailing(op, rank) else None


def _read_once_each(node: Node, readers: Iterable[Node]) -> bool:
    """Whether no reader computes an element of the node's result more than once."""
    size = count(node.output.shape)
    for reader in readers:
        if isinstance(reader.op, Expand | Gather | Remap) and count(reader.output.shape) > size:
            return False
        if reader.op.role is Role.MAP and not same_shape(node.output.shape, reader.output.shape):
            return False
    return True


def _fits_rows(shape: Shape, group: Group) -> bool:
    rank = group.lead + len(group.row)
    if len(shape) != rank or not same_shape(shape[: group.lead], _leading(group)):
        return False
    tail = shape[group.lead :]
    return same_shape(tail, group.row) or all(fixed(d) == 1 for d in tail)


def _leading(group: Group) -> Shape:
    return group.shape[: group.lead]


def _is_trailing(op: Reduce, rank: int) -> bool:
    return op.axes == tuple(range(rank - len(op.axes), rank))


def _reduce_may_join(node: Node, group: Group) -> bool:
    """A reduction over trailing dimensions joins its rows; others only maps of their result."""
    op, source = node.op, node.inputs[0]
    assert isinstance(op, Reduce)
    if group.kind is GroupKind.ANCHOR:
        return False
    if not _is_trailing(op, source.rank):
        same = all(
            n.op.role is Role.MAP and same_shape(n.output.shape, node.output.shape)
            for n in group.nodes
        )
        return group.kind is GroupKind.MAP and same
    lead = source.rank - len(op.axes)
    probe = Group(GroupKind.ROWS, group.nodes, lead, source.shape[lead:], group.shape)
    if group.kind is GroupKind.ROWS and (
        group.lead != lead or not same_shape(group.row, probe.row)
    ):
        return False
    if not same_shape(node.output.shape[:lead], group.shape[:lead]):
        return False
    return all(
        n.op.role is not Role.MOVE and _fits_rows(n.output.shape, probe) for n in group.nodes
    )


def _enter(group: Group, node: Node) -> None:
    """Add a node in front; nodes are kept in reverse until all are known."""
    group.nodes.append(node)
    op = node.op
    if isinstance(op, Reduce) and group.kind in (GroupKind.MAP, GroupKind.ROWS):
        source = node.inputs[0]
        if _is_trailing(op, source.rank):
            group.kind = GroupKind.ROWS
            group.lead = source.rank - len(op.axes)
            group.row = source.shape[group.lead :]
        else:
            group.kind = GroupKind.ANCHOR
    elif group.kind is GroupKind.MAP and not same_shape(node.outputs[0].shape, group.shape):
        behind = group.reduction_behind(node)
        lead = None if behind is None else _lead_of(behind)
        if lead is not None and node.op.role is Role.MAP:
            group.kind, group.lead, group.row = GroupKind.ROWS, lead, group.shape[lead:]
    elif op.role is Role.ANCHOR:
        group.kind = GroupKind.ANCHOR


def _ordered(groups: list[Group], graph: Graph) -> list[Group]:
    """By the place of the last node: everything a group reads is computed before that."""
    place = {id(node): k for k, node in enumerate(graph.nodes)}
    return sorted(groups, key=lambda g: place[id(g.nodes[-1])])
