"""Loops as steps with jumps.

again:  count; end if that is enough
        the body
        the first time only: sizes of what is collected that only a body tells; room for all
        what is collected goes to its row (`plan_rows`)
        what is carried is copied back (`plan_states`)
        go to again
end:    without any iteration these sizes are as the loop says
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tilewright.graph.ir import Graph, Node, Value
from tilewright.graph.ops.control import Loop
from tilewright.model.plan_rows import Rows
from tilewright.model.plan_states import States
from tilewright.model.steps import Assign, Branch, Enter, Label, Plan
from tilewright.model.weights import Constant
from tilewright.tensor import ir as tir

__all__ = ["is_true", "plan_loop"]


def plan_loop(
    plan: Plan,
    node: Node,
    op: Loop,
    plan_into: Callable[[Plan, Graph], None],
    *,
    limited: bool,
) -> None:
    """Add the steps of a loop; `plan_into` adds those of its body.

    A `limited` one may have room for all of its iterations before it begins.
    """
    limit, condition, *given = node.inputs
    carried, captured = given[: op.carried], given[op.carried :]
    body = op.body
    again, end = Label("again"), Label("end")
    bound = tir.Var("limit")
    outer = plan.new_segment(bound)
    states = States.of(plan, body.inputs[: op.carried], carried, node.label)
    plan.steps.append(Enter(outer, ((bound, limit),)))
    apart = op.tested or not is_true(condition, plan.constants)
    rows = Rows.of(plan, node, bound, apart=apart, limited=limited)
    plan.steps.append(Assign(op.counter, tir.Const(0)))
    if not is_true(condition, plan.constants):
        plan.steps.append(Branch(end, condition))
    plan.steps.append(again)
    plan.steps.append(Assign(op.counter, op.counter + 1))
    plan.steps.append(Branch(end, op.counter <= bound))
    inside = states.enter(plan, op.counter)
    for own, outside in zip(body.inputs[op.carried :], captured, strict=True):
        plan.stand_for(own, outside)
    around, plan.here = plan.here, inside
    plan_into(plan, body)
    plan.here = around
    outputs = list(body.outputs)
    goes_on = outputs.pop(0) if op.tested else None
    rows.put(plan, outputs[op.carried :], op.counter, node.label)
    if goes_on is not None:  # it is asked after they change
        goes_on = states.apart(plan, goes_on)
    states.next(plan, outputs[: op.carried])
    if goes_on is not None:
        plan.steps.append(Branch(end, goes_on))
    plan.steps.append(Branch(again))
    plan.steps.append(end)
    plan.loops.append((again, end))
    rows.end(plan, op.counter, node.label)
    states.end(plan, node.outputs[: op.carried])


def is_true(condition: Value, constants: Mapping[Value, Constant]) -> bool:
    """Whether a condition is known to hold."""
    known = constants.get(condition)
    return isinstance(known, np.ndarray) and bool(known.item())
