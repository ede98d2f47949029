"""Compiled kernels compute what the interpreter says, for random programs and random schedules."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import event, given, note, reject
from hypothesis import strategies as st

from tests.levels import targets
from tests.property.layout_steps import apply_layout_steps, layout_programs
from tilewright.dtypes import f32, f64, i8, i16, i32, i64
from tilewright.errors import ProgramError
from tilewright.pipeline import Pipeline
from tilewright.runtime import Kernel
from tilewright.schedule import Schedule, Trace
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.tensor.regions import outputs
from tilewright.testing import assert_same
from tilewright.testing.inputs import random_inputs
from tilewright.testing.steps import apply_steps
from tilewright.testing.strategies import Program, programs

RANKS = (2, 3, 4)
WANTED = ("unroll", "vectorize", "parallel", "split", "compute_at", "cache_write", "set_scope")


@given(program=programs(dtypes=(i32, f32)), data=st.data())
def test_scheduled_programs(program: Program, data: st.DataObject):
    schedule = Schedule(program.func)
    apply_steps(data.draw, schedule, data.draw(st.integers(0, 6), label="steps"))
    apply_steps(data.draw, schedule, data.draw(st.integers(0, 4), label="more"), WANTED)
    note(schedule.trace.as_python())
    _check(program, schedule.trace, data)


@given(program=programs(dtypes=(f32, f64, i8, i16, i32, i64)), data=st.data())
def test_drafted_programs(program: Program, data: st.DataObject):
    _check(program, "draft", data)


def _check(program: Program, trace: Trace | str, data: st.DataObject) -> None:
    inputs = program.draw_inputs(data)
    threads = data.draw(st.integers(1, 3), label="threads")
    expected = interpret(program.func, inputs, program.sizes)
    target = data.draw(targets(), label="target")
    pipeline = Pipeline(target, threads, trace, observers=[lambda a: note(a.text)])
    try:
        kernel = pipeline.run(program.func).value
    except ProgramError as error:
        if error.code.id != "V301":  # a layout whose dimensions are no plain sizes
            raise
        reject()
    assert_same(_call(kernel, program.func, inputs), expected, scale=4)


@pytest.mark.parametrize("rank", RANKS)
@given(data=st.data())
def test_callers_see_plain_arrays(rank: int, data: st.DataObject):
    """Whatever layouts a schedule chooses, arrays are passed and returned as without any."""
    program = data.draw(layout_programs(rank))
    schedule = Schedule(program)
    apply_layout_steps(data.draw, schedule, data.draw(st.integers(1, 6)))
    note(schedule.trace.as_python())
    inputs = random_inputs(program, np.random.default_rng(data.draw(st.integers(0, 999))))
    kernel = Pipeline(Target.host(), 1, schedule.trace).run(program).value
    event(", ".join(kernel.conversions))
    assert_same(_call(kernel, program, inputs), interpret(program, inputs))
    bound = kernel.bind(**inputs)
    assert_same(_call(bound, program, {}), interpret(program, inputs))


def _call(
    kernel: Kernel, func: tir.Func, inputs: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The results by name, of a call with the inputs in the order of the program."""
    found = kernel(*[inputs[param.name] for param in func.params if param.name in inputs])
    results = found if isinstance(found, tuple) else (found,)
    return {p.name: array for p, array in zip(outputs(func), results, strict=True)}
