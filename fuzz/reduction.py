"""Making a finding small while it stays the same kind of finding.

Steps are tried from coarse to fine, and again as long as one of them helps: one run, one output,
nodes cut away (what they gave becomes an input), attributes dropped, sizes made smaller, values
made simple, symbolic sizes made numbers. Each try is judged in a process apart.
"""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from fuzz.apart import Limits
from fuzz.campaign import judge_apart
from fuzz.case import Array, Case, Setting
from fuzz.judge import Verdict
from fuzz.stepwise import free_names, run_stepwise
from fuzz.values import is_float, number_of, wide

__all__ = ["candidates", "reduce_case"]

MAX_TRIES: Final = 200
MAX_SECONDS: Final = 60.0

Judge = Callable[[Case], Verdict]


def reduce_case(
    case: Case, verdict: Verdict, *, judge: Judge | None = None, limits: Limits | None = None
) -> tuple[Case, Verdict]:
    """A smaller case with a verdict of the same signature; at worst the same one."""
    if judge is not None:
        return _reduced(case, verdict, judge)
    waiting: deque[Case] = deque()
    with closing(judge_apart(_taken(waiting), limits)) as verdicts:

        def look(smaller: Case) -> Verdict:
            waiting.append(smaller)
            return next(verdicts)

        return _reduced(case, verdict, look)


def _taken(waiting: deque[Case]) -> Iterator[Case]:
    while waiting:
        yield waiting.popleft()


def _reduced(case: Case, verdict: Verdict, look: Judge) -> tuple[Case, Verdict]:
    end, tries = time.monotonic() + MAX_SECONDS, 0
    for make in candidates():
        changed = True
        while changed:
            changed = False
            for smaller in _safely(make, case):
                if tries >= MAX_TRIES or time.monotonic() > end:
                    return case, verdict
                tries += 1
                found = look(smaller)
                if found.is_finding and found.signature == verdict.signature:
                    case, verdict, changed = smaller, found, True
                    break
    return case, verdict


Maker = Callable[[Case], Iterator[Case]]


def _safely(make: Maker, case: Case) -> Iterator[Case]:
    """A step that does not suit a model gives up; the others go on."""
    try:
        yield from make(case)
    except Exception:  # noqa: BLE001  (an oracle may refuse to tell the values of a part)
        return


def candidates() -> tuple[Maker, ...]:
    """The steps in order; nodes come again at the end, when they have become simpler."""
    return (
        _one_run, _one_output, _cut_before, _without_node, _plain_setting, _without_attribute,
        _smaller_sizes, _simple_values, _fixed_sizes, _one_output, _cut_before, _without_node,
        _smaller_sizes, _constants_as_inputs,
    )  # fmt: skip


def _one_run(case: Case) -> Iterator[Case]:
    if len(case.runs) > 1:
        yield from (replace(case, runs=[feeds]) for feeds in case.runs)


def _one_output(case: Case) -> Iterator[Case]:
    outputs = list(case.model.graph.output)
    if len(outputs) > 1:
        yield from (_pruned(case, case.model.graph.node, [output]) for output in outputs)


def _cut_before(case: Case) -> Iterator[Case]:
    """Everything before a place is gone: its values are inputs. Later places come first."""
    nodes = list(case.model.graph.node)
    for at in range(len(nodes) - 1, 0, -1):
        yield _without(case, nodes[:at])


def _without_node(case: Case) -> Iterator[Case]:
    """One node less: at the end, its inputs are the outputs; elsewhere its results are inputs."""
    nodes = list(case.model.graph.node)
    if len(nodes) < 2:
        return
    for node in nodes:
        yield _without(case, [node])
    made = {name for node in nodes for name in node.output}
    last = nodes[-1]
    values = [run_stepwise(case.model, feeds) for feeds in case.runs]
    for name in last.input:
        if name in made and isinstance(values[0][name], np.ndarray):
            info = _info(name, [v[name] for v in values])
            yield _pruned(case, nodes[:-1], [info])


def _without(case: Case, gone: list[onnx.NodeProto]) -> Case:
    """The results of some nodes become inputs."""
    values = [run_stepwise(case.model, feeds) for feeds in case.runs]
    names = {name for node in gone for name in node.output if name}
    rest = [node for node in case.model.graph.node if not names & set(node.output)]
    read = {name for node in rest for name in (*node.input, *free_names(node))}
    outputs = [o for o in case.model.graph.output if o.name not in names]
    if not outputs or any(not isinstance(values[0][n], np.ndarray) for n in names & read):
        raise ValueError("a sequence, or nothing is left")
    extra = [_info(n, [v[n] for v in values]) for n in sorted(names & read)]
    runs = [
        dict(feeds) | {i.name: v[i.name] for i in extra}
        for feeds, v in zip(case.runs, values, strict=True)
    ]
    return _pruned(replace(case, runs=runs), rest, outputs, extra)


def _info(name: str, arrays: list[Any]) -> onnx.ValueInfoProto:
    """A type that holds for all runs."""
    shapes = np.array([a.shape for a in arrays]).reshape(len(arrays), -1)
    dims = [int(s[0]) if (s == s[0]).all() else f"{name}_{k}" for k, s in enumerate(shapes.T)]
    return helper.make_tensor_value_info(name, number_of(arrays[0].dtype), dims)


