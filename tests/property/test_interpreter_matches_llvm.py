"""Compiled kernels compute what the interpreter says, for random programs and random schedules."""

from __future__ import annotations

import numpy as np
from hypothesis import given, note, reject
from hypothesis import strategies as st

from tilewright.dtypes import f32, f64, i8, i16, i32, i64
from tilewright.errors import ProgramError
from tilewright.pipeline import Pipeline
from tilewright.schedule import Schedule, Trace
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.tensor.packing import packing_of
from tilewright.tensor.regions import outputs
from tilewright.testing import assert_same
from tilewright.testing.steps import apply_steps
from tilewright.testing.strategies import Program, programs

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
    pipeline = Pipeline(Target.host(), threads, trace, observers=[lambda a: note(a.text)])
    scheduled = pipeline.run(program.func, until="scheduled").value
    try:
        kernel = pipeline.run(program.func).value
    except ProgramError as error:
        if error.code.id != "V301":  # a layout whose dimensions are no plain sizes
            raise
        reject()
    arrays = [inputs[p.name] for p in kernel.params if not p.is_output]
    found = kernel(*arrays)
    results = found if isinstance(found, tuple) else (found,)
    plain = {
        param.name: _unpacked(param, array, expected[param.name].shape)
        for param, array in zip(outputs(scheduled), results, strict=True)
    }
    assert_same(plain, expected, scale=4)


def _unpacked(param: tir.Buffer, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The logical array of an output that a schedule gave a layout."""
    packing = packing_of(param)
    return array if packing is None else packing.unpack(array, shape)
