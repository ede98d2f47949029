"""Every lowering pass keeps the meaning of programs under random schedules; integers bit for bit.

The interpreter is the judge, also of what is read before it is written. Several threads are tried
in turns, in arenas as the plan lays them out, with every race reported.
"""

from __future__ import annotations

import random

import numpy as np
from hypothesis import event, given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.threaded import run_threaded
from tests.tilings import random_kernel, random_tiling
from tilewright.dtypes import f32, f64, i8, i32
from tilewright.lower import Lowered, lower
from tilewright.schedule import PRIMITIVES, Schedule
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.tensor.regions import sizes
from tilewright.testing import assert_same, random_inputs
from tilewright.testing.steps import apply_steps
from tilewright.testing.strategies import Program, programs

TARGETS = [Target.named(name) for name in ("x86-64-v2", "x86-64-v3")]
LOOPS = ("unroll", "vectorize", "parallel", "split", "compute_at", "cache_write", "set_scope")
# Arrays of parameters with a layout are packed by the caller, which is not the matter here.
PLAIN = tuple(name for name in PRIMITIVES if not name.startswith("layout"))

seeds = st.integers(0, 2**32)


@given(program=programs(dtypes=(i32, f32)), data=st.data())
def test_random_steps(program: Program, data: st.DataObject):
    schedule = Schedule(program.func)
    apply_steps(data.draw, schedule, data.draw(st.integers(0, 6), label="steps"), PLAIN)
    apply_steps(data.draw, schedule, data.draw(st.integers(0, 4), label="more"), LOOPS)
    note(schedule.trace.as_python())
    _lowered(program.func, schedule.func, program.sizes, data.draw(seeds, label="seed"))


@given(program=programs(dtypes=(i8, f64)), seed=seeds)
def test_programs_as_written(program: Program, seed: int):
    _lowered(program.func, program.func, program.sizes, seed)


@examples(12)
@given(seed=seeds)
def test_tiled_kernels(seed: int):
    r = random.Random(seed)
    program = random_kernel(r)
    schedule = random_tiling(r, program)
    note(schedule.trace.as_python())
    values = {var: r.choice([1, 2, 5, 7, 13]) for var in sizes(program)}
    made = _lowered(program, schedule.func, values, seed)
    event("parallel" if made.parallel else "one thread")


@given(seed=seeds, threads=st.integers(1, 5))
def test_threads_do_not_race(seed: int, threads: int):
    r = random.Random(seed)
    program = random_kernel(r)
    schedule = random_tiling(r, program)
    note(schedule.trace.as_python())
    values = {var: r.choice([1, 2, 5, 7]) for var in sizes(program)}
    inputs = random_inputs(program, np.random.default_rng(seed), values)
    made = lower(schedule.func, r.choice(TARGETS))
    note(str(made.func))
    found = run_threaded(made, inputs, values, threads if made.parallel else 1)
    expected = interpret(program, inputs, values)
    assert_same({n: a.reshape(expected[n].shape) for n, a in found.items()}, expected)


def _lowered(
    program: tir.Func, scheduled: tir.Func, values: dict[tir.Var, int], seed: int
) -> Lowered:
    """Lower `scheduled`; every pass must give what `program` means."""
    inputs = random_inputs(program, np.random.default_rng(seed), values)
    expected = interpret(program, inputs, values)
    before = scheduled

    def judge(stage: str, made: tir.Func, seconds: float) -> None:
        nonlocal before
        del seconds
        if made is not before:
            note(f"{stage}:\n{made}")
            found = interpret(made, inputs, values, seed=seed)
            assert_same({n: a.reshape(expected[n].shape) for n, a in found.items()}, expected)
        before = made

    return lower(scheduled, TARGETS[seed % 2], judge, check=True)