def _pruned(
    case: Case, nodes: Any, outputs: Any, extra: Any = (), initializers: Any = None
) -> Case:
    """Only what the outputs need."""
    needed, kept = {o.name for o in outputs}, []
    for node in reversed(list(nodes)):
        if needed & set(node.output):
            kept.append(node)
            needed.update((*node.input, *free_names(node)))
    old = case.model
    known = [*old.graph.input, *extra]
    inputs = [i for i in known if i.name in needed]
    tensors = old.graph.initializer if initializers is None else initializers
    graph = helper.make_graph(
        kept[::-1], "reduced", inputs, list(outputs), [t for t in tensors if t.name in needed]
    )
    used = {node.op_type for node in kept if node.domain}
    model = helper.make_model(
        graph,
        opset_imports=[o for o in old.opset_import if not o.domain or used],
        ir_version=old.ir_version,
        functions=[f for f in old.functions if f.name in used],
    )
    names = {i.name for i in inputs}
    runs = [{n: a for n, a in feeds.items() if n in names} for feeds in case.runs]
    return replace(case, model=model, runs=runs)


def _plain_setting(case: Case) -> Iterator[Case]:
    """As tilewright compiles by default, on one thread."""
    plain = Setting()
    for name in ("threads", "layouts", "accuracy"):
        if getattr(case.setting, name) != getattr(plain, name):
            setting = replace(case.setting, **{name: getattr(plain, name)})
            yield replace(case, setting=setting)


def _without_attribute(case: Case) -> Iterator[Case]:
    for k, node in enumerate(case.model.graph.node):
        for name in [a.name for a in node.attribute if not a.HasField("g")]:
            model = copy.deepcopy(case.model)
            changed = model.graph.node[k]
            left = [a for a in changed.attribute if a.name != name]
            del changed.attribute[:]
            changed.attribute.extend(left)
            yield replace(case, model=model)


def _smaller_sizes(case: Case) -> Iterator[Case]:
    """One extent, wherever it appears in inputs and constants, is cut to a smaller one."""
    tensors = {t.name: numpy_helper.to_array(t) for t in case.model.graph.initializer}
    arrays = [*tensors.values(), *(a for feeds in case.runs for a in feeds.values())]
    for size in sorted({d for a in arrays for d in a.shape if d > 1}, reverse=True):
        for less in sorted({1, 2, 3, size // 2, size - 1} - {0}):
            if less < size:
                yield _resized(case, tensors, size, less)


def _resized(case: Case, tensors: dict[str, Array], size: int, less: int) -> Case:
    def cut(array: Array) -> Array:
        return array[tuple(slice(less) if d == size else slice(None) for d in array.shape)]

    model = copy.deepcopy(case.model)
    del model.graph.initializer[:]
    model.graph.initializer.extend(
        numpy_helper.from_array(np.ascontiguousarray(cut(a)).reshape(cut(a).shape), n)
        for n, a in tensors.items()
    )
    for info in (*model.graph.input, *model.graph.output):
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_value == size:
                dim.dim_value = less
    runs = [{n: cut(a).copy() for n, a in feeds.items()} for feeds in case.runs]
    return replace(case, model=model, runs=runs)


def _simple_values(case: Case) -> Iterator[Case]:
    """Inputs and float constants of zeros, ones, or few digits."""
    for name in case.runs[0] if case.runs else ():
        for simple in _simpler([feeds[name] for feeds in case.runs]):
            runs = [dict(f) | {name: a} for f, a in zip(case.runs, simple, strict=True)]
            yield replace(case, runs=runs)
    for k, proto in enumerate(case.model.graph.initializer):
        array = numpy_helper.to_array(proto)
        for simple in _simpler([array]) if is_float(array.dtype) else ():
            model = copy.deepcopy(case.model)
            model.graph.initializer[k].CopyFrom(numpy_helper.from_array(simple[0], proto.name))
            yield replace(case, model=model)


def _simpler(arrays: list[Array]) -> Iterator[list[Array]]:
    kind = arrays[0].dtype
    if kind.kind in "OSUT":
        return
    makers: list[Callable[[Array], Array]] = [np.zeros_like, np.ones_like]
    if is_float(kind):
        makers += [partial(_rounded, digits=digits) for digits in (0, 2)]
    for make in makers:
        with np.errstate(all="ignore"):
            made = [np.asarray(make(a)).reshape(a.shape) for a in arrays]
        if _simplicity(made) < _simplicity(arrays):
            yield made


def _rounded(array: Array, digits: int) -> Array:
    return np.asarray(np.round(wide(array), digits).astype(array.dtype))


def _simplicity(arrays: list[Array]) -> int:
    """How many characters the values take."""
    return sum(len(str(v)) for a in arrays for v in set(a.reshape(-1).tolist()))


def _fixed_sizes(case: Case) -> Iterator[Case]:
    """Numbers in place of symbolic sizes, if one run is left."""
    if len(case.runs) != 1:
        return
    model = copy.deepcopy(case.model)
    for info in model.graph.input:
        shape = case.runs[0][info.name].shape
        for dim, size in zip(info.type.tensor_type.shape.dim, shape, strict=True):
            dim.Clear()
            dim.dim_value = size
    if model != case.model:
        yield replace(case, model=model)


def _constants_as_inputs(case: Case) -> Iterator[Case]:
    """A constant of floats is rarely why: as an input it is easier to read."""
    for k, proto in enumerate(case.model.graph.initializer):
        array = numpy_helper.to_array(proto)
        if is_float(array.dtype):
            model = copy.deepcopy(case.model)
            del model.graph.initializer[k]
            model.graph.input.append(_info(proto.name, [array]))
            runs = [dict(feeds) | {proto.name: array} for feeds in case.runs]
            yield replace(case, model=model, runs=runs)
