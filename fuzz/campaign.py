"""Many cases one after another: judged apart, counted, and what is found written down.

Both generators use it. `Campaign.run` takes the numbers of cases; making a case happens in the
worker, as everything else that may go wrong.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from fuzz.apart import Gone, Limits, Tell, each_apart
from fuzz.case import Case
from fuzz.engines import ORACLES
from fuzz.judge import Verdict, judge, one_line
from tilewright.version import __version__

__all__ = ["Campaign", "Finding", "judge_apart"]

PROGRESS_S: Final = 5.0
PACKAGES: Final = ("onnx", "onnxruntime", "numpy")


@dataclass(frozen=True)
class Finding:
    """A case that shows a fault; `part` numbers those of the same signature."""

    number: int
    case: Case
    verdict: Verdict


@dataclass
class Campaign:
    """Counts so far. `make` is called in workers; `tell` shows progress."""

    make: Callable[[int], Case]
    workers: int = 1
    limits: Limits = field(default_factory=Limits)
    kinds: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    opsets: Counter[int] = field(default_factory=Counter)
    by_reference: Counter[str] = field(default_factory=Counter)
    explained: list[dict[str, Any]] = field(default_factory=list)
    invalid: list[dict[str, Any]] = field(default_factory=list)
    native: int = 0

    @property
    def count(self) -> int:
        """All graphs that were made and judged."""
        return sum(self.kinds.values())

    def run(self, numbers: Iterable[int], seconds: float | None = None) -> Iterator[Finding]:
        """Judge all of them, or as many as time allows; yields what is found."""
        start = shown = time.monotonic()
        tasks = _until(((n, frozenset[str]()) for n in numbers), start, seconds)
        pending: list[tuple[int, frozenset[str]]] = []
        for (number, without), answer in each_apart(
            _with_retries(tasks, pending), self._work, workers=self.workers, limits=self.limits
        ):
            oracle = _gone_oracle(answer)
            if oracle and oracle not in without:
                pending.append((number, without | {oracle}))
                continue
            verdict, data = _outcome(answer)
            self._count(number, verdict, data)
            if verdict.is_finding and data:
                yield Finding(number, Case.from_bytes(data), verdict)
            if time.monotonic() - shown > PROGRESS_S:
                shown = time.monotonic()
                print(f"{self.line()}, {shown - start:.0f} s", file=sys.stderr, flush=True)

    def line(self) -> str:
        """The counts in a line."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common())
        return f"{self.count} graphs: {kinds}"

    def _work(self, task: tuple[int, frozenset[str]], tell: Tell) -> tuple[Verdict, bytes]:
        number, without = task
        tell("stage", "generator")
        try:
            case = self.make(number)
        except Exception as problem:  # noqa: BLE001  (counted, and shown in the report)
            return Verdict("ungenerated", one_line(problem)), b""
        data = case.to_bytes()
        tell("case", data)
        return judge(case, lambda name: tell("stage", name), without), data

    def _count(self, number: int, verdict: Verdict, data: bytes) -> None:
        self.kinds[verdict.kind] += 1
        if not data:
            self.invalid.append({"number": number, **verdict.to_dict()})
            return
        case = Case.from_bytes(data)
        self.operators.update(set(case.operators))
        self.opsets[case.model.opset_import[0].version] += 1
        self.by_reference.update(verdict.by_reference)
        self.native += (
            verdict.kind in {"same", "explained", "rounding"} and not verdict.by_reference
        )
        row = {"number": number, "operators": case.operators, **verdict.to_dict()}
        if verdict.kind in {"invalid", "unjudged"}:
            self.invalid.append(row)
        elif verdict.kind in {"explained", "rounding"}:
            self.explained.append(row)

    def report(self, **more: Any) -> dict[str, Any]:
        """Everything that is known, as plain data."""
        return {
            "graphs": self.count,
            "native": self.native,
            "kinds": dict(self.kinds.most_common()),
            "operators": dict(sorted(self.operators.items())),
            "opsets": {str(k): n for k, n in sorted(self.opsets.items())},
            "by_reference": dict(self.by_reference.most_common()),
            "versions": {"tilewright": __version__, **{name: version(name) for name in PACKAGES}},
            "explained": self.explained,
            "not_judged": self.invalid,
            **more,
        }

    def write(self, path: Path, **more: Any) -> None:
        """The report as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.report(**more), indent=1) + "\n", encoding="utf-8")


def judge_apart(
    cases: Iterable[Case], limits: Limits | None = None
) -> Generator[Verdict, None, None]:
    """Verdicts of cases in order, each from a process apart; crashes are verdicts as well."""

    def work(data: bytes, tell: Tell) -> tuple[Verdict, bytes]:
        tell("case", data)
        return judge(Case.from_bytes(data), lambda name: tell("stage", name)), data

    for _, answer in each_apart((case.to_bytes() for case in cases), work, limits=limits):
        yield _outcome(answer)[0]


def _until(tasks: Iterable[Any], start: float, seconds: float | None) -> Iterator[Any]:
    for task in tasks:
        if seconds is not None and time.monotonic() - start > seconds:
            return
        yield task


def _with_retries(tasks: Iterator[Any], pending: list[Any]) -> Iterator[Any]:
    """Tasks that an oracle's end interrupted come again without that oracle."""
    for task in tasks:
        while pending:
            yield pending.pop()
        yield task
    while pending:
        yield pending.pop()


def _gone_oracle(answer: object) -> str:
    """The oracle that ended a worker, if one did."""
    stage = str(answer.told.get("stage", "")) if isinstance(answer, Gone) else ""
    return stage if stage in ORACLES else ""


def _outcome(answer: Any) -> tuple[Verdict, bytes]:
    if not isinstance(answer, Gone):
        verdict, data = answer
        return verdict, data
    stage = answer.told.get("stage", "start")
    data = answer.told.get("case", b"")
    kind = answer.how if stage == "tilewright" else "unjudged"
    return Verdict(kind, f"{answer.why} during {stage}"), data
