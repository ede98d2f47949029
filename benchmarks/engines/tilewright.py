"""tilewright through its public face: ten-line programs, the analytic draft, no tuning."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

import tilewright as tw
from benchmarks.engines import NOTHING, Runner, Variants, empty
from benchmarks.numbers import Arrays
from benchmarks.programs import PROGRAMS, with_consumers
from benchmarks.workloads import Workload

PEER: Final = False

_threads: list[int] = []


def start(threads: int) -> dict[str, str]:
    if not hasattr(tw, "build"):
        raise ImportError("this version of tilewright has no `build`")
    _threads.append(threads)
    return {"tilewright": tw.__version__}


def variants(workload: Workload) -> Variants:
    if workload.op == "trace":
        return {"replay": partial(_trace, workload.shape[0])}
    return {"draft": partial(_build, workload)} if workload.op in PROGRAMS else NOTHING


def _build(workload: Workload, arrays: Arrays) -> Runner:
    program = PROGRAMS[workload.op](*workload.shape)
    constants = {name: arrays[name] for name in program.constants}
    kernel = tw.build(program.func, threads=_threads[0], constants=constants)
    out = empty(*workload.result_shape)
    return Runner(partial(kernel, *(arrays[name] for name in program.inputs), out), lambda: out)


def _trace(steps: int, _arrays: Arrays) -> Runner:
    """A schedule of so many steps, replayed from the beginning on a program of six blocks."""
    func = with_consumers(512, 5)
    schedule = tw.Schedule(func)
    for block in schedule.blocks():
        i, j = schedule.loops(block)[:2]
        i_0, i_1 = schedule.split(i, 6)
        j_0, j_1 = schedule.split(j, 16)
        schedule.reorder(i_0, j_0, i_1, j_1)
        schedule.unroll(i_1)
        schedule.parallel(i_0)
    trace = schedule.trace
    assert len(trace) == steps, f"{len(trace)} steps"
    nothing = np.zeros(0, "f4")
    return Runner(lambda: tw.Schedule(func, trace), lambda: nothing)
