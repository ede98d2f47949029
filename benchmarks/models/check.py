"""Whether every model gives the right results: all its files, sizes and thread counts, no timing.

The reference is onnxruntime with the graph as it is written. Running again must give the same bits.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilewright as tw
from benchmarks.models.make import Choice, file_of
from benchmarks.models.spec import Model, Sizes
from benchmarks.models.workload import ModelWorkload, error_of, reference

__all__ = ["Verdict", "check", "choices_of"]


@dataclass(frozen=True)
class Verdict:
    """One file at one choice of sizes and threads."""

    name: str
    threads: int
    error: float
    tolerance: float
    repeats: bool
    by_reference: int

    @property
    def is_good(self) -> bool:
        return self.repeats and self.error <= self.tolerance

    def __str__(self) -> str:
        state = "ok   " if self.is_good else "WRONG"
        notes = "" if self.repeats else ", other bits when run again"
        notes += f", {self.by_reference} nodes by reference" if self.by_reference else ""
        return f"{state} {self.name}, {self.threads} threads: {self.error:.1e}{notes}"


def choices_of(model: Model) -> Iterator[Choice]:
    """All files that a model may have."""
    for dynamic in (False, True) if model.dynamic else (False,):
        for exporter in model.exporters or ("",):
            yield Choice(dynamic, exporter)


def check(model: Model, folder: Path, choice: Choice, threads: Sequence[int]) -> Iterator[Verdict]:
    """The verdicts on one file, which must be there."""
    path = file_of(model, folder, choice)
    sizes = model.sizes if choice.dynamic else model.sizes[:1]
    expected = [reference(_workload(model, path, choice, each)) for each in sizes]
    for count in threads:
        module = tw.compile(path, threads=count)
        for each, wanted in zip(sizes, expected, strict=True):
            feeds = model.arrays(each)
            first, again = module.run(feeds), module.run(feeds)
            yield Verdict(
                name=f"{path.stem} {'x'.join(map(str, each.values()))}".strip(),
                threads=count,
                error=error_of(first, wanted),
                tolerance=model.tolerance,
                repeats=all(map(_same_bits, first, again)),
                by_reference=len(module.by_reference),
            )
        del module
        gc.collect()


def _workload(model: Model, path: Path, choice: Choice, sizes: Sizes) -> ModelWorkload:
    return ModelWorkload(model.name, str(path), dict(sizes), choice.dynamic)


def _same_bits(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return a.dtype == b.dtype and bool(np.array_equal(a.view("u1"), b.view("u1")))
