"""Does a scheduled program still mean what it should? Bindings, coverage, races, vectors."""

from __future__ import annotations

from tilewright.tensor import ir as tir

__all__ = ["ValidationCache", "validate"]


class ValidationCache:
    """Remembers which nests are valid, by identity; shared by the steps of a schedule."""


def validate(func: tir.Func, cache: ValidationCache | None = None) -> None:
    """Raise a `ProgramError` (V1…) unless the schedule of `func` is legal."""
    del func, cache
