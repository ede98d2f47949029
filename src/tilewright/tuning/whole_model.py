"""The whole model, drafted and tuned, by turns: what decides whether a winner is believed.

A kernel alone meets other caches than inside of a model. So the tuned model runs beside the drafted
one, kernel by kernel: points that do not pay there are withdrawn, and a model that is slower as a
whole keeps its draft.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tilewright.errors import TilewrightWarning
from tilewright.feeds.first_run import first_run
from tilewright.model.module import Module

if TYPE_CHECKING:
    from tilewright.model.sources import Source

__all__ = ["Compared", "compared", "kernel_times", "made_up_feeds", "peers_ms"]

TURN_SECONDS: Final = 0.05
ROUNDS: Final = 15
LEAST_ROUNDS: Final = 5
PEER_SECONDS: Final = 2.0
KERNEL_SECONDS: Final = 3.0
PROFILE_SECONDS: Final = 0.02
"""Of one turn of a model for the times of its kernels."""
LEAST_RUNS: Final = 2
"""Of such a turn."""
LEAST_TURNS, MOST_TURNS = 4, 40
UNDISTURBED: Final = 0.25
"""Neighbours make runs longer and never shorter."""
LIMIT_SECONDS: Final = 20.0
"""After so long, a comparison has enough turns."""


@dataclass(frozen=True)
class Compared:
    """Milliseconds of a run, drafted and tuned: medians of turns that alternate."""

    drafted_ms: float
    tuned_ms: float

    @property
    def gain(self) -> float:
        """How many times as fast as drafted."""
        return self.drafted_ms / self.tuned_ms


def made_up_feeds(module: Module, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Arrays that a model takes."""
    return first_run(module, sizes=[f"{name}={size}" for name, size in sizes.items()]).feeds


def compared(drafted: Module, tuned: Module, feeds: dict[str, Any]) -> Compared:
    """Both models by turns: medians of the best run of each turn."""
    modules = drafted, tuned
    times: list[list[float]] = [[], []]
    begin = time.perf_counter()
    for turn in range(ROUNDS):
        if turn >= LEAST_ROUNDS and time.perf_counter() - begin > LIMIT_SECONDS:
            break
        for k in (0, 1) if turn % 2 else (1, 0):
            times[k].append(_best_run(modules[k], feeds))
    return Compared(float(np.median(times[0])) * 1e3, float(np.median(times[1])) * 1e3)


def _best_run(module: Module, feeds: dict[str, Any]) -> float:
    """The fastest run of one turn, in seconds; the first run finds the caches of another model."""
    module.run(feeds)
    best, end = np.inf, time.perf_counter() + TURN_SECONDS
    while True:
        begin = time.perf_counter()
        module.run(feeds)
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            return float(best)


def kernel_times(
    modules: Sequence[Module], feeds: dict[str, Any], seconds: float = KERNEL_SECONDS
) -> dict[str, list[float]]:
    """Nanoseconds of one run of each kernel inside of models that take turns for a while.

    Kernels that all of them have, by symbol: means over places, of the quarter of runs that was
    least disturbed.
    """
    found: list[dict[str, list[float]]] = [{} for _ in modules]
    begin = time.perf_counter()
    for turn in range(MOST_TURNS):
        if turn >= LEAST_TURNS and time.perf_counter() - begin > seconds:
            break
        for k in np.roll(np.arange(len(modules)), turn).tolist():
            _profile_turn(modules[k], feeds, found[k])
    common = set.intersection(*(set(own) for own in found))
    return {
        symbol: [float(np.quantile(own[symbol], UNDISTURBED)) for own in found] for symbol in common
    }


def _profile_turn(module: Module, feeds: dict[str, Any], found: dict[str, list[float]]) -> None:
    """Runs in a row, of which the first finds the caches of another model and does not count.

    Models that take one run each by turns would never meet caches of their own: kernels of a model
    that fits into them looked a third slower, and points were told apart by that.
    """
    module.profile(feeds)
    end = time.perf_counter() + PROFILE_SECONDS
    runs = 0
    while runs < LEAST_RUNS or time.perf_counter() < end:
        times: dict[str, list[int]] = {}
        for event in module.profile(feeds).events:
            times.setdefault(event.kernel, []).append(event.time_ns)
        for kernel, own in times.items():
            found.setdefault(kernel, []).append(float(np.mean(own)))
        runs += 1


def peers_ms(
    model: Source, engines: Sequence[str], feeds: dict[str, Any], threads: int
) -> dict[str, float]:
    """Milliseconds of a run by other engines, by turns and each in a process of its own.

    A warning says which did not run.
    """
    if not engines:
        return {}
    from tilewright.contest.turns import compete

    with tempfile.TemporaryDirectory() as folder:
        models = dict.fromkeys(engines, _file_of(model, Path(folder)))
        found = compete(models, feeds, threads, PEER_SECONDS, lambda _: None)
    for outcome in found:
        if not outcome.samples:
            text = f"{outcome.engine} did not run: {outcome.problem}"
            warnings.warn(TilewrightWarning(text), stacklevel=2)
    return {o.engine: o.median_s * 1e3 for o in found if o.samples}


def _file_of(model: Source, folder: Path) -> Path:
    """The file of a model, written if it is none."""
    if isinstance(model, str | os.PathLike):
        return Path(model).absolute()
    import onnx

    from tilewright.frontend.onnx import read_model

    path = folder / "model.onnx"
    onnx.save(read_model(model), path)
    return path
