"""Rule tables: each rule is a function together with the law that makes it right.

The law is data, not a comment: the tests hand every law to z3 and compare every rule with plain
evaluation over small ranges, and a rule without a law cannot be registered. A table is tried from
top to bottom; the first rule that answers wins, and a rule answers None where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

__all__ = ["LAWS", "TABLES", "Law", "Rule", "RuleTable", "law"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Law:
    """`left` equals `right` for all integers with `given`, in Python's notation.

    Letters a–h are constants of the rule, all others stand for arbitrary expressions.
    """

    left: str
    right: str
    given: str = "True"

    def __str__(self) -> str:
        return f"{self.left}  =  {self.right}" + (
            "" if self.given == "True" else f"   if {self.given}"
        )


@dataclass(frozen=True)
class Rule(Generic[F]):
    """A rewrite and its law."""

    name: str
    law: Law
    apply: F


@dataclass
class RuleTable(Generic[F]):
    """Rules in the order in which they are tried."""

    name: str
    rules: list[Rule[F]] = field(default_factory=list)

    def __post_init__(self) -> None:
        TABLES[self.name] = self

    def rule(self, left: str, right: str, given: str = "True") -> Callable[[F], F]:
        """Register the decorated function as the rule `left → right`."""

        def add(function: F) -> F:
            self.rules.append(Rule(function.__name__, Law(left, right, given), function))
            return function

        return add

    def __iter__(self) -> Iterator[Rule[F]]:
        return iter(self.rules)


TABLES: dict[str, RuleTable[Any]] = {}
"""All tables by name; the tests walk over them."""

LAWS: dict[str, list[Law]] = {}
"""Laws of functions that are no rules of a table, by the function's name."""


def law(left: str, right: str, given: str = "True") -> Callable[[F], F]:
    """Say what makes the decorated function right; z3 checks it as the laws of rules."""

    def add(function: F) -> F:
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        LAWS.setdefault(name, []).append(Law(left, right, given))
        return function

    return add
