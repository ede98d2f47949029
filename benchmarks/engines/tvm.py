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

from benchmarks.engines import NOTHING, Runner, Variants
from benchmarks.kinds import AnyWorkload
from benchmarks.numbers import Arrays
from benchmarks.tuner.metaschedule.forms import FORMS, WEIGHTS, Form, forms_of
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
        if (path / RECORDS).exists() and (path / RECORDS).stat().st_size
    }


def _build(workload: Workload, form: Form, folder: Path, arrays: Arrays) -> Runner:
    target = target_of(os.environ["METASCHEDULE_CPU"], _threads[0])
    program = program_of(workload, form.name)
    kernel, pack = _best(program, target, folder)
    given = [tvm.runtime.tensor(array) for array in form.given(arrays)]
    if pack is not None:
        packed = _empty(pack)
        _compiled(pack, target)(given[WEIGHTS], packed)
        given[WEIGHTS] = packed
    result = _empty(program)
    return Runner(
        partial(_compiled(kernel, target), *given, result), lambda: form.taken(result.numpy())
    )


def _best(program: Any, target: Any, folder: Path) -> tuple[Any, Any]:
    """The best kernel by the records, and what packs its weights, if they do not stay as they are.

    MetaSchedule measures kernels with their weights packed; `SplitLayoutRewritePreproc` takes the
    packing out of a function that a graph calls, so there is a graph of one call.
    """
    database = ms.database.JSONDatabase(str(folder / WORKLOADS), str(folder / RECORDS))
    module = tvm.IRModule({"main": program})
    found = database.query_ir_module(module, target, "main")["main"]
    types = [relax.TensorType(list(map(int, p.shape)), "float32") for p in found.params]
    values = [relax.Var(f"value_{k}", own) for k, own in enumerate(types[:-1])]
    graph = relax.BlockBuilder()
    called = graph.add_func(found, "kernel")
    with graph.function("graph", values):
        graph.emit_func_output(graph.emit(relax.call_tir(called, values, types[-1])))
    split = relax.transform.SplitLayoutRewritePreproc()(graph.get())
    functions = {name.name_hint: function for name, function in split.functions_items()}
    return functions.get("kernel_prepacked", found), functions.get("kernel_weight_prepack")


def _empty(function: Any) -> Any:
    """What a function writes: its last parameter."""
    return tvm.runtime.empty(tuple(map(int, function.params[-1].shape)), "float32")


def _compiled(function: Any, target: Any) -> Any:
    return tvm.compile(function, target)[function.attrs["global_symbol"]]
