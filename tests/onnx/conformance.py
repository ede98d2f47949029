"""How the node tests of the `onnx` package fare: as native code, by reference, or not at all."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from tilewright.frontend.onnx import import_model
from tilewright.frontend.onnx.registry import Unknown
from tilewright.frontend.onnx.whole import WholeModel
from tilewright.graph import interpret, verify_graph

__all__ = ["Outcome", "by_operator", "compiled", "interpreted", "outcomes"]

UNDECIDED = ("Bernoulli", "ImageDecoder")
"""Operators whose cases say nothing: results are random, or need a library for images."""

Run = Callable[[list[Any]], list[Any]]
Prepare = Callable[[Any], tuple[Run, list[str]]]
"""A model as a function of a list of inputs, and why parts of it run by reference."""


@dataclass(frozen=True)
class Outcome:
    """One case: `kind` is native, reference or failing; `why` says what is not native."""

    name: str
    operator: str
    kind: str
    why: str = ""


def interpreted(model: Any) -> tuple[Run, list[str]]:
    """By the meaning of its graph: what was imported, without any compilation."""
    try:
        made = import_model(model)
    except Unknown as unknown:
        whole = WholeModel(model, str(unknown))
        names = list(whole.inputs)
        return lambda values: whole.run(dict(zip(names, values, strict=True))), [str(unknown)]
    graph = verify_graph(made.graph)
    names = [value.name for value in graph.inputs]
    return (
        lambda values: interpret(graph, dict(zip(names, values, strict=True))),
        list(made.by_reference.values()),
    )


def compiled(model: Any) -> tuple[Run, list[str]]:
    """As `tilewright.backend` runs it."""
    from tilewright import backend

    made = backend.prepare(model)
    return lambda values: list(made.run(values)), list(made.module.by_reference.values())


def outcomes(cases: Iterable[Any], prepare: Prepare) -> Iterable[Outcome]:
    """What becomes of each case."""
    for case in cases:
        operator = next((n.op_type for n in case.model.graph.node), "nothing")
        if any(name.lower() in case.name.replace("_", "") for name in UNDECIDED):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a part runs by reference is told as `kind`
                run, reasons = prepare(case.model)
                for inputs, expected in case.data_sets:
                    _require_same(run(_arrays(inputs)), _arrays(expected))
        except Exception as problem:  # noqa: BLE001  (whatever it is, the case fails)
            text = f"{type(problem).__name__}: {problem}".split("\n")[0]
            yield Outcome(case.name, operator, "failing", text)
        else:
            yield Outcome(
                case.name, operator, "reference" if reasons else "native", "; ".join(reasons)
            )


def by_operator(found: Iterable[Outcome]) -> dict[str, Counter[str]]:
    """How many cases of each operator end in which way."""
    table: dict[str, Counter[str]] = {}
    for outcome in found:
        table.setdefault(outcome.operator, Counter())[outcome.kind] += 1
    return dict(sorted(table.items()))


def _arrays(values: Iterable[Any]) -> list[Any]:
    """Types that NumPy lacks are given as ONNX's own tensors."""
    found = [numpy_helper.to_array(v) if isinstance(v, TensorProto) else v for v in values]
    return [_arrays(v) if isinstance(v, list) else v for v in found]


def _require_same(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected), "the number of outputs differs"
    for a, b in zip(found, expected, strict=True):
        if isinstance(b, list):
            _require_same(list(a), b)
        elif b is None or a is None:
            assert a is b
        else:
            _require_close(np.asarray(a), np.asarray(b))


def _require_close(found: Any, wanted: Any) -> None:
    texts = {found.dtype.kind, wanted.dtype.kind} <= set("OSUT")
    assert found.shape == wanted.shape
    assert texts or found.dtype == wanted.dtype
    if texts or wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
        return
    narrow = wanted.dtype.itemsize <= 2
    wide = [a if a.dtype.kind == "c" else a.astype(np.float64) for a in (found, wanted)]
    np.testing.assert_allclose(*wide, rtol=1e-3, atol=1e-2 if narrow else 1e-5)
