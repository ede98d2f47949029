"""The tuner against TVM MetaSchedule in the same wall time, each from nothing.

    python -m benchmarks tuner rivals [--tasks C2,C6,C9,128x3072x768] [--budget 240] [--threads 1]

tilewright tunes a layer as any model, channels first at both ends, or a product as any program.
What that takes in all is what TVM gets for its search, in each of the layouts that it is tried in
(`metaschedule/forms.py`): it may have its data channels first or last, and what its schedules do
with the weights happens ahead. Then the best of both take turns, in processes of their own, with
the same inputs, and their results are checked against NumPy.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from benchmarks.kinds import with_file
from benchmarks.programs import PROGRAMS
from benchmarks.report import SUBJECT, Row
from benchmarks.tuner.comparisons import Keep
from benchmarks.tuner.contest import Entrant, contest, with_database
from benchmarks.tuner.metaschedule.forms import forms_of
from benchmarks.tuner.metaschedule.timed import SearchError, run_search
from benchmarks.tuner.searches import geomean
from benchmarks.tuner.tasks import workload_named
from benchmarks.workloads import Workload
from tilewright.target import Target
from tilewright.tuning.api import tune

__all__ = ["TASKS", "rivals"]

TASKS: Final = ("C2", "C6", "C9", "128x3072x768")
RIVAL: Final = "tvm"
BATCH: Final = 16
"""Candidates between two looks of the rival at its cost model, as ours has; its default of 64 would
be all of the first minutes."""
PACKAGES: Final = {"tvm": "apache-tvm", "tvm_ffi": "apache-tvm-ffi", "xgboost": "xgboost-cpu"}
"""What TVM's tuner needs, by the names of modules."""


def rivals(options: argparse.Namespace, keep: Keep) -> dict[str, Any]:
    """A row for each task."""
    _require_packages()
    rows: list[dict[str, Any]] = []
    found: dict[str, Any] = {}
    for name in options.tasks:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(_row(name, options, Path(folder)))
        _say(rows[-1])
        ratios = [row["ratio"] for row in rows if row["ratio"]]
        summary = {"ratio": geomean(ratios), "least": min(ratios)} if ratios else {}
        found = {"versions": _versions(), "rows": rows, "summary": summary}
        keep(found)
    return found


def _require_packages() -> None:
    missing = [package for module, package in PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise SystemExit(
            f"{', '.join(missing)}: not installed. The rival comes with `pip install --group "
            "rivals` (see pyproject.toml), in the environment that runs the benchmarks"
        )


def _versions() -> dict[str, str]:
    known = {}
    for package in PACKAGES.values():
        try:
            known[package] = version(package)
        except PackageNotFoundError:  # the module is of another distribution
            known[package] = "unknown"
    return known


def _row(name: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Both searches of a task, then both results by turns."""
    workload = with_file(workload_named(name), folder)
    assert isinstance(workload, Workload)
    database = folder / "records.sqlite"
    own = _tuned(workload, database, options)
    seconds = max(options.budget, own["seconds"])
    forms = {
        form: _searched(workload, form, folder, seconds, options) for form in forms_of(workload)
    }
    entrants = {
        SUBJECT: with_database(database),
        RIVAL: _rival(folder, options.threads),
        "peak": Entrant("peak"),
    }
    row = contest(entrants, workload, options.threads, folder)
    return {
        "task": name,
        "threads": options.threads,
        "flops": workload.flops,
        "budget_s": options.budget,
        "seconds": seconds,
        "tuners": {SUBJECT: own | _speed(row, SUBJECT), RIVAL: _speed(row, RIVAL)},
        "forms": forms,
        "ratio": row.ratio(),
        "ratio_median": row.ratio("median_s"),
        "peak_gflops": row.peak_gflops(),
        "noisy": row.is_noisy,
        "contest": row.to_dict(),
    }


def _tuned(workload: Workload, database: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Tune as anybody would; what it took in all."""
    about = {"budget_s": options.budget, "database": database, "threads": options.threads}
    begin = time.monotonic()
    if workload.path:
        state = tune(workload.path, **about).state
    else:
        program = PROGRAMS[workload.op](*workload.shape)
        state = tune(program.func, constants=program.constants, **about).state
    seconds = time.monotonic() - begin
    return {"seconds": seconds, "trials": state.trials, "failures": state.failures}


def _searched(
    workload: Workload, form: str, folder: Path, seconds: float, options: argparse.Namespace
) -> dict[str, Any]:
    """The rival's search in one form: its own figures, or why it has none."""
    about = {"form": form, "cpu": _cpu(), "threads": options.threads, "batch": BATCH, "seed": 0}
    request = {"workload": workload.to_dict(), **about}
    try:
        searched = run_search(request, folder / form, seconds)
    except SearchError as problem:
        return {"trials": 0, "failures": 0, "problem": str(problem)}
    found = searched.found
    gflops = None if found.best_s is None else workload.flops / found.best_s / 1e9
    counts = {"trials": found.trials, "failures": found.failures}
    return {"seconds": searched.seconds, **counts, "own_gflops": gflops}


def _rival(folder: Path, threads: int) -> Entrant:
    """An engine that finds what its searches have left in a folder."""
    variables = {"METASCHEDULE_FOLDER": str(folder), "METASCHEDULE_CPU": _cpu()}
    return Entrant(RIVAL, {**variables, "TVM_NUM_THREADS": str(threads)})


def _cpu() -> str:
    """LLVM's name of this processor."""
    return Target.host().cpu


def _speed(row: Row, engine: str) -> dict[str, Any]:
    """By its best turn; without figures if its result was wrong or it did not run."""
    outcome = row.outcomes[engine]
    facts = {"state": outcome.state, "why": outcome.why, "error": outcome.error}
    return facts | {"gflops": row.gflops(engine), "form": outcome.variant}


def _say(row: dict[str, Any]) -> None:
    own, other = row["tuners"].values()
    trials = ", ".join(f"{form} {figures['trials']}" for form, figures in row["forms"].items())
    print(
        f"{row['task']}: {own['gflops'] or 0:.1f} GFLOP/s in {own['trials']} trials; {RIVAL} "
        f"{other['gflops'] or 0:.1f} ({other['form'] or other['why']}; trials: {trials}) "
        f"in {row['seconds']:.0f} s; ratio {row['ratio'] or 0:.2f}",
        flush=True,
    )
