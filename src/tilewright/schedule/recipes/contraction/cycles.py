"""Predicted cycles of the contraction recipe, for a whole table of points at once.

Everything is counted in cycles of one core. A micro tile keeps its sums in registers while it walks
the reduction; a step costs the greatest of what the multiply-add ports, their latency and the load
ports need. Around it, what a block uses again is still in the cache that feeds the tile, and what
streams from further away is hidden behind arithmetic, except for a part (Goto and van de Geijn,
"Anatomy of High-Performance Matrix Multiplication", 2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.schedule.recipes.contraction.space import (
    ContractionPoint,
    ContractionShape,
    contraction_space,
    rest_of_space,
)
from tilewright.schedule.recipes.contraction.traffic import traffic
from tilewright.schedule.recipes.contraction.work import Work, balance
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.target import MachineModel, Target

__all__ = ["Parts", "arithmetic_cycles", "contraction_cycles", "contraction_parts"]
__all__ += ["draft_contraction", "draft_space"]

_FINALISTS = 6
"""Rows of the main columns that are tried with every value of the others."""


@lru_cache(maxsize=4096)
def draft_contraction(shape: ContractionShape, target: Target) -> tuple[ContractionPoint, float]:
    """The point with the fewest predicted cycles, and these."""
    table = draft_space(shape, target)
    cycles = contraction_cycles(shape, target.machine, table)
    best = int(np.argmin(cycles))
    return table.point(best), float(cycles[best])


def draft_space(shape: ContractionShape, target: Target) -> Table[ContractionPoint]:
    """What a draft chooses from: the best rows of the main columns with all values of the others.

    The others (steps at once, streams, prefetching, what threads share) move the costs of all
    tiles and blocks alike, so that few rows need them.
    """
    main = contraction_space(shape, target)
    cycles = contraction_cycles(shape, target.machine, main)
    count = min(_FINALISTS, len(main))
    best = np.argpartition(cycles, count - 1)[:count]
    distinct = _distinct(main, best[np.argsort(cycles[best], kind="stable")])
    return rest_of_space(shape, main, distinct)


def _distinct(table: Table[ContractionPoint], rows: np.ndarray) -> list[int]:
    """Those of some rows that differ in more than in what threads share."""
    names = ("tile_rows", "tile_vectors", "row_tiles_per_block", "reduce_per_block")
    others = ("order", "packs", "copies_left")
    every = np.stack([table[name][rows] for name in (*names, *others)], axis=1)
    seen: dict[tuple[int, ...], int] = {}
    for row, values in zip(rows.tolist(), map(tuple, every.tolist()), strict=True):
        seen.setdefault(values, row)
    return list(seen.values())


@dataclass(frozen=True)
class Parts:
    """Predicted cycles of every row by what they go to, of the busiest thread."""

    work: Work
    compute: Costs
    waiting: Costs
    """For operands that arithmetic does not hide."""
    partial_sums: Costs
    cold_code: Costs
    sharing: Costs
    """Threads that meet, and one that has more to do than an even share."""

    @property
    def cycles(self) -> Costs:
        """All of them."""
        total = self.compute + self.waiting + self.partial_sums
        return np.asarray(total + self.cold_code + self.sharing)


def contraction_cycles(
    shape: ContractionShape, machine: MachineModel, table: Table[ContractionPoint]
) -> Costs:
    """Cycles until the last thread is done, for every row of a table."""
    return contraction_parts(shape, machine, table).cycles


def contraction_parts(
    shape: ContractionShape, machine: MachineModel, table: Table[ContractionPoint]
) -> Parts:
    """The same, by what they go to."""
    machine = machine.shared_by(shape.threads)
    work = Work.of(shape, machine, table)
    own = work.arithmetic()
    moved, exposed = traffic(work)
    # Of the busiest thread.
    share = balance(work.iterations, work.threads) * work.unevenness() / work.threads
    compute = own * share
    waiting = np.maximum(moved * share - compute, exposed * share)
    sharing = np.zeros(len(table))
    if shape.threads > 1 or shape.sharers > 1:
        costs = machine.contractions
        shared = machine.barrier_cycles + costs.share_cycles * work.iterations * share
        # More threads than costs count on: what the busiest of them does beyond its even share.
        more = own * (balance(work.iterations, float(shape.sharers)) - 1) / shape.sharers
        more = more if shape.sharers > shape.threads else np.zeros(1)
        sharing = np.where(table["parallel"] != 0, shared + more + work.summing_up(), 0.0)
    spare = compute * (1 + machine.spare_share)
    sums = work.partial_sums() * share
    return Parts(work, spare, waiting, sums, work.cold_code(), sharing)


def arithmetic_cycles(
    shape: ContractionShape, machine: MachineModel, point: ContractionPoint
) -> float:
    """Of the busiest thread, for one point, whatever its memory takes."""
    work = Work.of(shape, machine, Table.of([point]))
    return float((work.arithmetic() / work.threads * balance(work.iterations, work.threads))[0])
