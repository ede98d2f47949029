"""Whole models, tuned from an empty database for a while, beside their drafts."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.models.make import default_folder
from benchmarks.tuner.comparisons import Keep
from benchmarks.tuner.searches import geomean
from tilewright.tuning.api import tune

__all__ = ["models", "tuned_models"]


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
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "records.sqlite")
            model = default_folder() / f"{name}.onnx"
            report = tune(str(model), budget_s=seconds, database=path, threads=threads, joint=joint)
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
            "seconds": state.seconds,
            "tasks": len(state.tasks),
            "best": [(t.label, round(t.share, 3), round(t.gain, 3)) for t in best],
        }
        print(
            f"{name}: {state.before_ms:.2f} → {state.now_ms:.2f} ms, {report.gain:.3f}, "
            f"{state.trials} trials ({state.failures} failed) in {state.seconds:.0f} s",
            flush=True,
        )
        yield row
