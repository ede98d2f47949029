"""Loops as steps with jumps, and where they put what they collect.

    again:  count; end if that is enough
            the body
            the first time only: sizes of what is collected that only a body tells; room for all
            what is collected goes to its row
            what is carried is copied back
            go to again
    end:    without any iteration these sizes are as the loop says

What an iteration collects must have the sizes of the first one: a condition on sizes, which is
looked at in every iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.graph.ir import Array, Graph, Node, TensorType, Value
from tilewright.graph.ops.control import Loop
from tilewright.graph.sizes import product
from tilewright.model.steps import Assign, Branch, Enter, Label, Plan
from tilewright.tensor import ir as tir

__all__ = ["is_true", "plan_loop"]


def plan_loop(plan: Plan, node: Node, op: Loop, plan_into: Callable[[Plan, Graph], None]) -> None:
    """Add the steps of a loop; `plan_into` adds those of its body."""
    limit, condition, *given = node.inputs
    carried, captured = given[: op.carried], given[op.carried :]
    body = op.body
    again, end = Label("again"), Label("end")
    bound = tir.Var("limit")
    outer = plan.new_segment(bound)
    states = body.inputs[: op.carried]
    for state, start in zip(states, carried, strict=True):
        plan.copy(start, state, node.label)
    plan.steps.append(Enter(outer, ((bound, limit),)))
    rows = _Rows.of(plan, node, bound, apart=op.tested or not is_true(condition, plan.constants))
    plan.segments[op.counter] = plan.segment_count
    inside = plan.new_segment(op.counter)
    plan.steps.append(Assign(op.counter, tir.Const(0)))
    if not is_true(condition, plan.constants):
        plan.steps.append(Branch(end, condition))
    plan.steps.append(again)
    plan.steps.append(Assign(op.counter, op.counter + 1))
    plan.steps.append(Branch(end, op.counter <= bound))
    plan.steps.append(Enter(inside))
    for own, outside in zip(body.inputs[op.carried :], captured, strict=True):
        plan.stand_for(own, outside)
    around, plan.here = plan.here, inside
    plan_into(plan, body)
    plan.here = around
    outputs = list(body.outputs)
    goes_on = outputs.pop(0) if op.tested else None
    rows.put(plan, outputs[op.carried :], op.counter, node.label)
    if goes_on is not None and plan.root(goes_on) in states:  # it is asked after they change
        goes_on, before = Value(f"{goes_on.name}_old", goes_on.type), goes_on
        plan.copy(before, goes_on, node.label)
    fresh = [_kept_apart(plan, v, states) for v in outputs[: op.carried]]
    for source, moved in zip(outputs[: op.carried], fresh, strict=True):
        if moved is not source:
            plan.copy(source, moved, node.label)
    for state, source in zip(states, fresh, strict=True):
        plan.copy(source, state, node.label)
    if goes_on is not None:
        plan.steps.append(Branch(end, goes_on))
    plan.steps.append(Branch(again))
    plan.steps.append(end)
    plan.loops.append((again, end))
    rows.end(plan, op.counter, node.label)
    for state, result in zip(states, node.outputs[: op.carried], strict=True):
        plan.roots[result] = state


@dataclass
class _Rows:
    """Where a loop collects: in its results, or apart from them if their length is known late.

    There is room for as many rows as there may be iterations (`bound`). Of a loop that may end
    before, the first ones are copied when it has. `learned` are the sizes that the first iteration
    tells, with their values if there is none, and the segment in which they are known.
    """

    results: Sequence[Value]
    wholes: Sequence[Value]
    bound: tir.Var
    without_any: Sequence[Sequence[int]]
    learned: dict[tir.Var, int] = field(default_factory=dict)
    segment: int = 0

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
        return cls(results, wholes, bound, node.op.without_any())

    def put(self, plan: Plan, parts: Sequence[Value], counter: tir.Var, label: str) -> None:
        """In an iteration: what it has collected becomes a row."""
        row = self._row(plan, parts, counter)
        for part, whole in zip(parts, self.wholes, strict=True):
            slot = Value(f"{whole.name}_part", part.type)
            plan.parts[slot] = (whole, _row_bytes(part.type) * row)
            plan.copy(part, slot, label)

    def _row(self, plan: Plan, parts: Sequence[Value], counter: tir.Var) -> tir.Expr:
        """The number of the row. Where room is made in the first iteration, it is known later."""
        told: dict[tir.Var, tir.Expr] = {}
        for part, whole, without in zip(parts, self.wholes, self.without_any, strict=True):
            for own, dim, number in zip(part.shape, whole.shape[1:], without, strict=True):
                if isinstance(dim, tir.Var) and plan.is_unknown(dim):
                    told[dim], self.learned[dim] = own, number
        if not told:
            return counter - 1
        self.segment = plan.new_segment(*told)
        known, row = Label("known"), tir.Var("row")
        plan.steps.append(Branch(known, counter.eq(1)))
        plan.steps += [Assign(dim, own) for dim, own in told.items()]
        plan.steps += [Enter(self.segment), known]
        every = plan.new_segment(row)
        plan.steps += [Assign(row, counter - 1), Enter(every)]
        plan.alike += [(own, dim, every) for dim, own in told.items()]
        return row

    def end(self, plan: Plan, counter: tir.Var, label: str) -> None:
        """Behind the loop: the iterations that were begun, or their limit, which ended it."""
        turns = tir.minimum(counter, tir.maximum(self.bound, 0))
        if self.learned:
            known = Label("known")
            plan.steps.append(Branch(known, turns.eq(0)))
            plan.steps += [Assign(size, tir.Const(n)) for size, n in self.learned.items()]
            plan.steps += [Enter(self.segment), known]
        if self.wholes is self.results:
            return
        lengths = _lengths(plan, self.results)
        plan.steps += [Assign(length, turns) for length in lengths]
        plan.steps.append(Enter(plan.new_segment(*lengths)))
        for whole, result in zip(self.wholes, self.results, strict=True):
            first = Value(f"{result.name}_first", result.type)
            plan.parts[first] = (whole, tir.as_index(0))
            plan.copy(first, result, label)


def _lengths(plan: Plan, stacked: Sequence[Value]) -> list[tir.Var]:
    """The sizes of what a loop stacks that are not known before it."""
    first = (value.shape[0] for value in stacked)
    return list(dict.fromkeys(d for d in first if isinstance(d, tir.Var) and plan.is_unknown(d)))


def is_true(condition: Value, constants: Mapping[Value, Array]) -> bool:
    """Whether a condition is known to hold."""
    return condition in constants and bool(constants[condition].item())


def _kept_apart(plan: Plan, value: Value, states: Sequence[Value]) -> Value:
    """A new state that is the old one of another place is copied before that one changes."""
    if plan.root(value) in states:
        return Value(f"{value.name}_old", value.type)
    return value


def _row_bytes(kind: TensorType) -> tir.Expr:
    return product((*kind.shape, tir.Const(kind.dtype.size_bytes)))
