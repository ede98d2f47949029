"""TVM with what MetaSchedule has found: its best kernel in each layout, weights packed ahead.

It takes part in `python -m benchmarks tuner rivals` alone, which tunes it before: the folder with a
folder of records for each layout is METASCHEDULE_FOLDER. Without records TVM's kernels are loops as
they are written, which would say nothing.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any, Final

import tvm
from tvm import relax
from tvm.s_tir import meta_schedule as ms

from benchmarks.engines import NOTHING, Runner, Variants, empty
from benchmarks.kinds import AnyWorkload
from benchmarks.numbers import Arrays
from benchmarks.tuner.metaschedule.forms import FORMS, Form, forms_of
from benchmarks.tuner.metaschedule.found import RECORDS, WORKLOADS
from benchmarks.tuner.metaschedule.programs import program_of, target_of
from benchmarks.workloads import Workload

PEER: Final = True

_threads: list[int] = []


def start(threads: int) -> dict[str, str]:
    _threads.append(threads)
    return {"tvm": tvm.__version__}


def variants(workload: AnyWorkload) -> Variants:
    folder = os.environ.get("METASCHEDULE_FOLDER")
    if folder is None or not isinstance(workload, Workload):
        return NOTHING
    found = {form: Path(folder) / form for form in forms_of(workload)}
    return {
        form: partial(_build, workload, FORMS[form], path)
        for form, path in found.items()
        if (path / RECORDS).exists()
    }


def _build(workload: Workload, form: Form, folder: Path, arrays: Arrays) -> Runner:
    target = target_of(os.environ["METASCHEDULE_CPU"], _threads[0])
    program = program_of(workload, form.name)
    kernel, pack = _best(program, target, folder)
    given = [_tensor(array) for array in form.given(arrays)]
    if pack is not None:
        packed = _tensor(empty(*map(int, pack.params[-1].shape)))
        tvm.compile(pack, target)[PACK](given[WEIGHTS], packed)
        given[WEIGHTS] = packed
    result = _tensor(empty(*map(int, program.params[-1].shape)))
    run = tvm.compile(kernel, target)[MAIN]
    return Runner(partial(run, *given, result), lambda: form.taken(result.numpy()))


def _best(program: Any, target: Any, folder: Path) -> tuple[Any, Any]:
    """The best kernel by the records, and what packs its weights, if they are not as they were."""
    database = ms.database.JSONDatabase(str(folder / WORKLOADS), str(folder / RECORDS))
    module = database.query_ir_module(ms.tune_context._normalize_mod(program), target, "main")
    (found,) = module.functions.values()
    return found, None
