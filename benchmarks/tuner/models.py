"""Whole models, tuned from an empty database for a while, beside their drafts."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.models.make import default_folder
from benchmarks.tuner.comparisons import Keep
from benchmarks.tuner.searches import geomean, reasons_in
from tilewright.calibration import with_machine_model
from tilewright.model.compiler import AUTO, Compiling
from tilewright.pipeline import ModelPipeline
from tilewright.pipeline.model import PlannedModel
from tilewright.records import Database
from tilewright.target import Target
from tilewright.tuning.api import tune
from tilewright.tuning.task import tasks_of

__all__ = ["floor_ms", "models", "tuned_models"]


def models(options: argparse.Namespace, keep: Keep) -> dict[str, Any]:
    """Whole models before and after."""
    rows: list[dict[str, Any]] = []
    found: dict[str, Any] = {}
    about = options.names, options.budget, options.threads
    for row in tuned_models(*about, joint=not options.loops_only):
        rows.append(row)
        gains = [each["gain"] for each in rows]
        found = {"models": rows, "summary": {"geomean": geomean(gains), "least": min(gains)}}
        keep(found)
    return found


def tuned_models(
    names: Sequence[str], seconds: float, threads: int, *, joint: bool
) -> Iterator[dict[str, Any]]:
    """Figures of each model; its file must have been made (`python -m benchmarks.models make`)."""
    for name in names:
        model = default_folder() / f"{name}.onnx"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "records.sqlite")
            report = tune(str(model), budget_s=seconds, database=path, threads=threads, joint=joint)
            with Database(path) as records:
                reasons = reasons_in(records)
        state = report.state
        best = sorted(state.tasks, key=lambda t: -t.share * (1 - 1 / t.gain))[:5]
        row = {
            "model": name,
            "threads": threads,
            "joint": joint,
            "before_ms": state.before_ms,
            "now_ms": state.now_ms,
            "gain": report.gain,
            "trials": state.trials,
            "failures": state.failures,
            "reasons": reasons,
            "seconds": state.seconds,
            "tasks": len(state.tasks),
            "floor_ms": floor_ms(model, threads),
            "best": [(t.label, round(t.share, 3), round(t.gain, 3)) for t in best],
        }
        print(
            f"{name}: {state.before_ms:.2f} → {state.now_ms:.2f} ms, {report.gain:.3f}, "
            f"{state.trials} trials ({state.failures} failed) in {state.seconds:.0f} s",
            *reasons,
            sep="\n    ",
            flush=True,
        )
        yield row


def floor_ms(model: Path, threads: int) -> float:
    """What no schedule of the drafted kernels can beat: multiply-adds at the peak, or bytes."""
    target = with_machine_model(Target.host(), None)
    made = ModelPipeline(Compiling(target, threads, "default", AUTO)).run(str(model), until="plan")
    assert isinstance(made.value, PlannedModel)
    tasks = tasks_of(made.value.planned, target)
    return sum(task.runs * task.floor_ns(threads) for task in tasks) / 1e6
