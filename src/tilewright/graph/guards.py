"""Conditions on sizes that decide what a graph is: a rank, or what a number of a shape means.

    Squeeze(x[n, 4])   is   x[4] if n = 1, else x[n, 4]

No graph is both. It is built for the answer that sizes give in most runs, with a guard, which a run
checks. A run in which the answer is otherwise takes another version of the model, for which that
guard is flipped (`model/spreading.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Final

from tilewright.graph.nested import Inner
from tilewright.graph.sizes import evaluate_size, filled, fixed, tidy, variables
from tilewright.tensor import ir as tir
from tilewright.tensor.printer import print_node

if TYPE_CHECKING:
    from tilewright.graph.builder import Builder

__all__ = ["Guard", "Guards", "decided", "holds", "is_one"]

USUAL: Final = (67, 71, 73, 79, 83, 89, 97, 101)
"""Sizes as most runs have them: neither zero nor one, and no two of them equal."""

MAX_OTHERS: Final = 8
"""Guards that are flipped one by one to find a graph that can be built."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that a graph takes to hold, or not to; `key` is what versions know it by."""

    key: str
    condition: tir.Expr
    holds: bool


class Guards:
    """The guards of one graph, those of graphs inside included.

    `flipped` are the keys of those whose usual answer is wrong here. `named` are the sizes of
    inputs: conditions on these alone are known by their text, the others by the `place` of the node
    that asks and by what it asks.
    """

    def __init__(self, flipped: Collection[str] = ()) -> None:
        self.flipped = frozenset(flipped)
        self.named: set[tir.Var] = set()
        self.place = ""
        self._noted: dict[tir.Expr, Guard] = {}

    @property
    def noted(self) -> tuple[Guard, ...]:
        return tuple(self._noted.values())

    def others(self) -> Iterator[frozenset[str]]:
        """What else could be flipped, for a graph that cannot be: everything, then one by one."""
        keys = dict.fromkeys(guard.key for guard in self.noted) if not self.flipped else {}
        if keys:
            yield frozenset(keys)
        yield from (frozenset({key}) for key in list(keys)[:MAX_OTHERS] if len(keys) > 1)

    def decide(self, condition: tir.Expr, what: str) -> bool:
        """What this graph takes a condition for."""
        if condition not in self._noted:
            used = variables([condition])
            is_named = self.named.issuperset(used)
            key = print_node(condition) if is_named else f"{what} of {self.place}"
            holds = _usual(condition, used) != (key in self.flipped)
            self._noted[condition] = Guard(key, condition, holds)
        return self._noted[condition].holds


def _usual(condition: tir.Expr, sizes: Sequence[tir.Var]) -> bool:
    """Whether a condition holds in most runs; it does not if these sizes have no answer."""
    try:
        return bool(evaluate_size(condition, dict(zip(sizes, cycle(USUAL), strict=False))))
    except KeyError:
        return False


def holds(b: Builder, condition: tir.Expr, what: str) -> bool:
    """Whether a condition on sizes holds; a guard decides if they do not tell.

    `what` says in words what is asked, for conditions on sizes that no input has.
    """
    condition = tidy(condition)
    sizes = variables([condition])
    known = filled((), sizes).prove(condition)
    around: Builder | None = b
    while known is None and isinstance(around, Inner):  # a branch that depends on it knows it
        known, around = around.facts.get(condition), around.outer
    if known is None:
        return b.guards.decide(condition, what) if b.guards is not None else False
    return known


def is_one(b: Builder, dim: tir.Expr, what: str) -> bool:
    """Whether a dimension is one; a guard decides where only a run tells."""
    return holds(b, dim.eq(1), f"{what} = 1")


def decided(b: Builder, numbers: Sequence[tir.Expr] | None, what: str) -> list[int] | None:
    """Integers among which conditions on sizes choose, as guards decide; None if others are."""
    found = [fixed(_chosen(b, e, f"{what}[{k}]")) for k, e in enumerate(numbers or ())]
    known = [n for n in found if n is not None]
    return None if numbers is None or len(known) < len(found) else known


def _chosen(b: Builder, number: tir.Expr, what: str) -> tir.Expr:
    while isinstance(number, tir.Select):
        number = number.if_true if holds(b, number.cond, what) else number.if_false
    return number
