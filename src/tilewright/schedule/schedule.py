"""`Schedule`: a program, and the steps that made it. Every step is checked and validated.

Each primitive of the registry is a method: `s.split("i", 6)` returns the names of the new loops.
The schedule holds no logic of its own: methods only turn their arguments into a `Step`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tilewright.errors import UserError
from tilewright.schedule.handles import names_of, uniquely_named
from tilewright.schedule.primitive import PRIMITIVES, Plain, Primitive
from tilewright.schedule.trace import Step, Trace, plain, unknown_primitive
from tilewright.tensor import ir as tir
from tilewright.tensor.validate import ValidationCache, validate
from tilewright.tensor.verify import verify
from tilewright.tensor.visit import enclosing

if TYPE_CHECKING:
    from tilewright.schedule.recipes.recipe import Decision

__all__ = ["Schedule"]


class Schedule:
    """A program under transformation.

    >>> s = Schedule(matmul)
    >>> i, j, k = s.loops("C")
    >>> i_outer, i_inner = s.split(i, 6)
    >>> print(s.func)
    """

    def __init__(self, func: tir.Func, trace: Trace | None = None) -> None:
        self.func, self._cache = _start(func)
        self._steps: list[Step] = []
        self.remarks: list[str] = []
        """Where a recipe gave up, for whoever wonders why a kernel is slow."""
        self.decisions: list[Decision] = []
        """The points that recipes have followed, group by group."""
        self._together = False
        for step in trace or ():
            self.apply(step)

    @property
    def trace(self) -> Trace:
        """The steps so far."""
        return Trace(tuple(self._steps))

    def apply(self, step: Step) -> tuple[str, ...]:
        """Apply one step; the names of what it made. The schedule is unchanged if it is refused."""
        primitive = PRIMITIVES.get(step.primitive)
        if primitive is None:
            raise unknown_primitive(step.primitive)
        try:
            positional, keywords = primitive.resolve(names_of(self.func), dict(step.args))
            edit = primitive.function(*positional, **keywords)
            if self._together:
                pass
            elif edit.harmless:
                self._cache.carry_over(self.func, edit.func)
            else:
                validate(edit.func, self._cache)
        except UserError as error:
            raise error.at_step(step) from None
        self.func = edit.func
        self._steps.append(step)
        return edit.made

    @contextmanager
    def together(self) -> Iterator[None]:
        """Validate once behind all steps inside, instead of behind each of them.

        What counts is the program that they make: it is found to be legal, or refused. The caller
        goes back to a copy if one of the steps is refused.
        """
        if self._together:
            yield
            return
        self._together = True
        try:
            yield
        finally:
            self._together = False
        validate(self.func, self._cache)

    def replay(self, steps: Iterable[Step]) -> Schedule:
        """Apply many steps; returns the schedule."""
        for step in steps:
            self.apply(step)
        return self

    def copy(self) -> Schedule:
        """An independent schedule of the same program (programs are values: nothing is copied)."""
        other = object.__new__(Schedule)
        other.func, other._steps, other._cache = self.func, list(self._steps), self._cache
        other.remarks, other._together = list(self.remarks), False
        other.decisions = list(self.decisions)
        return other

    def restore(self, other: Schedule) -> None:
        """Go back to a copy made before."""
        self.func, self._steps = other.func, list(other._steps)

    def blocks(self) -> tuple[str, ...]:
        """Names of all blocks in program order."""
        return tuple(names_of(self.func).blocks)

    def loops(self, block: str) -> tuple[str, ...]:
        """Names of the loops around a block, outermost first."""
        target = names_of(self.func).block(block)
        around = enclosing(self.func, target)
        return tuple(stmt.var.name for stmt in around if isinstance(stmt, tir.For))

    def block(self, name: str) -> tir.Block:
        """The block itself, to look at."""
        return names_of(self.func).block(name)

    def loop(self, name: str) -> tir.For:
        """The loop itself, to look at."""
        return names_of(self.func).loop(name)

    def buffer(self, name: str) -> tir.Buffer:
        """The buffer itself, to look at."""
        return names_of(self.func).buffer(name)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        primitive = PRIMITIVES.get(name)
        if primitive is None:
            raise AttributeError(f"a schedule has no primitive or attribute `{name}`")
        return _method(self, primitive)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *PRIMITIVES]


_starts: dict[int, tuple[tir.Func, tir.Func, ValidationCache]] = {}
_MOST_STARTS = 16


def _start(func: tir.Func) -> tuple[tir.Func, ValidationCache]:
    """The program with unique names, found to be well formed and valid, and what is known of it.

    The last few programs are remembered: a search begins thousands of schedules with the same one.
    """
    found = _starts.get(id(func))
    if found is None:
        named, cache = uniquely_named(verify(func)), ValidationCache()
        validate(named, cache)
        if len(_starts) >= _MOST_STARTS:
            _starts.clear()
        found = _starts[id(func)] = (func, named, cache)
    _, named, cache = found
    return named, cache.branch()


def _method(schedule: Schedule, primitive: Primitive) -> Callable[..., Any]:
    def method(*args: Plain, **keywords: Plain) -> str | tuple[str, ...] | None:
        made = schedule.apply(_step(primitive, args, keywords))
        return made[0] if len(made) == 1 else (made or None)

    method.__name__, method.__doc__ = primitive.name, primitive.doc
    return method


def _step(primitive: Primitive, args: tuple[Plain, ...], keywords: dict[str, Plain]) -> Step:
    """Match positional and keyword arguments with the primitive's parameters."""
    given: dict[str, object] = {}
    rest = list(args)
    for parameter in primitive.parameters:
        if parameter.variadic:
            given[parameter.name] = tuple(rest)
            rest = []
        elif rest and parameter.name not in keywords:
            given[parameter.name] = rest.pop(0)
    unknown = [k for k in keywords if k not in {p.name for p in primitive.parameters}]
    if rest or unknown:
        signature = inspect.signature(primitive.function)
        what = f"unknown argument `{unknown[0]}`" if unknown else "too many arguments"
        raise TypeError(f"{primitive.name}{signature}: {what}")
    given |= keywords
    return Step.of(primitive.name, **{name: plain(value) for name, value in given.items()})
