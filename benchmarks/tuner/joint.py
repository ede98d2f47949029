"""Layouts, algorithms and loops tuned together, against loops alone in the same time.

    python -m benchmarks tuner joint [C2 D4 resnet18 …] [--budget 240] [--threads 1]

An item is a layer (C1 to C12, D1 to D9) with channels first at both ends, in a model of its own, or
a network. Each is tuned twice, from an empty database each time; then the draft and both results
take turns, each in a process of its own. Where a gain comes from is told by the choices that are
not those of the draft: without any, it is loops alone.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.kinds import AnyWorkload, with_file
from benchmarks.models import MODELS
from benchmarks.models.make import Choice, default_folder, file_of
from benchmarks.models.workload import ModelWorkload
from benchmarks.tuner.choices import choices_of, differences
from benchmarks.tuner.comparisons import Keep
from benchmarks.tuner.contest import contest, with_database
from benchmarks.tuner.searches import geomean
from benchmarks.tuner.tasks import TAGGED, workload_named
from tilewright.tuning.api import tune

__all__ = ["ITEMS", "joint"]

DRAFT, LOOPS, JOINT = "draft", "loops", "joint"
ITEMS: Final = ("C2", "C6", "C9", "C3", "C8", "C12", "D4", "resnet18", "mobilenet-v2")
"""Without other names: layers of all windows and strides, and two networks."""


def joint(options: argparse.Namespace, keep: Keep) -> dict[str, Any]:
    """A row for each item."""
    rows: list[dict[str, Any]] = []
    found: dict[str, Any] = {}
    _require_files(options.names)
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            workload = _workload(name, Path(folder))
            rows.append(_row(name, workload, options, Path(folder)))
        _say(rows[-1])
        found = {"items": rows, "summary": _summary(rows)}
        keep(found)
    return found


def _require_files(names: Sequence[str]) -> None:
    """Those of networks; before hours are spent on others."""
    missing = [name for name in names if name not in TAGGED and not _file(name).exists()]
    if missing:
        raise SystemExit(f"first: python -m benchmarks.models make {' '.join(missing)}")


def _file(name: str) -> Path:
    return file_of(MODELS[name], default_folder(), Choice())


def _workload(name: str, folder: Path) -> AnyWorkload:
    """A layer whose file is written now, or a network."""
    if name in TAGGED:
        return with_file(workload_named(name), folder)
    return ModelWorkload(name, str(_file(name)), dict(MODELS[name].sizes[0]))


def _row(
    name: str, workload: AnyWorkload, options: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    threads, path = options.threads, Path(workload.path)
    searches: dict[str, Any] = {}
    databases: dict[str, Path | None] = {DRAFT: None}
    for way in (LOOPS, JOINT):
        databases[way] = folder / f"{way}.sqlite"
        begin = time.perf_counter()
        about = {"budget_s": options.budget, "database": databases[way], "threads": threads}
        state = tune(str(path), joint=way == JOINT, **about).state
        seconds = time.perf_counter() - begin
        counts = {"trials": state.trials, "failures": state.failures}
        searches[way] = {"seconds": seconds, **counts, "tasks": len(state.tasks)}
    entrants = {way: with_database(database) for way, database in databases.items()}
    found = contest(entrants, workload, threads, folder)
    chosen = {way: choices_of(path, threads, own) for way, own in databases.items()}
    times = {way: found.outcomes[way] for way in databases}
    wrong = [way for way, outcome in times.items() if outcome.state != "ok"]
    if wrong:
        raise RuntimeError(f"{name}: {', '.join(f'{w} {times[w].why}' for w in wrong)}")
    return {
        "name": name,
        "kind": "layer" if name in TAGGED else "network",
        "threads": threads,
        "budget_s": options.budget,
        "ms": {way: 1e3 * outcome.min_s for way, outcome in times.items()},
        "median_ms": {way: 1e3 * outcome.median_s for way, outcome in times.items()},
        "ratio": times[LOOPS].min_s / times[JOINT].min_s,
        "ratio_median": times[LOOPS].median_s / times[JOINT].median_s,
        "searches": searches,
        "changes": differences(chosen[DRAFT], chosen[JOINT]),
        "choices": chosen[JOINT],
        "noisy": found.is_noisy,
        "foreign_cpus": round(found.foreign_cpus, 3),
    }


def _summary(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Geometric means by kind: joint against loops alone, and both against the draft."""
    found: dict[str, dict[str, float]] = {}
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = [row["ms"] for row in rows if row["kind"] == kind]
        found[kind] = {
            "ratio": geomean(ms[LOOPS] / ms[JOINT] for ms in own),
            "loops_of_draft": geomean(ms[DRAFT] / ms[LOOPS] for ms in own),
            "joint_of_draft": geomean(ms[DRAFT] / ms[JOINT] for ms in own),
        }
    return found


def _say(row: dict[str, Any]) -> None:
    ms = "  ".join(f"{way} {value:.3f}" for way, value in row["ms"].items())
    print(f"{row['name']}: {ms} ms, ratio {row['ratio']:.3f}", flush=True)
    for change in row["changes"]:
        print(f"  {change['value']}: {change['draft'] or '-'}; tuned: {change['tuned'] or '-'}")
