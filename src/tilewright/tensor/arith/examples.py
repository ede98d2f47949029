"""Forms that are negative somewhere: an example refutes what a search could only fail to prove.

Most questions that a compiler asks have the answer no, and looking for a proof in vain costs
hundreds of times what it takes to evaluate a form. A few assignments of a space are tried: large
sizes and such of one, loops at their first, middle and last values. An example counts only if all
that a proof may use holds there: ranges of loops, facts, bounds of atoms.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final
from zlib import crc32

from tilewright.tensor.arith.linear import Atom, Kind, Linear
from tilewright.tensor.arith.space import Space
from tilewright.tensor.ir import Mul, Var

__all__ = ["Example", "Unknown", "examples"]


class Unknown(Exception):  # noqa: N818 (an answer, not an error)
    """The example says nothing about a form: its value is not known there, or it is impossible."""


class Example:
    """One value for each variable of a space: sizes by `size`, loops by their last value."""

    __slots__ = ("_is_possible", "_loop", "_size", "_space", "_values")

    def __init__(self, space: Space, size: Callable[[Var], int], loop: Callable[[int], int]):
        self._space, self._size, self._loop = space, size, loop
        self._values: dict[Atom, int | None] = {}
        self._is_possible: bool | None = None

    def refutes(self, form: Linear) -> bool:
        """Whether `form` is negative here, and all facts hold."""
        try:
            return self.value(form) < 0 and self._holds_facts() and self._runs_loops()
        except Unknown:
            return False

    def tells_from_zero(self, form: Linear) -> bool:
        """Whether `form` is not zero here, and all facts hold."""
        try:
            return self.value(form) != 0 and self._holds_facts() and self._runs_loops()
        except Unknown:
            return False

    def _holds_facts(self) -> bool:
        if self._is_possible is None:
            self._is_possible = False
            self._is_possible = all(self.value(fact) >= 0 for fact in self._space.facts)
        return self._is_possible

    def _runs_loops(self) -> bool:
        """Whether no loop that has been asked about is empty; there may be more of them later."""
        return all(self.value(last) >= 0 for last in self._space.ends())

    def value(self, form: Linear) -> int:
        """The value of a form; raises `Unknown`."""
        return form.const + sum(k * self._atom(atom) for atom, k in form.terms.items())

    def _atom(self, atom: Atom) -> int:
        if atom in self._values:
            found = self._values[atom]
        else:
            self._values[atom] = None
            found = self._values[atom] = self._evaluated(atom)
        if found is None:
            raise Unknown
        return found

    def _evaluated(self, atom: Atom) -> int:
        """The value of an atom, if it is within the bounds that a proof may use."""
        found = _VALUES[atom.kind](self, atom)
        below = atom.lo is not None and found < atom.lo
        if below or (atom.hi is not None and found > atom.hi):
            raise Unknown
        return found

    def _var(self, atom: Atom) -> int:
        assert isinstance(atom.expr, Var)
        if atom.expr not in self._space.extents:
            return self._size(atom.expr)
        last = self.value(atom.parts[0]) if atom.parts else atom.hi
        if last is None or last < 0:
            raise Unknown
        return self._loop(last)

    def _product(self, atom: Atom) -> int:
        return prod(self._atom(factor) for factor in atom.parts)

    def _quotient(self, atom: Atom) -> int:
        return self.value(atom.parts[0]) // self._divisor(atom.parts[1])

    def _remainder(self, atom: Atom) -> int:
        return self.value(atom.parts[0]) % self._divisor(atom.parts[1])

    def _divisor(self, divisor: int | Linear) -> int:
        found = divisor if isinstance(divisor, int) else self.value(divisor)
        if found <= 0:
            raise Unknown
        return found

    def _least(self, atom: Atom) -> int:
        return min(self.value(part) for part in atom.parts)

    def _greatest(self, atom: Atom) -> int:
        return max(self.value(part) for part in atom.parts)

    def _start(self, atom: Atom) -> int:
        return self._tile(atom)[0]

    def _length(self, atom: Atom) -> int:
        length = self._tile(atom)[1]
        if not length:
            raise Unknown  # one past the last tile begins somewhere, but has no size
        return length

    def _tile(self, atom: Atom) -> tuple[int, int]:
        """Where a tile begins, and its size."""
        tiles, tile = atom.parts
        left, start = self.value(tile), 0
        for size, count in tiles.segments:
            here = self.value(count)
            if left < 0 or here < 0:
                raise Unknown
            if left < here:
                return start + left * size, size
            left, start = left - here, start + here * size
        if left:
            raise Unknown
        return start, 0

    def _other(self, atom: Atom) -> int:
        """A product that is not multiplied out; of anything else nothing is known."""
        if type(atom.expr) is not Mul or not atom.parts:
            raise Unknown
        return prod(self.value(part) for part in atom.parts)

    def _unknown(self, _: Atom) -> int:
        raise Unknown


_VALUES: Final[dict[Kind, Callable[[Any, Atom], int]]] = {
    Kind.VAR: Example._var,
    Kind.PRODUCT: Example._product,
    Kind.DIV: Example._quotient,
    Kind.MOD: Example._remainder,
    Kind.MIN: Example._least,
    Kind.MAX: Example._greatest,
    Kind.START: Example._start,
    Kind.SIZE: Example._length,
    Kind.SELECT: Example._unknown,
    Kind.OTHER: Example._other,
}


def _large(var: Var) -> int:
    """A size of some tiles, other than most of its neighbours, and the same in each process."""
    return 97 + crc32(var.name.encode()) % 61


def _one(_: Var) -> int:
    return 1


def _none(_: Var) -> int:
    return 0


def examples(space: Space) -> tuple[Example, ...]:
    """A few examples for a space, those first that refute most."""
    return (
        Example(space, _large, lambda last: last),
        Example(space, _large, lambda _: 0),
        Example(space, _large, lambda last: last // 2),
        Example(space, _one, lambda last: last),
        Example(space, _none, lambda last: last),  # of sizes that may be zero
    )
