"""The table of expansions: which functions have one, and what error is declared for each.

A name's meaning is in `tensor/functions.py`; `define_function` gives a new name both, meaning and
expansion, which is all that a function of one's own needs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tilewright.intrin.functions.floats import call, let
from tilewright.tensor import functions as meanings
from tilewright.tensor import ir as tir

__all__ = ["EXPANSIONS", "FUNCTIONS", "NATIVE", "MathFunction", "define_function", "function"]

NATIVE: Final = ("fma", "sqrt", "floor", "ceil", "trunc", "round", "abs", "copysign")
"""Functions with an instruction of their own on every target; they are not expanded."""

Expand = Callable[..., tir.Expr]


@dataclass(frozen=True)
class MathFunction:
    """Declared properties: the error bound in ulp of the result, and where it holds."""

    name: str
    ulp: float
    domain: str = "all values"


FUNCTIONS: Final[dict[str, MathFunction]] = {}
EXPANSIONS: Final[dict[str, Callable[[tuple[tir.Expr, ...]], tir.Expr]]] = {}


def function(name: str, ulp: float, domain: str = "all values") -> Callable[[Expand], Expand]:
    """Register an expansion: a function from expressions to one of the same dtype.

    Its arguments are literals or variables, so that it may use them as often as it likes.
    """

    def register(expand: Expand) -> Expand:
        names = tuple(inspect.signature(expand).parameters)
        FUNCTIONS[name] = MathFunction(name, ulp, domain)
        EXPANSIONS[name] = lambda args: _bound(_contracted(expand), names, args)
        return expand

    return register


def _contracted(expand: Expand) -> Expand:
    """Its arguments are rounded before; what it does to them may be fused."""
    return lambda *args: call("contracted", expand(*args))


def _bound(expand: Expand, names: tuple[str, ...], args: tuple[tir.Expr, ...]) -> tir.Expr:
    """`expand` of the arguments, each evaluated once."""
    if not names:
        return expand()
    return let(
        names[0],
        args[0],
        lambda first: _bound(lambda *rest: expand(first, *rest), names[1:], args[1:]),
    )


def define_function(
    name: str, *, meaning: Callable[..., Any], ulp: float, domain: str = "all values"
) -> Callable[[Expand], Expand]:
    """Make a function of one's own known to the interpreter and to native code.

    `meaning` takes and gives float64 arrays and defines the result, `ulp` is the error that the
    decorated expansion keeps to; an expansion may call other functions.

        @define_function("softplus", meaning=lambda x: np.logaddexp(0, x), ulp=4)
        def softplus(x):
            positive = tw.select(x > 0, x, 0.0)
            return positive + tw.call("log1p", tw.call("exp", -tw.call("abs", x)))
    """

    def register(expand: Expand) -> Expand:
        meanings.register(name, len(inspect.signature(expand).parameters), meaning)
        return function(name, ulp, domain)(expand)

    return register
