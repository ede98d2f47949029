"""Records for tests: of a small product, with points drawn from its space."""

from __future__ import annotations

import random
from typing import Any

from tilewright.records import Record
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.schedule.source import Workload
from tilewright.target import Target
from tilewright.tensor import library

HOST = Target.host()
PRODUCT = Workload(library.matmul(96, 128, 64), HOST, 1, frozenset({"B"}))


def other_points(workload: Workload, count: int = 1, seed: int = 0) -> list[ContractionPoint]:
    """Points of a product that its draft has not chosen."""
    w = workload
    made = draft(w.program, w.target, w.threads, w.constants, w.loops)
    (decision,) = (d for d in made.decisions if d.recipe is CONTRACTION)
    space = CONTRACTION.points(decision.shape, w.target)
    drawn = space.sample(random.Random(seed), count + 1)
    return [point for point in drawn if point != decision.point][:count]


def block_of(workload: Workload) -> str:
    """The block of a workload's product."""
    made = draft(workload.program, workload.target, workload.threads, workload.constants)
    (decision,) = (d for d in made.decisions if d.recipe is CONTRACTION)
    return decision.blocks[0]


def trial(
    number: int = 0, *, workload: str = "w", target: str = "t", threads: int = 2, **facts: Any
) -> Record:
    """A record that is all about its number; the greater, the slower."""
    given: dict[str, Any] = {
        "label": f"trial {number}",
        "points": {"C": ["scattered.ScatteredPoint", {"vectors": number}]},
        "time_ns": 1000.0 + number,
        "reference_ns": 2000.0,
        "when": "2026-01-01T00:00:00+00:00",
        **facts,
    }
    return Record(workload, target, threads, **given)
