"""Measured points of a few programs: what cost models are trained and judged on.

Of every program, the recipe that is predicted to take longest is looked at, as in
`benchmarks.ranking`: points of its space at random, and the drafted one. Measuring takes minutes,
so that what was measured is a file, which any number of models can be judged with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import machine
from benchmarks.programs import PROGRAMS, Program
from benchmarks.ranking import by_turns, call_of, drawn, longest
from benchmarks.workloads import Workload
from tilewright.schedule.points import data_of, point_of
from tilewright.schedule.recipes.recipe import Decision
from tilewright.target import Target

__all__ = ["TASKS", "Measured", "measure", "read", "write"]

TASKS: Final = (
    Workload("matmul", "matmul", (128, 768, 768)),
    Workload("matmul", "matmul", (512, 512, 512)),
    Workload("matmul", "matmul", (16, 2304, 768)),
    Workload("matmul", "matmul", (49, 512, 2048)),
    Workload("matmul", "matmul", (333, 777, 555)),
    Workload("matmul", "batched", (24, 77, 77, 64)),
    Workload("rowwise", "softmax", (512, 768)),
    Workload("rowwise", "layernorm", (128, 3072)),
    Workload("rowwise", "attention", (1, 4, 128, 128, 64)),
)
"""Six products and three programs of one layer."""


@dataclass(frozen=True)
class Measured:
    """Points of one program with the seconds that each took."""

    workload: Workload
    points: tuple[Any, ...]
    seconds: tuple[float, ...]

    @property
    def program(self) -> Program:
        return PROGRAMS[self.workload.op](*self.workload.shape)

    def decision(self, target: Target) -> Decision:
        """The recipe and the shape that the points belong to."""
        return longest(self.program, target)


def measure(
    workloads: Sequence[Workload], target: Target, points: int, seed: int
) -> Iterator[Measured]:
    """Build and time random points of each program."""
    for workload in workloads:
        program = PROGRAMS[workload.op](*workload.shape)
        decision = longest(program, target)
        more = drawn(decision, target, points, seed)
        chosen = [decision.point, *(p for p in more if p != decision.point)]
        calls = [call_of(workload, program, target, decision, point) for point in chosen]
        kept = [(p, c) for p, c in zip(chosen, calls, strict=True) if c is not None]
        seconds = by_turns([call for _, call in kept], np.random.default_rng(seed))
        yield Measured(workload, tuple(p for p, _ in kept), tuple(seconds.tolist()))


def write(path: Path, found: Sequence[Measured], target: Target) -> None:
    """Write what was measured, with the machine that it was measured on."""
    rows = [
        {
            "workload": asdict(each.workload),
            "points": [data_of(point) for point in each.points],
            "seconds": each.seconds,
        }
        for each in found
    ]
    about = {"commit": machine.commit(), "machine": machine.describe()}
    data = {**about, "target": target.to_dict(), "measured": rows}
    path.write_text(json.dumps(data) + "\n", encoding="utf-8")


def read(path: Path) -> tuple[list[Measured], Target]:
    """The inverse of `write`."""
    data = json.loads(path.read_text(encoding="utf-8"))
    found = [
        Measured(
            Workload.from_dict(row["workload"]),
            tuple(point_of(point) for point in row["points"]),
            tuple(row["seconds"]),
        )
        for row in data["measured"]
    ]
    return found, Target.from_dict(data["target"])
