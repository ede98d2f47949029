"""What was chosen for a model: algorithm and layouts of its convolutions, and what is converted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.calibration import with_machine_model
from tilewright.layouts.show import ConversionRow, SiteRow, overview
from tilewright.model.compilation import Chosen
from tilewright.model.compile_arguments import schedules_of
from tilewright.model.compiler import AUTO, Compiling
from tilewright.pipeline import ModelPipeline
from tilewright.target import Target

__all__ = ["choices_of", "differences"]


def choices_of(path: Path, threads: int, database: Path | None) -> dict[str, str]:
    """By value: `conv 3×3 winograd-4 nhwc → nhwc`; conversions, by reader, are `nchw → nhwc`."""
    target = with_machine_model(Target.host(), None)
    schedules = schedules_of(database or False, target, threads)
    how = Compiling(target, threads, "default", AUTO, schedules=schedules)
    made = ModelPipeline(how).run(str(path), until="choose").value
    assert isinstance(made, Chosen)
    found = overview(made.graph, made.settings, made.choice.sites, exact=made.choice.exact)
    return _sites(found.sites) | _conversions(found.conversions)


def _sites(rows: Sequence[SiteRow]) -> dict[str, str]:
    """What is computed, by which algorithm, between which layouts."""
    words = {r.value: filter(None, (r.computes, r.algorithm)) for r in rows if not r.is_view}
    layouts = {r.value: f"{r.source} → {r.result}" for r in rows}
    return {value: " ".join((*own, layouts[value])) for value, own in words.items()}


def _conversions(rows: Sequence[ConversionRow]) -> dict[str, str]:
    return {f"{r.value} for {r.readers[0]}": f"{r.source} → {r.result}" for r in rows}


def differences(drafted: dict[str, str], tuned: dict[str, str]) -> list[dict[str, Any]]:
    """What is not the same: the choice before and after; empty where there is none."""
    return [
        {"value": value, "draft": drafted.get(value, ""), "tuned": tuned.get(value, "")}
        for value in dict.fromkeys((*drafted, *tuned))
        if drafted.get(value) != tuned.get(value)
    ]
