"""A recipe is a space: what it is about, every way it can go, what each costs, and the way itself.

* `match` makes the shape of a group of blocks, the only place where that is computed;
* `space` is a table with a column for each decision and a row for each point;
* `cycles` prices all rows at once, by the machine model and nothing else;
* `apply` schedules the group, and takes every decision from the point.

A point has no cost in it, and a cost decides nothing in the schedule. The draft takes the point
with the fewest cycles; a tuner samples and measures the same points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from tilewright.schedule.recipes.context import Context
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.target import MachineModel, Target

if TYPE_CHECKING:
    from tilewright.schedule.recipes.grouping import Group

__all__ = ["Decision", "Recipe", "draft_point", "follow"]

S = TypeVar("S")
P = TypeVar("P")


class Recipe(Protocol[S, P]):
    """How groups of one kind are scheduled; shapes and points are frozen dataclasses."""

    name: str
    point: type[P]

    def match(self, context: Context, group: Group) -> S | None:
        """The shape of a group, with all that its space and its costs depend on; None: not mine."""

    def space(self, shape: S, target: Target) -> Table[P]:
        """Every point that can be followed for a shape."""

    def cycles(self, shape: S, machine: MachineModel, table: Table[P]) -> Costs:
        """Predicted cycles until the last thread is done, for every row."""

    def apply(self, context: Context, group: Group, shape: S, point: P) -> None:
        """Schedule a group as the point says."""


@dataclass(frozen=True)
class Decision:
    """What was decided for one group of a program, and by which recipe.

    `block` is the one that its point is found by: the last of the group, without the epilogue.
    """

    recipe: Recipe[Any, Any]
    blocks: tuple[str, ...]
    shape: object
    point: object
    block: str


def follow(recipe: Recipe[S, P], context: Context, group: Group) -> bool:
    """Schedule a group by a recipe, with the point it was given or the drafted one.

    False if the recipe does not fit the group, which is then left alone.
    """
    shape = recipe.match(context, group)
    if shape is None:
        return False
    given = context.point_of(group.blocks[-1], recipe.point)
    point = given
    if point is None:
        point, _ = draft_point(recipe, shape, context.target)  # type: ignore[arg-type]
    context.decide(Decision(recipe, group.members, shape, point, group.blocks[-1]))
    recipe.apply(context, group, shape, point)
    return True


@lru_cache(maxsize=8192)
def draft_point(recipe: Recipe[S, P], shape: S, target: Target) -> tuple[P, float]:
    """The point with the fewest predicted cycles, and these."""
    table = recipe.space(shape, target)
    cycles = recipe.cycles(shape, target.machine, table)
    best = int(np.argmin(cycles))
    return table.point(best), float(cycles[best])
