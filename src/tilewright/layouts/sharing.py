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
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Value
from tilewright.graph.sizes import bytes_of
from tilewright.layouts.costs import Machine, Picture, bordered_cycles, converted_cycles
from tilewright.layouts.forms import LAST, Form

__all__ = ["Price", "Shared", "tabulated"]

Table = NDArray[np.float64]
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class Price:
    """What it costs that a value is not stored as a reader wants it."""

    converted: float
    bordered: float

    @classmethod
    def of(cls, value: Value, machine: Machine) -> Price:
        size = bytes_of(value)  # as convolutions count a symbolic batch
        # A conversion is one more step, where a site that turns its data anyway has none.
        converted = converted_cycles(Picture.of(value), machine) + machine.model.step_cycles
        return cls(converted, bordered_cycles(size, machine))

    def __call__(self, written: Form, wanted: Form) -> float:
        converted = 0.0 if written.plain == wanted.plain else self.converted
        return converted + self.border(written, wanted)

    def border(self, written: Form, wanted: Form) -> float:
        """The part of a reader: what is converted comes without zeros around it."""
        alike = written.plain == wanted.plain
        return 0.0 if (written if alike else LAST).covers(wanted) else self.bordered


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
        wanted = Counter(form for forms in readers for form in {f.plain for f in forms})
        common = [form for form, times in wanted.items() if times > 1]
        states = [
            (w, frozenset(made))
            for w in dict.fromkeys(written)
            for size in range(len(readers) // 2 + 1)  # each is for two readers at least
            for made in combinations([f for f in common if f != w.plain], size)
        ]
        return cls(price, len(readers), tuple(states))

    @property
    def costs(self) -> list[float]:
        """The conversions of each state."""
        return [self.price.converted * len(made) for _, made in self.states]

    def written_as(self, forms: Sequence[Form]) -> Table:
        """The edge to a writer with these results.

        Another form than the one of a state would be converted into it first, with a border for
        each reader: never the cheapest way, but a possible one, by which others are measured.
        """
        return tabulated(lambda state, form: self._unlike(state[0], form), self.states, forms)

    def _unlike(self, state: Form, written: Form) -> float:
        if state == written:
            return 0.0
        converted = 0.0 if state.plain == written.plain else self.price.converted
        return converted + self.readers * self.price.bordered

    def read_as(self, forms: Sequence[Form]) -> Table:
        """The edge to a reader that wants one of these."""
        return tabulated(lambda state, form: self._paid(*state, form), self.states, forms)

    def _paid(self, written: Form, made: frozenset[Form], wanted: Form) -> float:
        there = wanted.plain in made
        return self.price.border(written, wanted) if there else self.price(written, wanted)
