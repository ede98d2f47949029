"""How well the machine model orders the points of a space: predicted against measured.

    python -m benchmarks.ranking [groups] [--only TEXT] [--points 200] [--out FILE]
    python -m benchmarks.ranking --measured FILE.csv --target emeraldrapids

Of every program, the recipe that is predicted to take longest is looked at: points of its space at
random, and the drafted one. All of them are built and take turns on one thread; the least time of
each counts. Spearman's rank correlation says how far the predicted order is the measured one, and
`drafted` how fast the drafted point is beside the fastest of all.

`--measured` takes times of products that were taken elsewhere: rows of a CSV file with sizes, the
decisions of a point and microseconds. Nothing runs then.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import tilewright as tw
from benchmarks import machine
from benchmarks.numbers import inputs
from benchmarks.programs import PROGRAMS, Program
from benchmarks.workloads import Workload, select
from tilewright.calibration import with_machine_model
from tilewright.errors import UserError
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.cycles import contraction_cycles
from tilewright.schedule.recipes.contraction.space import ContractionPoint, ContractionShape
from tilewright.schedule.recipes.recipe import Decision
from tilewright.schedule.recipes.table import Table
from tilewright.target import Target
from tilewright.tuning.cost_model.metrics import spearman

__all__ = ["Ranking", "by_turns", "call_of", "drawn", "longest", "main"]

ROUNDS: Final = 12
TURN_SECONDS: Final = 2e-3
"""A turn: as many calls as take so long, and at least one."""
GROUPS: Final = ("matmul", "rowwise")


@dataclass(frozen=True)
class Ranking:
    """What was predicted and measured for the points of one program; the first is the drafted."""

    name: str
    recipe: str
    points: int
    followed: int
    spearman: float
    drafted: float
    """Time of the fastest point by that of the drafted one."""

    @classmethod
    def of(
        cls, name: str, recipe: str, points: int, cycles: NDArray[Any], seconds: NDArray[Any]
    ) -> Ranking:
        order, best = spearman(cycles, seconds), float(seconds.min() / seconds[0])
        return cls(name, recipe, points, len(seconds), order, best)


def rank(workload: Workload, target: Target, points: int, seed: int) -> Ranking:
    """Build, time and compare random points of one program."""
    program = PROGRAMS[workload.op](*workload.shape)
    decision = longest(program, target)
    rng = np.random.default_rng(seed)
    more = drawn(decision, target, points, seed)
    chosen = [decision.point, *(p for p in more if p != decision.point)]
    calls = [call_of(workload, program, target, decision, point) for point in chosen]
    kept = [k for k, call in enumerate(calls) if call is not None]
    cycles = decision.recipe.cycles(decision.shape, target.machine, Table.of(chosen))
    seconds = by_turns([call for call in calls if call is not None], rng)
    name = decision.recipe.name
    return Ranking.of(workload.name, name, len(chosen), np.asarray(cycles)[kept], seconds)


def drawn(decision: Decision, target: Target, count: int, seed: int) -> list[Any]:
    """Points at random of the whole space, which may be larger than what a draft chooses from."""
    numbered = getattr(decision.recipe, "points", None)
    if numbered is not None:
        return list(numbered(decision.shape, target).sample(random.Random(seed), count))
    table = decision.recipe.space(decision.shape, target)
    rows = np.random.default_rng(seed).choice(len(table), min(count, len(table)), replace=False)
    return [table.point(int(row)) for row in rows]


def longest(program: Program, target: Target) -> Decision:
    """The recipe that is predicted to take longest, with what was drafted for it."""
    decisions: list[Decision] = []
    draft(program.func, target, 1, program.constants, decisions=decisions)

    def cycles(decision: Decision) -> float:
        table = Table.of([decision.point])
        return float(decision.recipe.cycles(decision.shape, target.machine, table)[0])

    return max(decisions, key=cycles)


def call_of(
    workload: Workload, program: Program, target: Target, decision: Decision, point: object
) -> Callable[[], object] | None:
    """A kernel with its arrays; None for a point that could not be followed."""
    points = dict.fromkeys(decision.blocks, point)
    schedule = draft(program.func, target, 1, program.constants, points=points)
    if schedule.remarks:
        return None
    arrays = inputs(workload)
    constants = {name: arrays[name] for name in program.constants}
    try:
        kernel = tw.build(program.func, target, 1, schedule.trace, constants)
    except UserError:
        return None
    given = [arrays[name] for name in program.inputs]
    result = np.empty(workload.result_shape, np.float32)
    return lambda: kernel(*given, result)


def by_turns(calls: Sequence[Callable[[], object]], rng: np.random.Generator) -> NDArray[Any]:
    """The least seconds of each call."""
    best = np.full(len(calls), math.inf)
    for _ in range(ROUNDS):
        for k in rng.permutation(len(calls)):
            call = calls[k]
            call()  # what was used before is not in the cache any more
            end = time.perf_counter() + TURN_SECONDS
            while (start := time.perf_counter()) < end:
                call()
                best[k] = min(best[k], time.perf_counter() - start)
    return best


def rank_measured(path: Path, target: Target, column: str) -> list[Ranking]:
    """The same for products that were measured elsewhere."""
    with path.open(encoding="utf-8") as lines:
        products: dict[tuple[int, ...], list[dict[str, str]]] = defaultdict(list)
        for row in csv.DictReader(lines):
            products[int(row["m"]), int(row["n"]), int(row["k"])].append(row)
    found = []
    for (m, n, k), rows in products.items():
        shape = ContractionShape(
            1, m, n, k, 4, right_is_constant=True, threads=1, pitch_bytes=4 * k
        )
        points = [_point_of(row) for row in rows]
        cycles = np.asarray(contraction_cycles(shape, target.machine, Table.of(points)))
        seconds = np.array([1e-6 * float(row[column]) for row in rows])
        order = np.argsort(cycles, kind="stable")  # the drafted point is the one predicted best
        name = f"matmul {m}x{n}x{k}"
        found.append(Ranking.of(name, "contraction", len(rows), cycles[order], seconds[order]))
    return found


def _point_of(row: dict[str, str]) -> ContractionPoint:
    names = {f.name for f in fields(ContractionPoint)}
    values = {name: int(value) for name, value in row.items() if name in names}
    return ContractionPoint(**{"parallel": 0, **values})


def table(rankings: Sequence[Ranking]) -> str:
    """The result as Markdown."""
    lines = [
        "| program | recipe | points | Spearman | drafted / best |",
        "| --- | --- | --: | --: | --: |",
    ]
    lines += [
        f"| {r.name} | {r.recipe} | {r.followed} | {r.spearman:.2f} | {r.drafted:.2f} |"
        for r in rankings
    ]
    mean = float(np.nanmean([r.spearman for r in rankings]))
    drafted = [r.drafted for r in rankings]
    lines.append(f"| **mean** | | | {mean:.2f} | {sum(drafted) / len(drafted):.2f} |")
    lines.append(
        f"| **least** | | | {np.nanmin([r.spearman for r in rankings]):.2f} | {min(drafted):.2f} |"
    )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser("python -m benchmarks.ranking", description=__doc__)
    parser.add_argument("groups", nargs="*", default=list(GROUPS), help="matmul, rowwise")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--points", type=int, default=200, help="at random, of each program")
    parser.add_argument("--target", default="host", help="its code is run; with a file: its model")
    parser.add_argument("--measured", type=Path, metavar="FILE", help="times taken elsewhere (CSV)")
    parser.add_argument("--column", default="best_us", help="of that file: best_us, median_us")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args(arguments)
    target = Target.named(given.target)
    if given.measured is not None:
        rankings = rank_measured(given.measured, target, given.column)
    else:
        target = with_machine_model(target)
        rankings = []
        for workload in select(given.groups, given.only):
            rankings.append(rank(workload, target, given.points, given.seed))
            print(rankings[-1], file=sys.stderr, flush=True)
    print(table(rankings))
    if given.out is not None:
        about = {"command": "python -m benchmarks.ranking", "commit": machine.commit()}
        rows = [{f.name: getattr(r, f.name) for f in fields(r)} for r in rankings]
        data = {**about, "machine": machine.describe(), "rows": rows}
        given.out.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
