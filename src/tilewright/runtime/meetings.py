"""Sizes that a program takes to be equal, where other versions of its model would broadcast.

A run that finds one of them to be one and the other not ends in `MeetsOneError`, which says what a
version has to know (`model/spreading.py`). Such runs come again and again: what was found out about
some sizes is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tilewright.errors import CallError
from tilewright.runtime.failures import OR_ONE, Outcome, failure
from tilewright.runtime.program import Program, SizeExpr, SizeOp
from tilewright.runtime.sizes import compared, evaluate

__all__ = ["Meetings", "MeetsOneError"]

KEPT: Final = 64
"""Combinations of sizes of which it is known whether one meets another."""


class MeetsOneError(CallError):
    """C025 where a size of one meets another, which may be a broadcast that nobody foresaw.

    `ones` are the sizes of inputs that make it one, as far as they are one themselves.
    """

    ones: frozenset[str] = frozenset()


class Meetings:
    """The checks of one program that two sizes are equal which would be broadcast otherwise."""

    def __init__(self, program: Program) -> None:
        self.program = program
        named = [(k, s) for k, s in enumerate(program.sizes) if s.name.endswith(OR_ONE)]
        self.checks = {k: sides for k, s in named if (sides := compared(s.value)) is not None}
        self._known: dict[tuple[int, tuple[int, ...]], tuple[MeetsOneError, ...]] = {}

    def require_not_one(self, which: int, sizes: tuple[int, ...]) -> None:
        """Raise `MeetsOneError` if a size that could not be computed is such a check, or needs one.

        `sizes` are known as far as they were computed before it.
        """
        if not self._sides(which):
            return
        found = self._known.get((which, sizes))
        if found is None:  # threads that meet here find the same
            found = tuple(self._met(which, sizes))
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[which, sizes] = found
        for known in found:
            error = MeetsOneError(known.code, known.facts, hint=known.hint)  # its traceback differs
            error.ones = known.ones
            raise error

    def _sides(self, which: int) -> Sequence[SizeExpr]:
        """Those of a check, or of later ones that a size needs.

        What meets a number of places that data tell is taken to be as long before that is known.
        """
        if which in self.checks:
            return self.checks[which]
        every = self.program.sizes
        later = [k for k in self.checks if every[k].segment > every[which].segment]
        used = set(_used(every[which].value or ()))
        return [side for k in later for side in self.checks[k] if used.intersection(_used(side))]

    def _met(self, which: int, sizes: Sequence[int]) -> Iterator[MeetsOneError]:
        """The error if one of two sizes that differ is one in this run.

        One that was known before, and has to be equal all the same, is not broadcast.
        """
        if any(_used(side) and _number(side, sizes) == 1 for side in self._sides(which)):
            told = failure(self.program, 1, Outcome.BAD_SIZE, which, 0)
            error = MeetsOneError(told.code, told.facts, hint=told.hint)
            error.ones = frozenset(self._ones(which, sizes))
            yield error

    def _ones(self, which: int, sizes: Sequence[int]) -> Iterator[str]:
        """The sizes of inputs that are one, and make a side of a check one that fails.

        All checks of the first segment are looked at, if one of them has failed: what helps one of
        them is needed by the others as well.
        """
        every = self.program.sizes
        told = {-1 - dim for port in self.program.inputs for dim in port.dims}
        known = list(sizes)
        if which not in self.checks:
            alone = (side for side in self._sides(which) if _number(side, known) == 1)
            used = (k for side in alone for k in _used(side))
            yield from (every[k].name for k in used if k in told and known[k] == 1)
        for number, size in enumerate(every):
            if size.segment == 0 and size.value is not None and number not in self.checks:
                known[number] = _number(size.value, known)
            is_first = size.segment == 0 == every[which].segment
            if number not in self.checks or not (is_first or number == which):
                continue
            sides = [(side, _number(side, known)) for side in self.checks[number]]
            if sides[0][1] != sides[1][1]:
                used = (k for side, length in sides if length == 1 for k in _used(side))
                yield from (every[k].name for k in used if k in told and known[k] == 1)


def _number(value: SizeExpr, sizes: Sequence[int]) -> int:
    """The value of a size; zero if there is none, which the run finds out by itself."""
    try:
        return evaluate(value, sizes)
    except ZeroDivisionError:
        return 0


def _used(side: SizeExpr) -> list[int]:
    return [number for op, number in side if op is SizeOp.SIZE]
