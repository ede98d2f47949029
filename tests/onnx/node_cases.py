"""The node tests of the `onnx` package: one tiny model each, with inputs and expected outputs."""

from __future__ import annotations

import fnmatch
import warnings
from functools import lru_cache
from typing import Any

__all__ = ["node_cases"]


@lru_cache(maxsize=1)
def _all() -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases computes overflows on purpose
        return sorted(load_model_tests(kind="node"), key=lambda case: str(case.name))


def node_cases(pattern: str = "*") -> list[Any]:
    """The cases whose name without `test_` fits a pattern; with `model` and `data_sets`."""
    return [c for c in _all() if fnmatch.fnmatch(c.name.removeprefix("test_"), pattern)]
