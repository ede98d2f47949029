"""Engines by turns: every round gives each of them one short turn, in a new random order.

Only one engine runs at any moment, and drift of the machine meets all of them alike. Afterwards
their results are compared with each other.
"""

from __future__ import annotations

import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tilewright.contest.process import EngineGoneError, EngineProcess

__all__ = ["Outcome", "TOLERANCE", "compete"]

TURN_SECONDS: Final = 0.1
TOLERANCE: Final = 1e-3
"""How far results may be apart, relative to the greatest element of an output."""

Array = NDArray[Any]


@dataclass
class Outcome:
    """How an engine did; `problem` says why it has no times. Times are seconds per call.

    `error` is the distance to the results of `compared_with`, the first other engine that has some.
    """

    engine: str
    version: str = ""
    load_s: float = 0.0
    samples: list[float] = field(default_factory=list)
    error: float | None = None
    compared_with: str = ""
    problem: str = ""

    @property
    def median_s(self) -> float:
        return statistics.median(self.samples)

    @property
    def min_s(self) -> float:
        return min(self.samples)

    @property
    def std_s(self) -> float:
        return statistics.pstdev(self.samples)

    @property
    def differs(self) -> bool:
        """Whether its results are not those of the others."""
        return self.error is not None and not self.error <= TOLERANCE


def compete(
    models: Mapping[str, Path],
    feeds: Mapping[str, Array],
    threads: int,
    seconds: float,
    tell: Callable[[str], None],
) -> list[Outcome]:
    """Outcomes in the order of `models`, a file for each engine; each runs for about `seconds`."""
    outcomes = {name: Outcome(name) for name in models}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        inputs = folder / "inputs.npz"
        np.savez(inputs, *feeds.values())
        playing: dict[str, EngineProcess] = {}
        for name, outcome in outcomes.items():
            tell(f"{name} loads the model")
            process = stack.enter_context(EngineProcess(name, threads))
            if _loads(process, outcome, models[name], inputs, list(feeds)):
                playing[name] = process
        _take_turns(playing, outcomes, seconds, tell)
        _compare(playing, outcomes, folder)
    return list(outcomes.values())


def _loads(
    process: EngineProcess, outcome: Outcome, model: Path, inputs: Path, names: list[str]
) -> bool:
    try:
        answer = process.load(str(model), str(inputs), names)
    except EngineGoneError as gone:
        answer = {"problem": str(gone)}
    outcome.problem = answer.get("problem", "")
    outcome.version, outcome.load_s = answer.get("version", ""), answer.get("load_s", 0.0)
    return not outcome.problem


def _take_turns(
    playing: dict[str, EngineProcess],
    outcomes: Mapping[str, Outcome],
    seconds: float,
    tell: Callable[[str], None],
) -> None:
    order = random.Random(0)
    start, end = time.monotonic(), time.monotonic() + seconds * len(playing)
    while playing and (time.monotonic() < end or not all(outcomes[n].samples for n in playing)):
        for name in order.sample(list(playing), len(playing)):
            left = max(0.0, end - time.monotonic())
            tell(f"{name} runs; {left:.0f} s of {end - start:.0f} s left")
            try:
                outcomes[name].samples += playing[name].turn(min(TURN_SECONDS, seconds / 2))
            except EngineGoneError as gone:
                outcomes[name].problem = str(gone)
                del playing[name]


def _compare(
    playing: Mapping[str, EngineProcess], outcomes: Mapping[str, Outcome], folder: Path
) -> None:
    results: dict[str, list[Array]] = {}
    for name, process in playing.items():
        path = folder / f"{name}.npz"
        try:
            process.save(str(path))
        except EngineGoneError as gone:
            outcomes[name].problem = str(gone)
            continue
        with np.load(path, allow_pickle=False) as arrays:
            results[name] = [arrays[key] for key in arrays.files]
    for name, found in results.items():
        other = next((o for o in results if o != name), None)
        if other is not None:
            outcomes[name].error = distance(found, results[other])
            outcomes[name].compared_with = other


def distance(found: Sequence[Array], expected: Sequence[Array]) -> float:
    """The greatest difference, relative to the greatest element of its output."""
    if [a.shape for a in found] != [b.shape for b in expected]:
        return math.inf
    worst = 0.0
    for a, b in zip(found, expected, strict=True):
        if not a.size:
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(invalid="ignore"):
            apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
        scale = float(np.abs(y[np.isfinite(y)]).max(initial=0.0)) or 1.0
        worst = max(worst, float(np.nan_to_num(apart, nan=math.inf, posinf=math.inf).max()) / scale)
    return worst
