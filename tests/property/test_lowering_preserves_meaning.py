"""Every lowering pass keeps the meaning of random programs under random schedules, bit for bit on
integers; the interpreter is the judge, also of what is read before it is written."""

from __future__ import annotations

from hypothesis import given, note
from hypothesis import strategies as st

from tilewright.dtypes import f32, f64, i8, i32
from tilewright.lower import lower
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.testing import assert_same
from tilewright.testing.steps import apply_steps
from tilewright.testing.strategies import Program, programs

TARGETS = [Target.named(name) for name in ("x86-64-v2", "x86-64-v3")]
WANTED = ("unroll", "vectorize", "parallel", "split", "compute_at", "cache_write", "set_scope")


@given(program=programs(dtypes=(i32, f32)), data=st.data())
def test_passes_keep_the_meaning_of_scheduled_programs(program: Program, data: st.DataObject):
    schedule = Schedule(program.func)
    apply_steps(data.draw, schedule, data.draw(st.integers(0, 6), label="steps"))
    apply_steps(data.draw, schedule, data.draw(st.integers(0, 4), label="more"), WANTED)
    note(schedule.trace.as_python())
    _check(program, schedule.func, data)


@given(program=programs(dtypes=(i8, f64)), data=st.data())
def test_passes_keep_the_meaning_of_programs_as_written(program: Program, data: st.DataObject):
    _check(program, program.func, data)


def _check(program: Program, func: tir.Func, data: st.DataObject) -> None:
    inputs = program.draw_inputs(data)
    seed = data.draw(st.integers(0, 9), label="order of threads")
    target = data.draw(st.sampled_from(TARGETS))
    expected = interpret(program.func, inputs, program.sizes)
    shapes = {name: array.shape for name, array in expected.items()}
    before = func

    def observe(stage: str, made: tir.Func, seconds: float) -> None:
        nonlocal before
        del seconds
        if made is not before:
            note(f"{stage}:\n{made}")
            found = interpret(made, inputs, program.sizes, seed=seed)
            assert_same({n: a.reshape(shapes[n]) for n, a in found.items()}, expected)
        before = made

    lower(func, target, observe, check=True)
