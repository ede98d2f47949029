"""`python -m fuzz hostile`: thousands of mutants, each of which must be refused or work.

A model ends in a module or in a `ModelError`, an artefact in a module or in an `ArtefactError`, a
cache entry in a hit or a miss: within seconds and bounded memory, and without a look at any file
outside of the model's folder. Anything else is a finding, and its mutant is kept. A mutant is made
of its number alone: the numbers behind `--seed` are the same mutants each time, whoever tries them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shutil
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from fuzz.apart import Gone, Limits, Tell, each_apart
from fuzz.hostile.seeds import SEEDS
from fuzz.hostile.trial import Outcome
from fuzz.hostile.trials import SORTS, Tried, Workshop
from tilewright.version import __version__

__all__ = ["main"]

PROGRESS_S: Final = 5.0
PATIENCE_S: Final = 600.0
PACKAGES: Final = ("onnx", "numpy", "protobuf")


def main(arguments: list[str]) -> int:
    """Run trials until their number or the time is over; 1 if something was found."""
    options = _parser().parse_args(arguments)
    first = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    warnings.simplefilter("ignore")
    campaign = Campaign(options.keep)
    workshop = Workshop(options.only, options.model)
    try:
        campaign.run(workshop, range(first, first + options.count), options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    finally:
        shutil.rmtree(workshop.folder, ignore_errors=True)
    print(f"seed {first}: {campaign.summary()}")
    if options.out:
        campaign.write(options.out, first, options)
        print(f"written to {options.out}")
    return 1 if campaign.findings else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz hostile",
        description="Damaged and malicious models, artefacts and entries of the cache.",
        epilog="example: python -m fuzz hostile --count 1000 --seed 7 --only models; "
        "exit code 0: nothing was found, 1: findings, 2: wrong usage",
    )
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="mutants (1000)")
    parser.add_argument("--seconds", type=float, metavar="T", help="stop after this time")
    parser.add_argument("--seed", type=int, help="number of the first mutant (default: any)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--only", choices=list(SORTS), help="one sort of files")
    parser.add_argument("--model", choices=[*SEEDS, "external"], help="one model to damage")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a report as JSON")
    parser.add_argument(
        "--keep", type=Path, default=Path("build/fuzz/hostile"), metavar="DIR",
        help="where findings go (default build/fuzz/hostile)",
    )  # fmt: skip
    return parser


class Campaign:
    """What became of mutants: `tally` counts them by kind and end."""

    def __init__(self, keep: Path) -> None:
        self.keep = keep
        self.tally: Counter[tuple[str, str]] = Counter()
        self.slowest: list[dict[str, Any]] = []
        self.largest: list[dict[str, Any]] = []
        self.findings: list[dict[str, Any]] = []

    @property
    def count(self) -> int:
        """All mutants that were tried."""
        return self.tally.total()

    def run(self, workshop: Workshop, numbers: Iterable[int], options: argparse.Namespace) -> None:
        """Try mutants, several at once, until all are done or the time is over."""

        def work(number: int, _: Tell) -> Tried:
            return workshop.tried(number)

        start = shown = time.monotonic()
        tasks = _until(numbers, start, options.seconds)
        limits = Limits(PATIENCE_S, 1 << 40)
        for number, answer in each_apart(tasks, work, workers=options.workers, limits=limits):
            if isinstance(answer, Gone):
                answer = Tried("none", b"", Outcome(answer.how, f"the worker: {answer.why}"))
            self._count(number, answer)
            if time.monotonic() - shown > PROGRESS_S:
                shown = time.monotonic()
                print(f"{self.line()}, {shown - start:.0f} s", file=sys.stderr, flush=True)

    def _count(self, number: int, tried: Tried) -> None:
        outcome = tried.outcome
        end = f"{outcome.kind} {outcome.code}".strip()
        self.tally[tried.kind, end] += 1
        row = {"number": number, "kind": tried.kind, "end": end, "bytes": len(tried.content)}
        row |= {"cpu_s": round(outcome.cpu_s, 3), "memory_mib": outcome.memory_bytes >> 20}
        self.slowest = _most(self.slowest, row, "cpu_s")
        self.largest = _most(self.largest, row, "memory_mib")
        if not outcome.is_good:
            self._found(row, tried)

    def _found(self, row: dict[str, Any], tried: Tried) -> None:
        outcome = tried.outcome
        self.keep.mkdir(parents=True, exist_ok=True)
        path = self.keep / f"{row['number']}-{outcome.kind.replace(' ', '-')}{tried.suffix}"
        path.write_bytes(tried.content)
        self.findings.append({**row, "touched": outcome.touched, "file": str(path)})
        note = f"{row}\ntouched {outcome.touched}\n{outcome.text}\n"
        path.with_suffix(".txt").write_text(note, encoding="utf-8", errors="backslashreplace")
        print(f"{row['kind']}: {row['end']} -> {path}", flush=True)

    def line(self) -> str:
        """The counts in a line."""
        return f"{self.count} mutants, {len(self.findings)} findings"

    def by(self, part: int) -> dict[str, int]:
        """Counts by kind (0) or by end (1), the greatest first."""
        counts: Counter[str] = Counter()
        for key, count in self.tally.items():
            counts[key[part]] += count
        return dict(counts.most_common())

    def summary(self) -> str:
        """Counts by kind and by end, the slowest and the largest trial."""
        lines = [self.line()]
        for name, part in (("kind", 0), ("end", 1)):
            lines.append(f"  by {name}: " + ", ".join(f"{k} {n}" for k, n in self.by(part).items()))
        if self.slowest:
            slow, large = self.slowest[0]["cpu_s"], self.largest[0]["memory_mib"]
            lines.append(f"  at most {slow:.2f} s and {large} MiB")
        return "\n".join(lines)

    def write(self, path: Path, seed: int, options: argparse.Namespace) -> None:
        """The report as JSON."""
        asked = {"seed": seed, "only": options.only, "model": options.model}
        report = {
            **asked,
            "mutants": self.count,
            "kinds": self.by(0),
            "ends": self.by(1),
            "kinds_and_ends": {f"{k}: {e}": n for (k, e), n in sorted(self.tally.items())},
            "slowest": self.slowest,
            "largest": self.largest,
            "versions": {"tilewright": __version__, **{name: version(name) for name in PACKAGES}},
            "findings": self.findings,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _most(rows: list[dict[str, Any]], row: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The ten greatest of rows and one more."""
    return sorted([*rows, row], key=lambda r: r[key], reverse=True)[:10]


def _until(numbers: Iterable[int], start: float, seconds: float | None) -> Iterator[int]:
    return itertools.takewhile(
        lambda _: seconds is None or time.monotonic() - start <= seconds, numbers
    )
