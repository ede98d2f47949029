"""Searches of a layer with all algorithms and all layouts of the template, none chosen ahead.

    anywhere    algorithm, layouts and loops at random, others for each trial
    rounds      the joint stage of the tuner: layouts are proposed, measured, and the best go on

Both are compared with the time of the layer as drafted, and pay for conversions around it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.tuner.searches import Curve, reasons_in, searched
from benchmarks.tuner.tasks import OWN_SHARE, anywhere, layer_model
from tilewright.records import Database
from tilewright.records.record import target_key
from tilewright.target import Target
from tilewright.tuning.budget import Budget
from tilewright.tuning.history import History
from tilewright.tuning.joint_rounds import JointRounds
from tilewright.tuning.joint_stage import JointStage
from tilewright.tuning.kernel_tuner import SearchOptions
from tilewright.tuning.measure.trial import Runner
from tilewright.tuning.task import Task
from tilewright.tuning.tuner import Search

__all__ = ["EVERYWHERE", "everywhere"]

ANYWHERE: Final = "anywhere"
ROUNDS: Final = "rounds"
EVERYWHERE: Final = (ANYWHERE, ROUNDS)


def everywhere(
    name: str, way: str, seed: int, trials: int, runner: Runner, threads: int, target: Target
) -> Curve:
    """One search of a layer."""
    if way == ANYWHERE:
        how = SearchOptions(
            strategy="random", transfers=False, starts_at_draft=False, patience=None
        )
        task = anywhere(name, target, threads, trials, seed)
        return searched(name, task, way, seed, trials, runner, threads, options=how)
    return _in_rounds(name, seed, trials, runner, threads, target)


def _in_rounds(
    name: str, seed: int, trials: int, runner: Runner, threads: int, target: Target
) -> Curve:
    rng = np.random.default_rng(seed)
    how = SearchOptions(starts_at_draft=False, patience=None)
    made = layer_model(name, target)
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder, "r.sqlite")) as records:
        history = History.of(records, target_key(target), threads)
        rounds = JointRounds(made, threads, rng, least_share=OWN_SHARE)

        (own,) = rounds.sites.open
        begun: list[tuple[int, Search]] = []

        def search(tasks: Sequence[Task], part: Budget, options: SearchOptions) -> Search:
            about = threads, replace(how, batch=options.batch), part, seed
            made = Search(name, tasks, records, runner, *about, history=history)
            if tasks[0].label == own.label:  # others are conversions
                begun.append((len(made.tuned[0].tuner.costs), made))
            return made

        begin = time.perf_counter()
        JointStage(rounds, search, Budget(trials), how).run()
        seconds = time.perf_counter() - begin
        reasons = reasons_in(records)
    tuners = [(known, made.tuned[0].tuner) for known, made in begun]
    costs = [cost for known, tuner in tuners for cost in tuner.costs[known:]]
    failures = sum(not np.isfinite(cost) for cost in costs)
    best = tuple(np.minimum.accumulate(costs or [np.inf]).tolist())
    return Curve(name, ROUNDS, seed, best, seconds, failures, reasons)
