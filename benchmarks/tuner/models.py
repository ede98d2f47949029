"""Whole models, tuned from an empty database for a while, beside their drafts."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.models.make import default_folder
from tilewright.tuning.api import tune

__all__ = ["tuned_models"]


def tuned_models(
    names: Sequence[str], seconds: float, threads: int, *, joint: bool
) -> list[dict[str, Any]]:
    """Figures of each model; its file must have been made (`python -m benchmarks.models make`)."""
    found = []
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
        found.append(row)
    return found
