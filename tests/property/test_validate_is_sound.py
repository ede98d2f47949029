"""What validation accepts computes the same, whatever was done to the program."""

from __future__ import annotations

from hypothesis import event, given, note
from hypothesis import strategies as st

from tests.packing import packed_run
from tilewright.errors import ProgramError
from tilewright.schedule import Schedule
from tilewright.tensor.interpret import interpret
from tilewright.tensor.validate import validate
from tilewright.tensor.verify import verify
from tilewright.testing import assert_same
from tilewright.testing.mutations import mutated
from tilewright.testing.steps import apply_steps
from tilewright.testing.strategies import programs


@given(program=programs(), data=st.data())
def test_accepted_damage_is_harmless(program, data):
    schedule = Schedule(program.func)
    apply_steps(data.draw, schedule, data.draw(st.integers(0, 4)))
    func = schedule.func
    for _ in range(data.draw(st.integers(1, 2))):
        name, func = data.draw(mutated(func))
        note(name)
    note(str(func))
    try:
        validate(verify(func))
    except ProgramError as error:
        str(error)  # rendering must not fail either
        event(f"refused: {error.code.id}")
        return
    event("accepted")
    inputs = program.draw_inputs(data)
    expected = interpret(program.func, inputs, program.sizes)
    for seed in (None, 0, 1):
        assert_same(packed_run(program.func, func, inputs, program.sizes, seed=seed), expected)
