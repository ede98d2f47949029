"""Sizes for which a program is not made, where another version of its model would be.

A program takes sizes that meet for equal, though one of them might be broadcast; it takes the
conditions of its guards for decided, and sizes of one name for one. A run in which it is otherwise
ends in `GuardError`, which says what a version has to know (`model/spreading.py`). Such runs come
again and again: what was found out about some sizes is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.errors import CallError
from tilewright.runtime.failures import OR_ONE, Outcome, failure, guarded
from tilewright.runtime.program import Host, Program, SizeExpr, SizeOp
from tilewright.runtime.sizes import compared, evaluate

__all__ = ["GuardError", "Meetings", "Wanted"]

KEPT: Final = 64
"""Combinations of sizes of which it is known whether one meets another."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a version for some run has to know.

    `ones` are sizes of inputs that are one, `flipped` guards whose condition is otherwise, and the
    sizes whose names are in `apart` differ. A `whole` one runs by reference, with any ranks.
    """

    ones: frozenset[str] = frozenset()
    flipped: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()
    whole: bool = False


class GuardError(CallError):
    """C025 or C006 in a run for which there may be another version of the model."""

    wanted = Wanted()

    @classmethod
    def of(cls, told: CallError, wanted: Wanted) -> GuardError:
        """An error that says the same; each has a traceback of its own."""
        error = cls(told.code, told.facts, hint=told.hint)
        error.wanted = wanted
        return error


class Meetings:
    """The sizes of one program that exist if it is made for a run: guards and checks of equality.

    `checks` are those of sizes that would be broadcast otherwise, with both sides of each; `guards`
    have their keys.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        named = [(k, s) for k, s in enumerate(program.sizes) if s.name.endswith(OR_ONE)]
        self.checks = {k: sides for k, s in named if (sides := compared(s.value)) is not None}
        keys = ((k, guarded(s.name)) for k, s in enumerate(program.sizes) if s.value is not None)
        self.guards = {k: key for k, key in keys if key is not None}
        self._told = {-1 - dim for port in program.inputs for dim in port.dims if dim < 0}
        self._known: dict[tuple[int, tuple[int, ...]], tuple[GuardError, ...]] = {}

    @property
    def are_any(self) -> bool:
        """Whether sizes may be others than the program is made for.

        Ranks of what Python functions make are those that the model declares, rightly or not.
        """
        calls = any(isinstance(step, Host) for step in self.program.steps)
        return bool(self.checks or self.guards) or calls

    @property
    def share_names(self) -> bool:
        """Whether several sizes of inputs have one name."""
        dims = [dim for port in self.program.inputs for dim in port.dims if dim < 0]
        return len(dims) > len(self._told)

    def require_made_for(self, which: int, sizes: tuple[int, ...]) -> None:
        """Raise `GuardError` if a size that could not be computed is such a check, or needs one.

        `sizes` are known as far as they were computed before it.
        """
        if which not in self.guards and not self._sides(which):
            return
        found = self._known.get((which, sizes))
        if found is None:  # threads that meet here find the same
            found = tuple(self._errors(which, sizes))
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[which, sizes] = found
        for known in found:
            raise GuardError.of(known, known.wanted)

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

    def _errors(self, which: int, sizes: Sequence[int]) -> Iterator[GuardError]:
        """The error if a guard fails, or one of two sizes that differ is one in this run.

        One that was known before, and has to be equal all the same, is not broadcast.
        """
        meets = any(_used(side) and _number(side, sizes) == 1 for side in self._sides(which))
        if which in self.guards or meets:
            told = failure(self.program, 1, Outcome.BAD_SIZE, which, 0)
            assert isinstance(told, CallError), "a size that cannot be computed"
            yield GuardError.of(told, self._wanted(which, sizes))

    def _wanted(self, which: int, sizes: Sequence[int]) -> Wanted:
        """What would make this size, and all that are known as early, ones that exist."""
        known = list(sizes)
        ones = set(self._alone(which, known))
        flipped: set[str] = set()
        every = self.program.sizes
        for number, size in enumerate(every):
            is_ours = number in self.checks or number in self.guards
            if size.segment == 0 and size.value is not None and not is_ours:
                known[number] = _number(size.value, known)
            is_first = size.segment == 0 == every[which].segment
            if not is_ours or not (is_first or number == which):
                continue
            if number in self.checks:
                ones.update(self._broadcast(number, known))
            elif size.value is not None and not _number(size.value, known):
                one = self._one(size.value)
                if one is None:
                    flipped.add(self.guards[number])
                else:
                    ones.add(every[one].name)
        return Wanted(frozenset(ones), frozenset(flipped))

    def _alone(self, which: int, known: Sequence[int]) -> Iterator[str]:
        """The sizes of inputs that are one in later checks that a size needs."""
        if which not in self.checks and which not in self.guards:
            for side in self._sides(which):
                if _number(side, known) == 1:
                    yield from self._names(side, known)

    def _broadcast(self, check: int, known: Sequence[int]) -> Iterator[str]:
        """The sizes of inputs that are one, and make a side of a check one that fails."""
        sides = [(side, _number(side, known)) for side in self.checks[check]]
        if sides[0][1] != sides[1][1]:
            for side, length in sides:
                if length == 1:
                    yield from self._names(side, known)

    def _names(self, side: SizeExpr, known: Sequence[int]) -> Iterator[str]:
        ours = (k for k in _used(side) if k in self._told and known[k] == 1)
        yield from (self.program.sizes[k].name for k in ours)

    def _one(self, guard: SizeExpr) -> int | None:
        """The size of an input that a guard takes not to be one; None for other guards."""
        match guard[1:]:
            case ((SizeOp.SIZE, size), (SizeOp.CONST, 1), (SizeOp.EQ, _), *rest) | (
                (SizeOp.CONST, 1),
                (SizeOp.SIZE, size),
                (SizeOp.EQ, _),
                *rest,
            ) if rest[:1] == [(SizeOp.NOT, 0)] and size in self._told:
                return size
        return None


def _number(value: SizeExpr, sizes: Sequence[int]) -> int:
    """The value of a size; zero if there is none, which the run finds out by itself."""
    try:
        return evaluate(value, sizes)
    except ZeroDivisionError:
        return 0


def _used(side: SizeExpr) -> list[int]:
    return [number for op, number in side if op is SizeOp.SIZE]
