"""What a program does, step by step, before anything is compiled.

Groups of nodes are kernels; branches and loops are unfolded into steps with jumps, their graphs
being planned the same way. Values name memory here, and a step may write a value again: what a loop
carries is copied back at the end of each iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tilewright.graph.grouping import group_nodes
from tilewright.graph.groups import Group, is_constant, is_view
from tilewright.graph.ir import Graph, Node, Value
from tilewright.graph.ops import Concat, Remap
from tilewright.graph.ops.by_size import BySize
from tilewright.graph.ops.compact import Compact
from tilewright.graph.ops.control import If, Loop
from tilewright.graph.ops.count import Count
from tilewright.graph.ops.host import Host
from tilewright.graph.ops.size_tensor import Sizes
from tilewright.graph.sizes import dims_equal, fixed, never_exceeds, product, variables
from tilewright.model.cuts import cuts_of
from tilewright.model.empties import MAX_DOUBTS, Doubt, doubts_of, without_source
from tilewright.model.joins import joins_of
from tilewright.model.plan_loop import plan_loop
from tilewright.model.sizing import is_plain
from tilewright.model.steps import (
    Assign,
    Branch,
    Enter,
    HostStep,
    KernelStep,
    Label,
    Plan,
)
from tilewright.model.weights import Derived
from tilewright.tensor import ir as tir

__all__ = ["plan_graph"]

MAX_ROWS: Final = 4096
"""Iterations that there is room for, of a loop that may end earlier and collects."""


def plan_graph(graph: Graph, groups: Sequence[Group] | None = None) -> Plan:
    """The plan of a whole model; without `groups`, its kernels are found here."""
    plan = Plan()
    for value in graph.inputs:
        for var in variables(value.shape):
            plan.segments[var] = 0
    _plan_into(plan, graph, groups)
    return plan


def _plan_into(plan: Plan, graph: Graph, groups: Sequence[Group] | None = None) -> None:
    """Plan a graph; those of branches and loops have no layouts to choose and are grouped here."""
    plan.constants.update(graph.constants)
    for node in graph.nodes:
        if is_constant(node, graph):
            sources = tuple(graph.constants[value] for value in node.inputs)
            plan.constants[node.output] = Derived(node.op, sources, node.output)
    plan.nodes += [(node, plan.here) for node in graph.nodes]
    plan.homes.update((value, plan.here) for node in graph.nodes for value in node.outputs)
    consumers = graph.consumers()
    for node in graph.nodes:
        if is_view(node):
            plan.roots[node.output] = plan.root(node.inputs[0])
    joins = joins_of(graph, plan.root)
    for join in joins.values():
        plan.parts.update((part, (join.whole, begin)) for part, begin in join.places.items())
        plan.named.update(join.named)
    told_late = {v for n, _ in plan.nodes if isinstance(n.op, Host) for v in n.outputs}
    cuts = cuts_of(graph, plan.root, plan.constants.keys() | told_late)
    for group in group_nodes(graph) if groups is None else groups:
        (first, *others) = group.nodes
        match first.op:
            case Concat() if first in joins:
                for value, part in joins[first].copied:
                    plan.copy(value, part, first.label)
            case Remap() if first in cuts and not others:
                cut = cuts[first]
                plan.parts[cut.part] = cut.source, cut.begin
                plan.copy(cut.part, first.output, first.label)
            case Host():
                _plan_host(plan, first)
            case If():
                _plan_if(plan, first, first.op)
            case Loop():
                limited = _is_limited(graph, first.inputs[0])
                plan_loop(plan, first, first.op, _plan_into, limited=limited)
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
    if any(fixed(d) == 0 for d in dims):
        _plan_versions(plan, without_source(group, nodes, left), left, others)
        return
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
        plan.stand_for(inside, outside)
    _plan_into(plan, graph)


def _plan_if(plan: Plan, node: Node, op: If) -> None:
    otherwise, end = Label("else"), Label("end")
    unknown = [d for v in node.outputs for d in v.shape if plan.is_unknown(d)]
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
            plan.copy(source, result, node.label)
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
        pairs = *node.op.assumptions(*types), *node.op.meetings(*types)
        if not all(dims_equal(a, b) for a, b in pairs):
            return True
        if not all(never_exceeds(a, b, shape) for a, b, shape in node.op.limits(*types)):
            return True
    return False


def _is_limited(graph: Graph, limit: Value) -> bool:
    """Whether there can be room for what all iterations of a loop collect, before it runs."""
    makers = {value: node for node in graph.nodes for value in node.outputs}
    while limit in makers and is_view(makers[limit]):
        limit = makers[limit].inputs[0]
    if limit in graph.constants:
        return int(graph.constants[limit].item()) <= MAX_ROWS
    return limit in makers and isinstance(makers[limit].op, Sizes)
