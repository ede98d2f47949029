"""Conversions that several readers share are paid for once: a variable for what a value exists as.

A value that several sites read is a variable of its own. Its alternatives are the form in which it
is written together with the forms into which it is converted for all of them, which are paid for
here; a reader that wants yet another form pays for that itself. So a tree of sites stays a tree:

    writer ─ value ─ reader
                └─── reader
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Value
from tilewright.graph.sizes import bytes_of
from tilewright.layouts.costs import Machine, Picture, bordered_cycles, converted_cycles
from tilewright.layouts.forms import Form
from tilewright.layouts.timing import Timing

__all__ = ["Price", "Shared", "tabulated"]

Table = NDArray[np.float64]
A = TypeVar("A")
B = TypeVar("B")


def _unknown(before: Form, after: Form) -> None:
    """Nothing was measured."""
    del before, after


@dataclass(frozen=True)
class Price:
    """What it costs that a value is not stored as a reader wants it.

    `known` has what conversions were measured to cost; others are predicted to cost `converted`.
    """

    converted: float
    bordered: float
    known: Callable[[Form, Form], float | None] = field(default=_unknown, compare=False)

    @classmethod
    def of(cls, value: Value, machine: Machine, timing: Timing | None = None) -> Price:
        size = bytes_of(value)  # as convolutions count a symbolic batch
        # A conversion is one more step, where a site that turns its data anyway has none.
        converted = converted_cycles(Picture.of(value), machine) + machine.model.step_cycles
        bordered = bordered_cycles(size, machine)
        if timing is None or not timing.measured.conversions:
            return cls(converted, bordered)
        return cls(converted, bordered, partial(timing.conversion, value))

    def __call__(self, written: Form, wanted: Form) -> float:
        return self.between(written, wanted) + self.border(written, wanted)

    def between(self, written: Form, wanted: Form) -> float:
        """The conversion alone."""
        if written.plain == wanted.plain:
            return 0.0
        found = self.known(written.plain, wanted.as_copied)
        return self.converted if found is None else found

    def border(self, written: Form, wanted: Form) -> float:
        """The part of a reader, where what it finds comes without zeros around it."""
        found = written if written.plain == wanted.plain else wanted.as_copied
        return 0.0 if found.covers(wanted) else self.bordered


def tabulated(price: Callable[[A, B], float], rows: Sequence[A], columns: Sequence[B]) -> Table:
    """Prices of all pairs; of equal rows and columns one is asked for."""
    kinds, others = list(dict.fromkeys(rows)), list(dict.fromkeys(columns))
    table = np.array([[price(a, b) for b in others] for a in kinds])
    place, at = ({x: k for k, x in enumerate(found)} for found in (kinds, others))
    return table[np.ix_([place[a] for a in rows], [at[b] for b in columns])]


@dataclass(frozen=True)
class Shared:
    """A value with several readers: `states` are (form it is written in, forms made from that)."""

    price: Price
    readers: int
    states: tuple[tuple[Form, frozenset[Form]], ...]

    @classmethod
    def by(cls, price: Price, written: Iterable[Form], readers: Sequence[Sequence[Form]]) -> Shared:
        """For a writer of such forms, and readers that each want one of several."""
        wanted = Counter(form for forms in readers for form in {f.as_copied for f in forms})
        common = [form for form, times in wanted.items() if times > 1]
        states = [
            (w, frozenset(made))
            for w in dict.fromkeys(written)
            for size in range(len(readers) // 2 + 1)  # each is for two readers at least
            for made in combinations([f for f in common if f.plain != w.plain], size)
        ]
        return cls(price, len(readers), tuple(states))

    @property
    def costs(self) -> list[float]:
        """The conversions of each state."""
        return [sum(self.price.between(w, form) for form in made) for w, made in self.states]

    def written_as(self, forms: Sequence[Form]) -> Table:
        """The edge to a writer with these results.

        Another form than the one of a state would be converted into it first, with a border for
        each reader: never the cheapest way, but a possible one, by which others are measured.
        """
        return tabulated(lambda state, form: self._unlike(state[0], form), self.states, forms)

    def _unlike(self, state: Form, written: Form) -> float:
        if state == written:
            return 0.0
        return self.price.between(written, state) + self.readers * self.price.bordered

    def read_as(self, forms: Sequence[Form]) -> Table:
        """The edge to a reader that wants one of these."""
        return tabulated(lambda state, form: self._paid(*state, form), self.states, forms)

    def _paid(self, written: Form, made: frozenset[Form], wanted: Form) -> float:
        there = wanted.as_copied in made
        return self.price.border(written, wanted) if there else self.price(written, wanted)
