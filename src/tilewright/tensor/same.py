"""One object for each key, for things that are compared by identity."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

__all__ = ["always_the_same"]

P = ParamSpec("P")
T = TypeVar("T")


def always_the_same(make: Callable[P, T]) -> Callable[P, T]:
    """`make`, called once for each tuple of positional arguments, whichever threads ask for it.

    `functools.cache` may give two threads that ask at the same moment objects of their own.
    """
    made: dict[Any, T] = {}

    @wraps(make)
    def found(*key: P.args, **none: P.kwargs) -> T:
        known = made.get(key)
        return made.setdefault(key, make(*key, **none)) if known is None else known

    return found
