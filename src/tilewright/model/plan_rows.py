"""Where a loop puts what it collects: a row for each iteration.

There is room for as many rows as there may be iterations. A loop that may end before has its rows
apart from its results, which are copied when their length is known. One that nothing small limits
begins with room for a few rows; when these are full, all move to a place of twice the room:

    fits unless the row is behind the last
        room for what there is, elsewhere; copy
        twice as much room; copy back
    fits:

What an iteration collects must have the sizes of the first one: a condition on sizes, which is
looked at in every iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tilewright.graph.ir import Node, TensorType, Value
from tilewright.graph.ops.control import Loop
from tilewright.graph.sizes import product
from tilewright.model.steps import Assign, Branch, Enter, Label, Plan
from tilewright.tensor import ir as tir

__all__ = ["Rows"]

FIRST_ROWS: Final = 16
"""Rows that there is room for at first, where nothing small limits them."""


@dataclass
class Rows:
    """The rows of one loop, in `wholes`: its results, or apart from them.

    `bound` is the limit of iterations, `room` how many rows there is room for if these grow.
    `learned` are the sizes that the first iteration tells, with their values if there is none, and
    `segment` the one in which they are known.
    """

    results: Sequence[Value]
    wholes: Sequence[Value]
    bound: tir.Var
    without_any: Sequence[Sequence[int]]
    room: tir.Var | None = None
    learned: dict[tir.Var, int] = field(default_factory=dict)
    segment: int = 0

    @classmethod
    def of(cls, plan: Plan, node: Node, bound: tir.Var, *, apart: bool, limited: bool) -> Rows:
        """Room for rows, before a loop; `apart` if it may end early."""
        assert isinstance(node.op, Loop)
        results, room = node.outputs[node.op.carried :], tir.Var("rows")
        without = node.op.without_any()
        lengths = _lengths(plan, results)
        wholes = results
        most = tir.maximum(bound, 0)
        grows = apart and not limited and len(results) > 0
        if apart and results:
            lengths = [room]
            wholes = tuple(_with_rows(v, room, "rows") for v in results)
        if grows:
            most = tir.minimum(most, FIRST_ROWS)
        plan.steps += [Assign(length, most) for length in lengths]
        if lengths:
            plan.steps.append(Enter(plan.new_segment(*lengths)))
        return cls(results, wholes, bound, without, room if grows else None)

    def put(self, plan: Plan, parts: Sequence[Value], counter: tir.Var, label: str) -> None:
        """In an iteration: what it has collected becomes a row."""
        row = self._row(plan, parts, counter, label)
        for part, whole in zip(parts, self.wholes, strict=True):
            slot = Value(f"{whole.name}_part", part.type)
            plan.parts[slot] = (whole, _row_bytes(part.type) * row)
            plan.copy(part, slot, label)

    def _row(self, plan: Plan, parts: Sequence[Value], counter: tir.Var, label: str) -> tir.Expr:
        """The number of the row. Where an iteration makes room, its place is known later."""
        told = self._told(plan, parts)
        if told:
            self.segment = plan.new_segment(*told)
            known = Label("known")
            plan.steps.append(Branch(known, counter.eq(1)))
            plan.steps += [Assign(dim, own) for dim, own in told.items()]
            plan.steps += [Enter(self.segment), known]
        if self.room is not None:
            self._grow(plan, self.room, counter, label)
        elif not told:
            return counter - 1
        row = tir.Var("row")
        every = plan.new_segment(row)
        plan.steps += [Assign(row, counter - 1), Enter(every)]
        plan.alike += [(own, dim, every) for dim, own in told.items()]
        return row

    def _told(self, plan: Plan, parts: Sequence[Value]) -> dict[tir.Var, tir.Expr]:
        """Sizes that nothing has told before the first iteration."""
        told: dict[tir.Var, tir.Expr] = {}
        for part, whole, without in zip(parts, self.wholes, self.without_any, strict=True):
            for own, dim, number in zip(part.shape, whole.shape[1:], without, strict=True):
                if isinstance(dim, tir.Var) and plan.is_unknown(dim):
                    told[dim], self.learned[dim] = own, number
        return told

    def _grow(self, plan: Plan, room: tir.Var, counter: tir.Var, label: str) -> None:
        """Twice the room if all rows are full. Memory that is placed anew forgets what it had."""
        fits, full, back = Label("fits"), tir.Var("full"), tir.Var("back")
        plan.steps += [Branch(fits, room < counter), Assign(full, room)]
        plan.steps.append(Enter(plan.new_segment(full)))
        spares = [_with_rows(whole, full, "spare") for whole in self.wholes]
        for whole, spare in zip(self.wholes, spares, strict=True):
            plan.copy(_beginning(plan, whole, spare.type), spare, label)
        plan.steps.append(Assign(room, tir.minimum(room * 2, self.bound)))
        plan.steps += [Enter(number) for number in (plan.segments[room], self.segment) if number]
        plan.steps += [Assign(back, full), Enter(plan.new_segment(back))]
        for whole, spare in zip(self.wholes, spares, strict=True):
            again = _with_rows(spare, back, "again")
            plan.roots[again] = spare
            plan.copy(again, _beginning(plan, whole, again.type), label)
        plan.steps.append(fits)

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
            plan.copy(_beginning(plan, whole, result.type), result, label)


def _with_rows(value: Value, rows: tir.Expr, name: str) -> Value:
    """Memory like that of a stacked value, for another number of rows."""
    return Value(f"{value.name}_{name}", TensorType(value.dtype, (rows, *value.shape[1:])))


def _beginning(plan: Plan, whole: Value, kind: TensorType) -> Value:
    """The first rows of memory."""
    first = Value(f"{whole.name}_first", kind)
    plan.parts[first] = (whole, tir.as_index(0))
    return first


def _lengths(plan: Plan, stacked: Sequence[Value]) -> list[tir.Var]:
    """The sizes of what a loop stacks that are not known before it."""
    first = (value.shape[0] for value in stacked)
    return list(dict.fromkeys(d for d in first if isinstance(d, tir.Var) and plan.is_unknown(d)))


def _row_bytes(kind: TensorType) -> tir.Expr:
    return product((*kind.shape, tir.Const(kind.dtype.size_bytes)))
