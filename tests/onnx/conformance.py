"""How the node tests of the `onnx` package fare: as native code, by reference, or not at all."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from tests.onnx.node_cases import operator_of
from tilewright.frontend.onnx import import_model
from tilewright.frontend.onnx.reference.whole import WholeModel
from tilewright.frontend.onnx.registry import Unknown
from tilewright.graph import interpret, verify_graph
from tilewright.unsupported import Unsupported

__all__ = ["Outcome", "by_operator", "by_value", "compiled", "failing", "interpreted"]
__all__ += ["outcome", "outcomes"]

RANDOM = "test_bernoulli"
"""What the names of cases with random results begin with: only their types are compared."""

ROUNDED = {"bfloat16": 2**-6, "float16": 2**-9}
"""Two units of the last place, which the runner of ONNX grants to bfloat16 as well."""

Run = Callable[[list[Any]], list[Any]]
Prepare = Callable[[Any], tuple[Run, Callable[[], list[str]]]]
"""A model as a function of a list of inputs, and why parts of it have run by reference."""


@dataclass(frozen=True)
class Outcome:
    """One case: `kind` is native, reference or failing; `why` says what is not native."""

    name: str
    operator: str
    kind: str
    why: str = ""


def interpreted(model: Any) -> tuple[Run, Callable[[], list[str]]]:
    """By the meaning of its graph: what was imported, without any compilation."""
    try:
        made = import_model(model)
    except Unknown as unknown:
        return by_value(model, str(unknown))
    graph = verify_graph(made.graph)
    names = [value.name for value in graph.inputs]
    return (
        lambda values: interpret(graph, dict(zip(names, values, strict=True))),
        lambda: _texts(made.by_reference),
    )


def by_value(model: Any, reason: str = "it is asked for") -> tuple[Run, Callable[[], list[str]]]:
    """Node by node, as models run that have no graph."""
    whole = WholeModel(model, reason)
    names = list(whole.inputs)
    return lambda values: whole.run(dict(zip(names, values, strict=True))), lambda: [whole.reason]


def compiled(model: Any) -> tuple[Run, Callable[[], list[str]]]:
    """As `tilewright.backend` runs it."""
    from tilewright import backend

    made = backend.prepare(model)
    return lambda values: list(made.run(values)), lambda: _texts(made.module.by_reference)


def _texts(nodes: Sequence[Unsupported]) -> list[str]:
    """Why nodes run by reference; for a model that does as a whole, only that."""
    whole = [node.reason for node in nodes if not node.op]
    return whole or list(dict.fromkeys(f"{node.operator}: {node.reason}" for node in nodes))


def outcomes(cases: Iterable[Any], prepare: Prepare) -> Iterable[Outcome]:
    """What becomes of each case."""
    for case in cases:
        yield outcome(case, prepare)


def outcome(case: Any, prepare: Prepare) -> Outcome:
    """What becomes of a case."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a part runs by reference is told as `kind`
            run, reasons = prepare(case.model)
            for inputs, expected in case.data_sets:
                _require_same(run(_arrays(inputs)), _arrays(expected), case)
    except Exception as problem:  # noqa: BLE001  (whatever it is, the case fails)
        return failing(case, f"{type(problem).__name__}: {problem}")
    why = reasons()
    return Outcome(case.name, operator_of(case), "reference" if why else "native", "; ".join(why))


def failing(case: Any, why: str) -> Outcome:
    """A case that does not give what it should."""
    lines = [line.strip() for line in why.splitlines() if line.strip()]
    return Outcome(case.name, operator_of(case), "failing", "; ".join(lines[:6]))


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


def _require_same(found: list[Any], expected: list[Any], case: Any) -> None:
    assert len(found) == len(expected), "the number of outputs differs"
    for a, b in zip(found, expected, strict=True):
        if isinstance(b, list):
            _require_same(list(a), b, case)
        elif b is None or a is None:
            assert a is b, f"expected {b}, found {a}"
        else:
            _require_close(np.asarray(a), np.asarray(b), case)


def _require_close(found: Any, wanted: Any, case: Any) -> None:
    texts = {found.dtype.kind, wanted.dtype.kind} <= set("OSUT")
    assert found.shape == wanted.shape, f"expected shape {wanted.shape}, found {found.shape}"
    assert texts or found.dtype == wanted.dtype, f"expected {wanted.dtype}, found {found.dtype}"
    if case.name.startswith(RANDOM):
        return
    if texts or wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
        return
    wide = [a if a.dtype.kind == "c" else a.astype(np.float64) for a in (found, wanted)]
    rtol = max(case.rtol, ROUNDED.get(wanted.dtype.name, 0.0))
    np.testing.assert_allclose(*wide, rtol=rtol, atol=case.atol)
