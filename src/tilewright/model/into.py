"""Results that are copied into arrays of the caller, where nothing can write there directly.

Either all of them are copied, or one does not fit and an error says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import CallError
from tilewright.runtime.arrays import NotAnArrayError, as_array
from tilewright.runtime.checks import C002, C003, C005, C007
from tilewright.runtime.feeds import unknown_port

__all__ = ["leave"]

Array = NDArray[Any]


def leave(model: str, results: Mapping[str, Any], outputs: Mapping[str, object]) -> None:
    """Copy the results that have a place in `outputs`, by name; raises `CallError`."""
    for name in outputs:
        if name not in results:
            raise unknown_port(model, "output", name, list(results))
    targets = {name: _target(model, name, results[name], outputs[name]) for name in outputs}
    for name, target in targets.items():
        np.copyto(target, results[name])


def _target(model: str, name: str, result: Any, given: object) -> Array:
    facts: dict[str, object] = {"kernel": model, "param": name}
    if not isinstance(result, np.ndarray):
        facts |= {"expected": "no array: the output is a list of maps or arrays, or nothing"}
        raise CallError(C002, facts, hint="leave it out, and take what `run` returns")
    facts["expected"] = f"{result.dtype}{list(result.shape)}"
    try:
        target = given if isinstance(given, np.ndarray) else as_array(given, shares_memory=True)
    except NotAnArrayError as problem:
        raise CallError(C002, {**facts, "found": problem}, hint="pass an array") from None
    facts["found"] = f"{target.dtype}{list(target.shape)}"
    if target.dtype != result.dtype:
        hint = "texts need an array of objects" if result.dtype == object else "pass this type"
        raise CallError(C003, facts, hint=hint)
    if target.shape != result.shape:
        raise CallError(C005, facts, hint="pass an array of this shape")
    if not target.flags.writeable:
        raise CallError(C007, facts, hint="pass a writable array")
    return target
