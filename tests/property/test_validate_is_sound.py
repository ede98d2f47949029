"""What validation accepts computes the same, whatever was done to the program."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, note
from hypothesis import strategies as st

from tests.packing import packed_run
from tests.scatters import LENGTH, at_once, scatter
from tilewright.errors import ProgramError
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.tensor.validate import ValidationCache, validate
from tilewright.tensor.verify import verify
from tilewright.testing import assert_same
from tilewright.testing.mutations import mutated
from tilewright.testing.steps import apply_steps
from tilewright.testing.strategies import programs

PER_EXAMPLE = 10  # small programs at once: Hypothesis costs more than they do


@given(program=programs(), data=st.data())
def test_accepted_damage_is_harmless(program, data):
    schedule = Schedule(program.func)
    apply_steps(data.draw, schedule, data.draw(st.integers(0, 4)))
    func = schedule.func
    for _ in range(data.draw(st.integers(1, 2))):
        name, func = data.draw(mutated(func))
        note(name)
    note(str(func))
    if not is_accepted(func):
        return
    inputs = program.draw_inputs(data)
    expected = interpret(program.func, inputs, program.sizes)
    for seed in (None, 0, 1):
        assert_same(packed_run(program.func, func, inputs, program.sizes, seed=seed), expected)


@given(program=programs(), data=st.data())
def test_what_is_remembered_changes_no_answer(program, data):
    """Damaged programs share most of their nodes with those that were found to be valid."""
    schedule = Schedule(program.func)
    cache = ValidationCache()
    for _ in range(data.draw(st.integers(1, 3))):
        apply_steps(data.draw, schedule, 1)
        assert refusal(schedule.func, cache) is None
        _, func = data.draw(mutated(schedule.func))
        note(str(func))
        assert refusal(func, cache) == refusal(func, ValidationCache())


def refusal(func: tir.Func, cache: ValidationCache) -> str | None:
    """The text of the error that validation raises, if it does."""
    try:
        validate(func, cache)
    except ProgramError as error:
        return str(error)
    return None


REDUCING = ("split", "reorder", "decompose_reduction", "blockize", "rfactor", "compute_at")


@given(program=programs(max_blocks=2), data=st.data())
def test_accepted_damage_to_reductions_is_harmless(program, data):
    """Start values apart from their sums, tiles of them, partial sums: then damage."""
    schedule = Schedule(program.func)
    apply_steps(data.draw, schedule, data.draw(st.integers(1, 5)), REDUCING)
    name, func = data.draw(mutated(schedule.func))
    note(f"{name}\n{func}")
    if not is_accepted(func):
        return
    inputs = program.draw_inputs(data)
    expected = interpret(program.func, inputs, program.sizes)
    for seed in (None, 0):
        assert_same(packed_run(program.func, func, inputs, program.sizes, seed=seed), expected)


def is_accepted(func: tir.Func) -> bool:
    """Whether validation accepts a program."""
    try:
        validate(verify(func))
    except ProgramError as error:
        str(error)  # rendering must not fail either
        event(f"refused: {error.code.id}")
        return False
    event("accepted")
    return True


@given(seeds=st.lists(st.integers(0, 1 << 30), min_size=1, max_size=PER_EXAMPLE))
def test_accepted_pieces_are_complete_and_do_not_meet(seeds):
    """A buffer that is written in pieces: every element that is read was written before, and the
    iterations of parallel loops and the lanes of vectors can run in any order.
    """
    for seed in seeds:
        func = scatter(seed)
        note(f"scatter({seed})\n{func}")
        if is_accepted(func):
            runs_in_any_order(func)


@given(seeds=st.lists(st.integers(0, 1 << 30), min_size=1, max_size=PER_EXAMPLE), data=st.data())
def test_accepted_damage_to_pieces_is_harmless(seeds, data):
    for seed in seeds:
        name, func = data.draw(mutated(scatter(seed)))
        note(f"{name} in scatter({seed})\n{func}")
        if is_accepted(func):
            runs_in_any_order(func)


def runs_in_any_order(func: tir.Func) -> None:
    """Interpret a program in order, and shuffled: undefined elements and races show."""
    arrays = {"A": np.arange(100, 100 + LENGTH, dtype=np.int32)}
    for param in func.params:
        if param.name == "T":  # what it holds before may be read, too
            shape = [tir.int_value(size) for size in param.shape]
            arrays["T"] = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    expected = interpret(func, arrays)
    for seed in (0, 1, 2):
        assert_same(interpret(at_once(func), arrays, seed=seed), expected)
