"""A kernel of a model with all that was tried for it, best times and curves.

Days differ in frequency and neighbours, so trials are compared by their ratios to the draft that
was measured in the same turns; a kernel's times are these ratios by the median time of its draft.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any, Final

from tilewright.records import Record

__all__ = ["UNNAMED", "Kernel", "Tried", "best_so_far", "searches"]

BY: Final = "by "
"""How the details of measured trials begin that say which search proposed them."""
UNNAMED: Final = "search"
"""Trials that do not say so."""


@dataclass(frozen=True)
class Tried:
    """One trial: what came of it, and which search proposed it."""

    outcome: str
    ratio: float | None
    reference_ns: float
    by: str
    detail: str
    when: str

    @classmethod
    def of(cls, record: Record) -> Tried:
        """What a record says; only trials that were measured name a search."""
        is_named = record.is_ok and record.detail.startswith(BY)
        by = record.detail.removeprefix(BY) if is_named else UNNAMED
        detail = "" if is_named else record.detail
        return cls(record.outcome, record.ratio, record.reference_ns, by, detail, record.when)


@dataclass(frozen=True)
class Kernel:
    """A kernel, its work in one run, how often a run of the model calls it, and its trials."""

    number: int
    labels: tuple[str, ...]
    workload: str
    runs: int
    flops: int
    moved_bytes: int
    trials: tuple[Tried, ...] = ()
    best: Record | None = None
    """The record that is used; None where the draft is."""

    @property
    def label(self) -> str:
        """What it computes, for a person."""
        return ", ".join(self.labels) or f"kernel {self.number}"

    @property
    def is_measured(self) -> bool:
        """Whether there is a time of it."""
        return bool(self.drafted_ns)

    @cached_property
    def drafted_ns(self) -> float:
        """What a run of the draft takes; 0 if nobody knows."""
        return median([t.reference_ns for t in self.trials if t.ratio is not None] or [0.0])

    @property
    def best_ns(self) -> float:
        """What a run takes now."""
        ratio = self.best.ratio if self.best is not None else None
        return self.drafted_ns * (1.0 if ratio is None else ratio)

    @property
    def gain(self) -> float:
        """How many times as fast as drafted."""
        return self.drafted_ns / self.best_ns if self.best_ns else 1.0

    @property
    def failures(self) -> int:
        """Trials that were not measured."""
        return sum(t.ratio is None for t in self.trials)

    def to_dict(self) -> dict[str, Any]:
        """Data of JSON."""
        return {
            "kernel": self.number,
            "labels": list(self.labels),
            "workload": self.workload,
            "runs": self.runs,
            "flops": self.flops,
            "moved_bytes": self.moved_bytes,
            "drafted_ns": self.drafted_ns or None,
            "best_ns": self.best_ns or None,
            "gain": self.gain,
            "failures": self.failures,
            "points": dict(self.best.points) if self.best is not None else None,
            "trials": [[t.by, t.outcome, t.ratio, t.detail] for t in self.trials],
        }


def searches(kernels: Iterable[Kernel]) -> list[str]:
    """The searches that proposed trials, in the order in which they came."""
    every = sorted((t.when, t.by) for k in kernels for t in k.trials if t.ratio is not None)
    return list(dict.fromkeys(by for _, by in every))


def best_so_far(kernels: Sequence[Kernel], by: str | None = None) -> list[float]:
    """The time of all kernels' runs after 0, 1, … measured trials, in nanoseconds.

    `by` takes the trials of one search alone.
    """
    least = [1.0] * len(kernels)
    weights = [kernel.runs * kernel.drafted_ns for kernel in kernels]
    curve = [total := sum(weights)]
    for number, ratio in _in_order(kernels, by):
        if ratio < least[number]:
            total -= weights[number] * (least[number] - ratio)
            least[number] = ratio
        curve.append(total)
    return curve


def _in_order(kernels: Sequence[Kernel], by: str | None) -> Iterator[tuple[int, float]]:
    """(kernel, ratio) of trials as they were measured."""
    found = [
        (trial.when, place, number, trial.ratio)
        for number, kernel in enumerate(kernels)
        for place, trial in enumerate(kernel.trials)
        if trial.ratio is not None and (by is None or trial.by == by)
    ]
    return ((number, ratio) for _, _, number, ratio in sorted(found))
