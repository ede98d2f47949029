"""Reductions by the direction of the vectors: along it (`rows.py`) or across it (`across.py`)."""

from __future__ import annotations

from tilewright.schedule.recipes.across import ACROSS
from tilewright.schedule.recipes.context import Context
from tilewright.schedule.recipes.group import Group
from tilewright.schedule.recipes.recipe import follow
from tilewright.schedule.recipes.rows import ROWS, runs_along
from tilewright.tensor.analysis.structure import Kind

__all__ = ["runs_along", "schedule_across", "schedule_rows"]


def schedule_rows(context: Context, blocks: tuple[str, ...], shared: int) -> None:
    """Run `blocks`, in program order, together for each point of `shared` leading dimensions."""
    follow(ROWS, context, Group(Kind.REDUCTION, blocks, shared=shared))


def schedule_across(context: Context, block: str, epilogue: str | None = None) -> None:
    """Vectors along the innermost dimension of the result; sums in registers."""
    follow(ACROSS, context, Group(Kind.WINDOWED, (block,), epilogue))
