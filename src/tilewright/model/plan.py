"""What a program does, step by step, before anything is compiled.

Groups of nodes are kernels; branches and loops are unfolded into steps with jumps, their graphs
being planned the same way. Values name memory here, and a step may write a value again: what a loop
carries is copied back at the end of each iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tilewright.graph.groups import Group, GroupKind, group_nodes, is_view
from tilewright.graph.ir import Array, Graph, Node, TensorType, Value
from tilewright.graph.ops import Concat, Map, Remap, argument, computed_as
from tilewright.graph.ops.by_size import BySize
from tilewright.graph.ops.compact import Compact
from tilewright.graph.ops.control import If, Loop
from tilewright.graph.ops.count import Count
from tilewright.graph.ops.host import Host
from tilewright.graph.ops.size_tensor import Sizes
from tilewright.graph.sizes import dims_equal, never_exceeds, product, same_shape, tidy, variables
from tilewright.model.cuts import cuts_of
from tilewright.model.empties import MAX_DOUBTS, Doubt, doubts_of, without_source
from tilewright.model.joins import joins_of
from tilewright.model.sizing import is_plain
from tilewright.model.steps import Assign, Branch, Enter, HostStep, KernelStep, Label, PlanStep
from tilewright.tensor import ir as tir

__all__ = ["Assign", "Branch", "Enter", "HostStep", "KernelStep", "Label", "Plan", "PlanStep"]
__all__ += ["can_plan", "plan_graph"]

MAX_ROWS: Final = 4096
"""Iterations that there is room for, of a loop that may end earlier and collects."""


@dataclass
class Plan:
    """Steps, and what they need to know: `segments[var]` says when a size is known.

    `nodes` are all nodes with the segment in which they run: those of a branch have one of their
    own where they assume something of sizes, so that nothing is asked of a branch not taken.
    `homes[value]` is the segment in which a value is made. `wholes` are found as they are asked
    for, when all is planned: of what is joined again and again, each is a part of the next.
    """

    steps: list[PlanStep] = field(default_factory=list)
    constants: dict[Value, Array] = field(default_factory=dict)
    roots: dict[Value, Value] = field(default_factory=dict)
    parts: dict[Value, tuple[Value, tir.Expr]] = field(default_factory=dict)
    segments: dict[tir.Var, int] = field(default_factory=dict)
    loops: list[tuple[Label, Label]] = field(default_factory=list)
    segment_count: int = 1
    nodes: list[tuple[Node, int]] = field(default_factory=list)
    homes: dict[Value, int] = field(default_factory=dict)
    wholes: dict[Value, tuple[Value, tir.Expr]] = field(default_factory=dict)
    here: int = 0

    def root(self, value: Value) -> Value:
        """The value whose memory a value uses."""
        while value in self.roots:
            value = self.roots[value]
        return value

    def whole(self, value: Value) -> tuple[Value, tir.Expr]:
        """The value that has memory of its own in which a value lies, and where in it, in bytes."""
        value = self.root(value)
        inside: list[Value] = []
        while value not in self.wholes and value in self.parts:
            inside.append(value)
            value = self.root(self.parts[value][0])
        found = self.wholes.get(value, (value, tir.as_index(0)))
        for part in reversed(inside):
            found = found[0], tidy(found[1] + self.parts[part][1])
            self.wholes[part] = found
        return found

    def new_segment(self, *sizes: tir.Var) -> int:
        """A segment in which more sizes are known."""
        number = self.segment_count
        self.segment_count += 1
        self.segments.update(dict.fromkeys(sizes, number))
        return number

    def segment(self, dims: Sequence[tir.Expr]) -> int:
        """When all of these dimensions are known."""
        return max((self.segments.get(v, 0) for v in variables(dims)), default=0)


def plan_graph(graph: Graph) -> Plan:
    """The plan of a whole model."""
    plan = Plan()
    for value in graph.inputs:
        for var in variables(value.shape):
            plan.segments[var] = 0
    _plan_into(plan, graph)
    return plan


def _plan_into(plan: Plan, graph: Graph) -> None:
    plan.constants.update(graph.constants)
    plan.nodes += [(node, plan.here) for node in graph.nodes]
    plan.homes.update((value, plan.here) for node in graph.nodes for value in node.outputs)
    consumers = graph.consumers()
    for node in graph.nodes:
        if is_view(node):
            plan.roots[node.output] = plan.root(node.inputs[0])
    joins = joins_of(graph, plan.root)
    for join in joins.values():
        plan.parts.update((part, (join.whole, begin)) for part, begin in join.places.items())
    told_late = {v for n, _ in plan.nodes if isinstance(n.op, Host) for v in n.outputs}
    cuts = cuts_of(graph, plan.root, plan.constants.keys() | told_late)
    for group in group_nodes(graph):
        (first, *others) = group.nodes
        match first.op:
            case Concat() if first in joins:
                for value, part in joins[first].copied:
                    _copy(plan, value, part, first.label)
            case Remap() if first in cuts and not others:
                cut = cuts[first]
                plan.parts[cut.part] = cut.source, cut.begin
                _copy(plan, cut.part, first.output, first.label)
            case Host():
                _plan_host(plan, first)
            case If():
                _plan_if(plan, first, first.op)
            case Loop():
                _plan_loop(plan, first, first.op)
            case _:
                if isinstance(first.op, Compact | Count):
                    size, number = first.op.size, first.inputs[-1]
                    plan.steps.append(Enter(plan.new_segment(size), ((size, number),)))
                left = group.outputs(graph, consumers) or tuple(group.nodes[-1].outputs)
                _plan_kernel(plan, group, left)


def _plan_kernel(plan: Plan, group: Group, left: tuple[Value, ...]) -> None:
    """One kernel, or one of several by the sizes of a run."""
    doubts = doubts_of(group)
    if len(doubts) <= MAX_DOUBTS:
        _plan_versions(plan, group, left, doubts)
        return
    for node in group.nodes:  # each of which has one doubt at most
        alone = replace(group, nodes=[node], shape=node.output.shape)
        _plan_versions(plan, alone, tuple(node.outputs), doubts_of(alone))


def _plan_versions(plan: Plan, group: Group, left: tuple[Value, ...], doubts: list[Doubt]) -> None:
    """A kernel for each combination of sources that have elements or none."""
    if not doubts:
        _plan_by_size(plan, group, left)
        return
    (dims, nodes), *others = doubts
    nothing, end = Label("nothing"), Label("end")
    plan.steps.append(Branch(nothing, tir.Const(1) <= product(dims)))
    _plan_versions(plan, group, left, others)
    plan.steps += [Branch(end), nothing]
    _plan_versions(plan, without_source(group, nodes, left), left, others)
    plan.steps.append(end)


def _plan_by_size(plan: Plan, group: Group, left: tuple[Value, ...]) -> None:
    """One kernel, or one of two by the number of places."""
    node = next((n for n in group.nodes if isinstance(n.op, BySize)), None)
    if node is None or not isinstance(node.op, BySize):
        plan.steps.append(KernelStep(group, left, plan.here))
        return
    large, small = (
        KernelStep(_with_node(group, node, version), left, plan.here)
        for version in node.op.versions(node)
    )
    otherwise, end = Label("small"), Label("end")
    plan.steps += [Branch(otherwise, node.op.is_large(node)), large, Branch(end)]
    plan.steps += [otherwise, small, end]


def _with_node(group: Group, old: Node, new: Node) -> Group:
    """The group with another node in the place of one."""
    return replace(group, nodes=[new if node is old else node for node in group.nodes])


def _plan_host(plan: Plan, node: Node) -> None:
    found = _defined(plan, node)
    plan.steps.append(HostStep(node, tuple(found), plan.here))
    if found:
        plan.steps.append(Enter(plan.new_segment(*(var for var, _, _ in found))))


def _defined(plan: Plan, node: Node) -> list[tuple[tir.Var, int, int]]:
    """Sizes that only the results of a node tell: (size, result, axis)."""
    found: dict[tir.Var, tuple[tir.Var, int, int]] = {}
    for k, value in enumerate(node.outputs):
        for axis, dim in enumerate(value.shape):
            if isinstance(dim, tir.Var) and dim not in plan.segments:
                found.setdefault(dim, (dim, k, axis))
    return list(found.values())


def _inline(plan: Plan, graph: Graph, given: Sequence[Value]) -> None:
    """Plan a graph whose inputs are the memory of given values."""
    for inside, outside in zip(graph.inputs, given, strict=True):
        if outside in plan.constants:
            plan.constants[inside] = plan.constants[outside]
        else:
            plan.roots[inside] = plan.root(outside)
    _plan_into(plan, graph)


def _copy(plan: Plan, source: Value, target: Value, label: str) -> None:
    """A kernel that copies."""
    kind = computed_as(source.dtype)
    node = Node(Map(argument(0, kind), 1, source.dtype), (source,), (target,), label)
    group = Group(GroupKind.MAP, [node], shape=source.shape)
    plan.homes.setdefault(target, plan.here)
    plan.steps.append(KernelStep(group, (target,), plan.here))


def _plan_if(plan: Plan, node: Node, op: If) -> None:
    otherwise, end = Label("else"), Label("end")
    unknown = [d for v in node.outputs for d in v.shape if _is_unknown(plan, d)]
    segment = plan.new_segment(*unknown) if unknown else 0  # type: ignore[arg-type]
    plan.steps.append(Branch(otherwise, node.inputs[0]))
    for graph, is_first in ((op.then, True), (op.otherwise, False)):
        if not is_first:
            plan.steps.append(otherwise)
        around = plan.here
        if _assumes(graph):
            plan.here = plan.new_segment()
            plan.steps.append(Enter(plan.here))
        _inline(plan, graph, node.inputs[1:])
        for result, source in zip(node.outputs, graph.outputs, strict=True):
            for dim, own in zip(result.shape, source.shape, strict=True):
                if dim in unknown and isinstance(dim, tir.Var):
                    plan.steps.append(Assign(dim, own))
        if unknown:
            plan.steps.append(Enter(segment))
        for result, source in zip(node.outputs, graph.outputs, strict=True):
            _copy(plan, source, result, node.label)
        plan.here = around
        if is_first:
            plan.steps.append(Branch(end))
    plan.steps.append(end)


def _assumes(graph: Graph) -> bool:
    """Whether nodes of a graph rely on sizes that a run tells, or have ones that may not exist."""
    if not all(is_plain(d) for n in graph.nodes for v in n.outputs for d in v.shape):
        return True
    for node in graph.nodes:
        types = [v.type for v in node.inputs], [v.type for v in node.outputs]
        if not all(dims_equal(a, b) for a, b in node.op.assumptions(*types)):
            return True
        if not all(never_exceeds(a, b, shape) for a, b, shape in node.op.limits(*types)):
            return True
    return False


def _is_unknown(plan: Plan, dim: tir.Expr) -> bool:
    return isinstance(dim, tir.Var) and dim not in plan.segments


def _plan_loop(plan: Plan, node: Node, op: Loop) -> None:
    limit, condition, *given = node.inputs
    carried, captured = given[: op.carried], given[op.carried :]
    body = op.body
    again, end = Label("again"), Label("end")
    bound = tir.Var("limit")
    outer = plan.new_segment(bound)
    states = body.inputs[: op.carried]
    for state, start in zip(states, carried, strict=True):
        _copy(plan, start, state, node.label)
    plan.steps.append(Enter(outer, ((bound, limit),)))
    rows = _Rows.of(plan, node, bound, apart=op.tested or not _is_true(condition, plan.constants))
    plan.segments[op.counter] = plan.segment_count
    inside = plan.new_segment(op.counter)
    plan.steps.append(Assign(op.counter, tir.Const(0)))
    if not _is_true(condition, plan.constants):
        plan.steps.append(Branch(end, condition))
    plan.steps.append(again)
    plan.steps.append(Assign(op.counter, op.counter + 1))
    plan.steps.append(Branch(end, op.counter <= bound))
    plan.steps.append(Enter(inside))
    for own, outside in zip(body.inputs[op.carried :], captured, strict=True):
        if outside in plan.constants:
            plan.constants[own] = plan.constants[outside]
        else:
            plan.roots[own] = plan.root(outside)
    around, plan.here = plan.here, inside
    _plan_into(plan, body)
    plan.here = around
    outputs = list(body.outputs)
    goes_on = outputs.pop(0) if op.tested else None
    for part, whole in zip(outputs[op.carried :], rows.wholes, strict=True):
        slot = Value(f"{whole.name}_part", part.type)
        plan.parts[slot] = (whole, _row_bytes(part.type) * (op.counter - 1))
        _copy(plan, part, slot, node.label)
    if goes_on is not None and plan.root(goes_on) in states:  # it is asked after they change
        goes_on, before = Value(f"{goes_on.name}_old", goes_on.type), goes_on
        _copy(plan, before, goes_on, node.label)
    fresh = [_kept_apart(plan, v, states) for v in outputs[: op.carried]]
    for source, moved in zip(outputs[: op.carried], fresh, strict=True):
        if moved is not source:
            _copy(plan, source, moved, node.label)
    for state, source in zip(states, fresh, strict=True):
        _copy(plan, source, state, node.label)
    if goes_on is not None:
        plan.steps.append(Branch(end, goes_on))
    plan.steps.append(Branch(again))
    plan.steps.append(end)
    plan.loops.append((again, end))
    rows.end(plan, op.counter, node.label)
    for state, result in zip(states, node.outputs[: op.carried], strict=True):
        plan.roots[result] = state


@dataclass(frozen=True)
class _Rows:
    """Where a loop collects: in its results, or `apart` from them if their length is known late.

    There is room for as many rows as there may be iterations. Of a loop that may end before, the
    first ones are copied when it has.
    """

    results: Sequence[Value]
    wholes: Sequence[Value]
    room: tir.Var

    @classmethod
    def of(cls, plan: Plan, node: Node, bound: tir.Var, *, apart: bool) -> _Rows:
        assert isinstance(node.op, Loop)
        results, room = node.outputs[node.op.carried :], tir.Var("rows")
        lengths = _lengths(plan, results)
        wholes = results
        if apart and results:
            lengths = [room]
            shapes = ((room, *v.shape[1:]) for v in results)
            pairs = zip(results, shapes, strict=True)
            wholes = tuple(
                Value(f"{v.name}_rows", TensorType(v.dtype, shape)) for v, shape in pairs
            )
        plan.steps += [Assign(length, tir.maximum(bound, 0)) for length in lengths]
        if lengths:
            plan.steps.append(Enter(plan.new_segment(*lengths)))
        return cls(results, wholes, room)

    def end(self, plan: Plan, counter: tir.Var, label: str) -> None:
        """Behind the loop: the iterations that were begun, or their limit, which ended it."""
        if self.wholes is self.results:
            return
        lengths = _lengths(plan, self.results)
        plan.steps += [Assign(length, tir.minimum(counter, self.room)) for length in lengths]
        plan.steps.append(Enter(plan.new_segment(*lengths)))
        for whole, result in zip(self.wholes, self.results, strict=True):
            first = Value(f"{result.name}_first", result.type)
            plan.parts[first] = (whole, tir.as_index(0))
            _copy(plan, first, result, label)


def _lengths(plan: Plan, stacked: Sequence[Value]) -> list[tir.Var]:
    """The sizes of what a loop stacks that are not known before it."""
    first = (value.shape[0] for value in stacked)
    return list(dict.fromkeys(d for d in first if isinstance(d, tir.Var) and _is_unknown(plan, d)))


def _is_true(condition: Value, constants: Mapping[Value, Array]) -> bool:
    """Whether a condition is known to hold."""
    return condition in constants and bool(constants[condition].item())


def _kept_apart(plan: Plan, value: Value, states: Sequence[Value]) -> Value:
    """A new state that is the old one of another place is copied before that one changes."""
    if plan.root(value) in states:
        return Value(f"{value.name}_old", value.type)
    return value


def _row_bytes(kind: TensorType) -> tir.Expr:
    return product((*kind.shape, tir.Const(kind.dtype.size_bytes)))


def _is_limited(graph: Graph, limit: Value) -> bool:
    """Whether there can be room for what all iterations of a loop collect, before it runs."""
    makers = {value: node for node in graph.nodes for value in node.outputs}
    while limit in makers and is_view(makers[limit]):
        limit = makers[limit].inputs[0]
    if limit in graph.constants:
        return int(graph.constants[limit].item()) <= MAX_ROWS
    return limit in makers and isinstance(makers[limit].op, Sizes)


def can_plan(graph: Graph) -> Iterator[str]:
    """Why a graph cannot run natively: loops whose sizes change, or are known too late."""
    for node in graph.nodes:
        if isinstance(node.op, Loop):
            loop = node.op
            first = 1 if loop.tested else 0
            pairs = zip(loop.body.inputs[: loop.carried], loop.body.outputs[first:], strict=False)
            starts = zip(loop.body.inputs[: loop.carried], node.inputs[2:], strict=False)
            if not all(same_shape(a.shape, b.shape) for a, b in (*pairs, *starts)):
                yield f"a loop changes the shape of what it carries ({node.label})"
            collects = len(node.outputs) > loop.carried
            if (
                collects
                and (loop.tested or not _is_true(node.inputs[1], graph.constants))
                and not _is_limited(graph, node.inputs[0])
            ):
                yield f"a loop without a small limit may end early, and collects ({node.label})"
            yield from can_plan(loop.body)
        elif isinstance(node.op, If):
            yield from can_plan(node.op.then)
            yield from can_plan(node.op.otherwise)
