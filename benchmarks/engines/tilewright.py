"""tilewright through its public face: small programs and models, the analytic draft, no tuning.

Only a database that TILEWRIGHT_DATABASE names is looked into: that is how a tuned one takes part.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

import tilewright as tw
from benchmarks.engines import NOTHING, Runner, Variants, empty
from benchmarks.kinds import AnyWorkload, feeds
from benchmarks.models.workload import ModelWorkload
from benchmarks.numbers import Arrays
from benchmarks.programs import PROGRAMS, with_consumers
from benchmarks.workloads import Workload
from tilewright import options
from tilewright.calibration import with_machine_model
from tilewright.model.compile_arguments import schedules_of
from tilewright.schedule.source import ScheduleSource
from tilewright.target import Target

PEER: Final = False
ARTEFACT: Final = "model.tw"
SMALL: Final = "small.tw"

_threads: list[int] = []


def start(threads: int) -> dict[str, str]:
    if not hasattr(tw, "build"):
        raise ImportError("this version of tilewright has no `build`")
    _threads.append(threads)
    return {"tilewright": tw.__version__}


def variants(workload: AnyWorkload) -> Variants:
    name = "draft" if _database() is False else "records"
    if workload.path or not isinstance(workload, Workload):
        return {name: partial(_build_file, workload)}
    if workload.op == "trace":
        return {"replay": partial(_trace, workload.shape[0])}
    return {name: partial(_build, workload)} if workload.op in PROGRAMS else NOTHING


def _database() -> Path | Literal[False]:
    """The database that this process was given; not the one that the user may have."""
    own = options.database() if "TILEWRIGHT_DATABASE" in os.environ else None
    return False if own is None else own


def _schedules() -> ScheduleSource | None:
    """The records of that database for a program; None is its draft."""
    database = _database()
    if database is False:
        return None
    return schedules_of(database, with_machine_model(Target.host(), None), _threads[0])


def _build(workload: Workload, arrays: Arrays) -> Runner:
    program = PROGRAMS[workload.op](*workload.shape)
    constants = {name: arrays[name] for name in program.constants}
    kernel = tw.build(program.func, threads=_threads[0], trace=_schedules(), constants=constants)
    out = empty(*workload.result_shape)
    return Runner(partial(kernel, *(arrays[name] for name in program.inputs), out), lambda: out)


def _build_file(workload: AnyWorkload, arrays: Arrays) -> Runner:
    """Results go to the same arrays in every run, as those of peers do."""
    module, given = _compile(workload), feeds(workload, arrays)
    kept = {
        port.name: empty(*a.shape) if a.dtype == np.float32 else np.empty_like(a)
        for port, a in zip(module.outputs, module.run(given), strict=True)
    }
    return Runner(
        partial(module.run_into, given, kept), lambda: list(kept.values()), settle=_settle
    )


def _compile(workload: AnyWorkload) -> tw.Module:
    """With a cache for this model alone, no other has compiled kernels for it; layers have none."""
    if not isinstance(workload, ModelWorkload):
        return tw.compile(workload.path, threads=_threads[0], cache=False, database=_database())
    folder = options.cache_dir() / f"{workload.name} on {_threads[0]}"
    return tw.compile(workload.path, threads=_threads[0], cache=folder, database=_database())


def _settle() -> None:
    """Let the cache be written: it would go on while others have their turn, and be cut off."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def deploy(workload: ModelWorkload, scratch: str) -> dict[str, Any]:
    """Compile and write the artefact, which a process that never compiled will open."""
    start = time.perf_counter()
    module = _compile(workload)
    compile_s = time.perf_counter() - start
    path = Path(scratch) / ARTEFACT
    module.save(path)
    return {
        "compile_again_s": compile_s,
        "artefact_bytes": path.stat().st_size,
        "by_reference": [node.to_dict() for node in module.by_reference],
    }


def open_model(_workload: ModelWorkload, arrays: Arrays, scratch: str) -> Callable[[], Any]:
    return partial(tw.load(Path(scratch) / ARTEFACT).run, arrays)


def compile_model(workload: ModelWorkload, arrays: Arrays, scratch: str) -> Callable[[], Any]:
    """Compile as if for the first time; `open_model` finds what is written."""
    return _compiled_to(Path(scratch) / ARTEFACT, workload, arrays, small=False)


def compile_small(workload: ModelWorkload, arrays: Arrays, scratch: str) -> Callable[[], Any]:
    """The same for a small file and `open_small`."""
    return _compiled_to(Path(scratch) / SMALL, workload, arrays, small=True)


def open_small(_workload: ModelWorkload, arrays: Arrays, scratch: str) -> Callable[[], Any]:
    return partial(tw.load(Path(scratch) / SMALL).run, arrays)


def _compiled_to(
    path: Path, workload: ModelWorkload, arrays: Arrays, *, small: bool
) -> Callable[[], Any]:
    module = tw.compile(
        workload.path, threads=_threads[0], cache=False, small=small, database=_database()
    )
    module.save(path)
    return partial(module.run, arrays)


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
