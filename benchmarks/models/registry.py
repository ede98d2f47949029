"""All models by name, the quick ones of each family first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from benchmarks.models import audio, light, llama, packaged, small, text, vision
from benchmarks.models.spec import Model

__all__ = ["MODELS", "find"]

FAMILIES: Final = (small, packaged, light, audio, vision, text, llama)

MODELS: Final[dict[str, Model]] = {
    model.name: model for family in FAMILIES for model in family.MODELS
}


def find(names: Iterable[str]) -> list[Model]:
    """Models by name or by family, in the order of the registry; all that compete without names.

    A name that is neither raises LookupError and says what there is.
    """
    wanted = set(names)
    known = MODELS.keys() | {model.family for model in MODELS.values()}
    if unknown := sorted(wanted - known):
        raise LookupError(f"unknown: {', '.join(unknown)}; there is {', '.join(sorted(known))}")
    return [
        model
        for model in MODELS.values()
        if {model.name, model.family} & wanted or (not wanted and model.competes)
    ]
