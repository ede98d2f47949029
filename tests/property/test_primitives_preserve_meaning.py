"""Whatever a primitive accepts keeps what the program means, and replays from its trace."""

from __future__ import annotations

import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st

from tests.packing import packed_run
from tilewright.errors import UserError
from tilewright.schedule import PRIMITIVES, Schedule, Trace
from tilewright.tensor.interpret import interpret
from tilewright.testing import assert_same
from tilewright.testing.steps import applicable_steps, apply_steps
from tilewright.testing.strategies import Program, programs


def check(program: Program, schedule: Schedule, data: st.DataObject) -> None:
    note(schedule.trace.as_python())
    note(str(schedule.func))
    inputs = program.draw_inputs(data)
    expected = interpret(program.func, inputs, program.sizes)
    found = packed_run(program.func, schedule.func, inputs, program.sizes, seed=0)
    assert_same(found, expected)


@given(program=programs(), data=st.data())
def test_any_sequence_of_steps(program, data):
    schedule = Schedule(program.func)
    accepted, _ = apply_steps(data.draw, schedule, data.draw(st.integers(1, 8)))
    event(f"{accepted} steps accepted")
    check(program, schedule, data)


@pytest.mark.parametrize("primitive", sorted(PRIMITIVES))
@given(program=programs(), data=st.data())
def test_each_primitive_after_loops_were_changed(primitive, program, data):
    """A few loop steps first: they make the structure that the primitive then meets."""
    schedule = Schedule(program.func)
    apply_steps(data.draw, schedule, data.draw(st.integers(0, 3)), ("split", "fuse", "reorder"))
    step = data.draw(applicable_steps(schedule, (primitive,)))
    try:
        schedule.apply(step)
    except UserError as error:
        event(f"refused: {error.code.id}")
        return
    event("accepted")
    check(program, schedule, data)


@given(program=programs(), data=st.data())
def test_traces_replay_to_the_same_program(program, data):
    schedule = Schedule(program.func)
    apply_steps(data.draw, schedule, data.draw(st.integers(1, 6)))
    trace = Trace.from_json(schedule.trace.to_json())
    assert trace == schedule.trace
    assert str(Schedule(program.func, trace).func) == str(schedule.func)
    again = Schedule(program.func)
    exec(schedule.trace.as_python(), {"s": again, "None": None})
    assert str(again.func) == str(schedule.func)
    assert again.trace.to_json() == schedule.trace.to_json()
