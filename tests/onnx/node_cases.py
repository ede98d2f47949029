"""The node tests of the `onnx` package: one tiny model each, with inputs and expected outputs."""

from __future__ import annotations

import fnmatch
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

__all__ = ["Case", "node_cases", "operator_of", "with_constants"]

EXPANDED = re.compile(r"_expanded(_ver\d+)?$")


@lru_cache(maxsize=1)
def _all() -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases computes overflows on purpose
        return sorted(load_model_tests(kind="node"), key=lambda case: str(case.name))


def node_cases(pattern: str = "*") -> list[Any]:
    """The cases whose name without `test_` fits a pattern; with `model` and `data_sets`."""
    return [c for c in _all() if fnmatch.fnmatch(c.name.removeprefix("test_"), pattern)]


@dataclass(frozen=True)
class Case:
    """What a case of ONNX has, for cases of our own."""

    name: str
    model: onnx.ModelProto
    data_sets: list[Any]
    rtol: float
    atol: float


def with_constants(case: Any) -> Case:
    """A case whose inputs but the first are constants of the model.

    Cases take axes, shapes and scales as inputs; in models of the world they are constants.
    """
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    infos = list(case.model.graph.input)
    ((given, expected),) = case.data_sets
    kept = [k for k, value in enumerate(given) if k == 0 or not _is_tensor(value)]
    del model.graph.input[:]
    model.graph.input.extend(infos[k] for k in kept)
    for k in set(range(len(given))) - set(kept):
        tensor = onnx.TensorProto()
        held = given[k]
        is_proto = isinstance(held, onnx.TensorProto)
        tensor.CopyFrom(held if is_proto else numpy_helper.from_array(np.asarray(held)))
        tensor.name = infos[k].name
        model.graph.initializer.append(tensor)
    rest = ([given[k] for k in kept], expected)
    return Case(case.name, model, [rest], case.rtol, case.atol)


def _is_tensor(value: Any) -> bool:
    return value is not None and not isinstance(value, list)


def operator_of(case: Any) -> str:
    """What a case is about: its first node, or the operator that its nodes spell out."""
    original = _by_name().get(EXPANDED.sub("", case.name), case)
    return next((str(node.op_type) for node in original.model.graph.node), "nothing")


@lru_cache(maxsize=1)
def _by_name() -> dict[str, Any]:
    return {case.name: case for case in _all()}
