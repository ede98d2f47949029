"""Which nodes run in one kernel.

Nodes are visited from the outputs back. A node joins the group of its consumers if all of them are
in one group and their recipes can work together; no other path can then lead from it into the
group, so groups never wait for each other in a circle.

The kernels of a model are found once, before its layouts are chosen, and each of them is priced.
What the choice adds, conversions above all, joins these kernels afterwards by the same rules
(`given`); what is given is neither split nor joined with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Final

from tilewright.graph.groups import Group, GroupKind, is_constant, is_view
from tilewright.graph.ir import Graph, Node, Shape, Value
from tilewright.graph.ops import Expand, Gather, Reduce, Remap
from tilewright.graph.ops.op import Role
from tilewright.graph.sizes import count, fixed, same_shape

__all__ = ["MAX_INPUTS", "MAX_NODES", "group_nodes"]

MAX_NODES: Final = 40
MAX_INPUTS: Final = 16


def group_nodes(graph: Graph, given: Mapping[Value, int] | None = None) -> list[Group]:
    """Groups in an order in which they can run; views and weights belong to none.

    `given` numbers the groups that are known already, by the values that their nodes compute.
    """
    return _Grouping(graph, given or {}).run()


class _Grouping:
    """Groups so far; the nodes of each are in reverse until all are known."""

    def __init__(self, graph: Graph, given: Mapping[Value, int]) -> None:
        self.graph, self.outputs = graph, set(graph.outputs)
        self.consumers, self.producers = graph.consumers(), graph.producers()
        self.group_of: dict[int, Group] = {}
        self.groups: list[Group] = []
        self.number_of = {n: given[n.outputs[0]] for n in graph.nodes if n.outputs[0] in given}
        self.given: dict[int, list[Node]] = {}
        self.settled: set[int] = set()

    def run(self) -> list[Group]:
        kernels = [n for n in reversed(self.graph.nodes) if not self._runs_nowhere(n)]
        for node in kernels:
            if node in self.number_of:
                self.given.setdefault(self.number_of[node], []).append(node)
        for node in kernels:
            if id(node) not in self.group_of:
                self._place(self.given[self.number_of[node]] if node in self.number_of else [node])
        place = {id(node): k for k, node in enumerate(self.graph.nodes)}
        for group in self.groups:
            group.nodes.sort(key=lambda node: place[id(node)])
        # By the place of the last node: everything a group reads is computed before that.
        return sorted(self.groups, key=lambda g: place[id(g.nodes[-1])])

    def _runs_nowhere(self, node: Node) -> bool:
        return is_view(node) or is_constant(node, self.graph)

    def _place(self, nodes: Sequence[Node]) -> None:
        """Put nodes that stay together (the last one first) where they belong."""
        group = self._home(nodes)
        if group is None:
            kind = _KINDS.get(nodes[0].op.role, GroupKind.ALONE)
            about = nodes[0].outputs[0].shape, self.producers, self.consumers
            group = Group(kind, [], 0, (), *about)
            self.groups.append(group)
        for node in nodes:
            _enter(group, node)
            self.group_of[id(node)] = group
        if nodes[0] in self.number_of:
            self.settled.add(id(group))

    def _home(self, nodes: Sequence[Node]) -> Group | None:
        """The group that nodes can join, each of them in its turn."""
        last = nodes[0]
        if len(last.outputs) != 1 or last.output in self.outputs:
            return None
        readers = self.consumers.get(last.output, [])
        found = {id(g): g for r in readers if (g := self.group_of.get(id(r))) is not None}
        if len(found) != 1 or any(id(r) not in self.group_of for r in readers):
            return None
        (group,) = found.values()
        if last in self.number_of and id(group) in self.settled:
            return None
        if len(group.nodes) + len(nodes) > MAX_NODES or _inputs_of(group, nodes) > MAX_INPUTS:
            return None
        trial = copy(group)
        trial.nodes = list(group.nodes)
        for node in nodes:
            if not _may_join(node, trial, self.consumers.get(node.outputs[0], [])):
                return None
            _enter(trial, node)
        return group


_KINDS: Final = {
    Role.MAP: GroupKind.MAP,
    Role.MOVE: GroupKind.MAP,
    Role.REDUCE: GroupKind.ROWS,
    Role.ANCHOR: GroupKind.ANCHOR,
}


def _inputs_of(group: Group, nodes: Sequence[Node]) -> int:
    every = (*group.nodes, *nodes)
    made = {v for n in every for v in n.outputs}
    return len({v for n in every for v in n.inputs} - made)


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
            if group.begins_with(node, Role.MOVE) and not group.is_epilogue(node):
                return False  # what is moved is not written first if it is computed with elsewhere
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
