"""Whether two results are the same, and how much rounding alone may change one.

Floats agree within the tolerances that `tilewright.testing.accuracy` states for small graphs; NaN
must be where NaN is, and infinities where these are. The sign of a zero is not compared. Integers,
truth values and texts are equal. What differs more may still come from rounding that the graph
amplifies (`spread`): a sum that is rounded one way or the other before it is compared or divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fuzz.case import Array, Case
from fuzz.stepwise import Noise, run_stepwise
from fuzz.values import UNIT, is_float, wide
from tilewright.testing.accuracy import REFERENCE

__all__ = ["Place", "Spread", "difference", "differences", "spread"]

NOISY_RUNS: Final = 6
DECIDING_RUNS: Final = 20
"""More of them, since each may leave a decision as it is."""

UNITS: Final = 2.0
MARGIN: Final = 8.0
Place = tuple[int, int]
"""The number of a run, and that of an output."""

Spread = list[list[Array | None]]
"""For each output of each run, how far rounding moved each element; None if it changed shape."""


def difference(
    found: Sequence[Sequence[Any]], wanted: Sequence[Sequence[Any]], allowed: Spread | None = None
) -> str:
    """What is different first, in a line; nothing if results agree."""
    return next(iter(differences(found, wanted, allowed).values()), "")


def differences(
    found: Sequence[Sequence[Any]], wanted: Sequence[Sequence[Any]], allowed: Spread | None = None
) -> dict[Place, str]:
    """What is different, by run and output."""
    told: dict[Place, str] = {}
    for run, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        if len(ours) != len(theirs):
            return {(run, -1): f"{len(ours)} outputs instead of {len(theirs)}"}
        for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            extra = None if allowed is None else allowed[run][place]
            if allowed is not None and extra is None:
                continue
            text = _difference(np.asarray(a), np.asarray(b), extra)
            if text:
                told[run, place] = f"output {place} of run {run}: {text}"
    return told


def _difference(a: Array, b: Array, extra: Array | None) -> str:
    texts = {a.dtype.kind, b.dtype.kind} <= set("OSUT")
    if a.shape != b.shape:
        return f"shape {a.shape} instead of {b.shape}"
    if a.dtype != b.dtype and not texts:
        return f"type {a.dtype} instead of {b.dtype}"
    if texts or not is_float(a.dtype):
        same = a == b
        if extra is not None and not texts:
            same |= np.abs(a.astype(np.float64) - b.astype(np.float64)) <= extra
    else:
        same = _close(wide(a), wide(b), a.dtype, extra)
    if np.all(same):
        return ""
    at = tuple(int(i) for i in np.argwhere(~np.asarray(same).reshape(a.shape))[0])
    count = int(np.size(same) - np.count_nonzero(same))
    return f"{a[at]!r} instead of {b[at]!r} at {at}, {count} of {a.size} elements differ"


def _close(a: Array, b: Array, dtype: np.dtype[Any], extra: Array | None) -> Array:
    unit = UNIT[dtype]
    relative, absolute = REFERENCE.get(dtype.itemsize, (4 * unit, 4 * unit))
    relative = max(relative, 4 * unit)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= absolute + relative * np.abs(b)
        if extra is not None:
            near |= np.abs(a - b) <= absolute + extra
            near |= np.isinf(extra)
    return np.asarray(near | (a == b) | (np.isnan(a) & np.isnan(b)))


def spread(case: Case) -> Spread | None:
    """How far rounding errors move each output; None if the model cannot be taken apart."""
    names = [output.name for output in case.model.graph.output]
    found: Spread = []
    for feeds in case.runs:
        try:
            base = run_stepwise(case.model, feeds)
            small, large = (
                [run_stepwise(case.model, feeds, Noise(s, units)) for s in range(count)]
                for units, count in ((UNITS, NOISY_RUNS), (MARGIN * UNITS, DECIDING_RUNS))
            )
        except Exception:  # noqa: BLE001  (an oracle refuses a part: no statement is possible)
            return None
        found.append([_moved(base[n], [v[n] for v in small], [v[n] for v in large]) for n in names])
    return found


def _moved(base: Any, small: Sequence[Any], large: Sequence[Any]) -> Array | None:
    """How far errors move a value: numbers in proportion, decisions where large errors do."""
    if not isinstance(base, np.ndarray) or any(np.shape(v) != base.shape for v in (*small, *large)):
        return None
    if base.dtype.kind in "OSUT":
        return np.zeros(base.shape)
    return np.asarray(np.maximum(MARGIN * _farthest(base, small), _farthest(base, large)))


def _farthest(base: Array, noisy: Sequence[Any]) -> Array:
    exact = base.astype(np.float64)
    moved = np.zeros(base.shape)
    for value in noisy:
        other = np.asarray(value).astype(np.float64)
        with np.errstate(invalid="ignore"):
            change = np.where(other == exact, 0.0, np.abs(other - exact))
        change = np.where(np.isnan(other) & np.isnan(exact), 0.0, change)
        moved = np.maximum(moved, np.where(np.isnan(change), np.inf, change))
    return moved
