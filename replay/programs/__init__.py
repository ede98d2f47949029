"""The tensor programs of the corpus, by name: families of them, each in a file."""

from __future__ import annotations

from replay.programs import (
    attention,
    channels_first,
    channels_last,
    elementwise,
    products,
    reductions,
    winograd,
)
from replay.programs.program import Program, named

__all__ = ["Program", "programs"]


def programs() -> dict[str, Program]:
    """All programs, in a stable order. None of them is built before its `make` is called."""
    families = (
        products.programs(),
        channels_first.programs(),
        channels_last.programs(),
        winograd.programs(),
        reductions.programs(),
        elementwise.programs(),
        attention.programs(),
    )
    return named(program for family in families for program in family)
