"""`python -m benchmarks models [names] [--threads 1,2] [--engines ...] [--dynamic] [--out FILE]`"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.bench import Bench, progress, write_results
from benchmarks.command_line import default_threads, names_among, thread_counts
from benchmarks.engines import LIMITS
from benchmarks.models.footprint import DEPLOYABLE, footprint
from benchmarks.models.make import Choice, default_folder, file_of
from benchmarks.models.registry import find
from benchmarks.models.report import ModelRow, brief, summary, table
from benchmarks.models.spec import EXPORTERS, Model
from benchmarks.models.workload import ModelWorkload
from benchmarks.process import ROOT
from benchmarks.report import SUBJECT
from benchmarks.turns import Settings
from tilewright.target import Target
from tilewright.target import measured as stored

__all__ = ["main"]

ENGINES: Final = (SUBJECT, "onnxruntime", "openvino", "torch", "inductor", "ncnn", "mnn")
FULL: Final = Settings(rounds=10, trial_rounds=1, turn_seconds=0.1)
QUICK: Final = Settings(rounds=3, trial_rounds=1, turn_seconds=0.02)


def main(arguments: list[str]) -> int:
    """Measure, print, and write what was found."""
    options = _parse(arguments)
    choice = Choice(options.dynamic, options.exporter)
    workloads = [w for m in options.models for w in _workloads(m, options.folder, choice)]
    with _fresh_cache() as environment:
        names = [*options.engines, *LIMITS]
        bench = Bench(names, QUICK if options.quick else FULL, environment)
        rows: list[ModelRow] = []
        for row in _rows(bench, workloads, options.threads, environment, costs=options.costs):
            rows.append(row)
            progress(brief(row))
            if options.out:  # after every model: what a long run has found must not get lost
                write_results(options.out, ["models", *arguments], bench, {}, summary(rows), rows)
    print(table(rows, [name for name in options.engines if name in bench.engines]))
    for name, why in bench.missing.items():
        print(f"{name}: not available ({why})")
    if options.out:
        print(f"written to {options.out}")
    own = [row.outcomes[SUBJECT].state for row in rows if SUBJECT in row.outcomes]
    return 1 if {"wrong", "gone", "failed"} & set(own) or not rows else 0


def _rows(
    bench: Bench,
    workloads: list[ModelWorkload],
    threads: list[int],
    environment: Mapping[str, str],
    *,
    costs: bool,
) -> Iterator[ModelRow]:
    for count in threads:
        for row in bench.run(workloads, count):
            workload = row.workload
            assert isinstance(workload, ModelWorkload)
            names = [n for n in DEPLOYABLE if costs and n in bench.engines and n in row.outcomes]
            footprints: dict[str, dict[str, Any]] = {
                name: footprint(name, workload, count, environment) for name in names
            }
            yield ModelRow(workload, count, row.outcomes, row.peers, row.foreign_cpus, footprints)


@contextmanager
def _fresh_cache() -> Iterator[dict[str, str]]:
    """An empty cache for tilewright, so that it compiles; what is known of the machine is kept."""
    target = Target.host()
    with tempfile.TemporaryDirectory() as folder:
        known = stored.load(target)
        if known is not None:
            stored.store(target, known, Path(folder))
        yield {"TILEWRIGHT_CACHE_DIR": folder}


def _workloads(model: Model, folder: Path, choice: Choice) -> Iterator[ModelWorkload]:
    """The model at its first sizes, or, with a dynamic file, at all of them."""
    if choice.dynamic and not model.dynamic:
        return
    path = file_of(model, folder, choice)
    progress(f"reading {path.name}")
    if not path.exists() and not _made(model, folder, choice):
        return
    from benchmarks.models.flops import count, load_without_weights

    loaded = load_without_weights(path)
    for sizes in model.sizes if choice.dynamic else model.sizes[:1]:
        work = count(loaded, model.arrays(sizes))
        if work.unknown:
            print(f"{model.name}: shapes of {len(work.unknown)} products are not known")
        yield ModelWorkload(
            model.name, str(path), dict(sizes), choice.dynamic, work.flops, work.weight_bytes
        )


def _made(model: Model, folder: Path, choice: Choice) -> bool:
    """Make the file in a process of its own, which takes torch away with it."""
    command = [sys.executable, "-m", "benchmarks.models", "make", model.name]
    command += ["--models", str(folder), *(["--dynamic"] if choice.dynamic else [])]
    command += ["--exporter", choice.exporter] if choice.exporter else []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("skipped", "failed"))]
    print(*lines, sep="\n", end="\n" * bool(lines))
    return done.returncode == 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks models",
        description="Whole models against the peers: every engine in its own process, by turns.",
        epilog="example: python -m benchmarks models resnet50 text --threads 1 --out results.json",
    )
    parser.add_argument("names", nargs="*", help="models or families; default: all that compete")
    parser.add_argument("--threads", type=thread_counts, default=default_threads(), metavar="1,2")
    parser.add_argument(
        "--engines", type=names_among(ENGINES), default=list(ENGINES), help=", ".join(ENGINES)
    )
    parser.add_argument("--dynamic", action="store_true", help="dynamic files, at several sizes")
    parser.add_argument("--exporter", choices=EXPORTERS, default="", help="of torch")
    parser.add_argument("--models", dest="folder", type=Path, default=default_folder())
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all figures as JSON")
    parser.add_argument("--quick", action="store_true", help="few short turns: a look, no claim")
    parser.add_argument(
        "--no-costs", dest="costs", action="store_false", help="leave out memory and loading"
    )
    options = parser.parse_intermixed_args(arguments)
    try:
        options.models = find(options.names)
    except LookupError as problem:
        parser.error(str(problem))
    return options
