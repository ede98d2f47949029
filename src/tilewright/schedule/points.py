"""Points of recipes as plain data: what goes to other processes, into keys and into files.

A point is a frozen dataclass of integers beside its recipe. In data it is the path of its class
below `schedule/recipes/`, with its fields:

    ["contraction.space.ContractionPoint", {"tile_rows": 6, "tile_vectors": 2, ...}]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields, is_dataclass
from importlib import import_module
from typing import Any, Final

from tilewright.schedule.recipes.recipe import Decision
from tilewright.schedule.recipes.table import Table
from tilewright.target import MachineModel

__all__ = ["data_of", "decided_cycles", "decision_data", "decision_text", "point_of"]
__all__ += ["points_of"]

RECIPES: Final = "tilewright.schedule.recipes."


def data_of(point: object) -> list[Any]:
    """A point as data of JSON."""
    kind = type(point)
    path = f"{kind.__module__}.{kind.__qualname__}"
    if not path.startswith(RECIPES) or not is_dataclass(point) or isinstance(point, type):
        raise TypeError(f"{point!r} is no point of a recipe")
    return [path.removeprefix(RECIPES), asdict(point)]


def point_of(data: Sequence[Any]) -> object:
    """The inverse of `data_of`; a ValueError for anything else.

    Decisions that the recipe has learnt since the data were written are at their defaults, which
    are what it did before.
    """
    try:
        path, values = data
        module, _, name = str(path).rpartition(".")
        kind = getattr(import_module(RECIPES + module), name)
        known = {field.name for field in fields(kind)}
        needed = {field.name for field in fields(kind) if field.default is MISSING}
        if not needed <= set(values) <= known or not all(type(v) is int for v in values.values()):
            raise ValueError(f"`{path}` has the decisions {', '.join(sorted(known))}")
        return kind(**values)
    except (ImportError, AttributeError, TypeError) as problem:
        raise ValueError(f"no point of a recipe: {problem}") from None


def points_of(data: Mapping[str, Sequence[Any]]) -> dict[str, object]:
    """Points by the last block of their groups."""
    return {str(block): point_of(own) for block, own in data.items()}


def decided_cycles(decision: Decision, machine: MachineModel) -> float:
    """What the machine model predicts for the point that was decided on."""
    table = Table.of([decision.point])
    return float(decision.recipe.cycles(decision.shape, machine, table)[0])


def decision_data(decision: Decision, machine: MachineModel) -> dict[str, Any]:
    """A decision as data of JSON."""
    return {
        "blocks": list(decision.blocks),
        "recipe": decision.recipe.name,
        "shape": str(decision.shape),
        "point": data_of(decision.point),
        "cycles": decided_cycles(decision, machine),
    }


def decision_text(decision: Decision, machine: MachineModel) -> str:
    """A decision for people: recipe, shape, point and predicted cycles."""
    head = f"{', '.join(decision.blocks)}: {decision.recipe.name}"
    cycles = f"{decided_cycles(decision, machine):,.0f} cycles predicted"
    return "\n".join([f"{head}, {cycles}", f"  {decision.shape}", f"  {decision.point}"])
