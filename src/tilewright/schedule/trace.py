"""A schedule as a list of small values: steps that print as Python, go to JSON and back, replay.

A step stores only plain values (names, numbers, tuples). It is hashable, so the tuner can use it as
a key, and the database stores its JSON.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.primitive import PRIMITIVES, Plain

__all__ = ["Step", "Trace", "plain", "unknown_primitive"]

S003 = Code("S003", "there is no primitive `{primitive}`")
S004 = Code("S004", "the text is not a trace")

FORMAT = "tilewright-trace-1"


@dataclass(frozen=True, slots=True)
class Step:
    """One primitive with its plain arguments."""

    primitive: str
    args: tuple[tuple[str, Plain], ...] = ()

    @classmethod
    def of(cls, primitive: str, **args: object) -> Step:
        """A step from keyword arguments; lists become tuples."""
        return cls(primitive, tuple((name, plain(value)) for name, value in args.items()))

    def __str__(self) -> str:
        known = PRIMITIVES.get(self.primitive)
        variadic = {p.name for p in known.parameters if p.variadic} if known else set()
        parts: list[str] = []
        for position, (name, value) in enumerate(self.args):
            if name in variadic and isinstance(value, tuple):
                parts += [_python(v) for v in value]
            elif position == 0:
                parts.append(_python(value))
            else:
                parts.append(f"{name}={_python(value)}")
        return f"{self.primitive}({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Trace:
    """Steps in the order they were applied."""

    steps: tuple[Step, ...] = ()

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __add__(self, other: Trace) -> Trace:
        return Trace(self.steps + other.steps)

    def as_python(self, name: str = "s") -> str:
        """The calls on a `Schedule` called `name` that repeat this trace."""
        return "\n".join(f"{name}.{step}" for step in self.steps)

    def to_json(self) -> str:
        """One line of JSON."""
        steps = [[step.primitive, dict(step.args)] for step in self.steps]
        return json.dumps({"format": FORMAT, "steps": steps}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """The inverse of `to_json`; refuses anything else with S004."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise ValueError(f"format {data['format']!r}")
            steps = tuple(_step(primitive, args) for primitive, args in data["steps"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            hint = "a trace is made by `Trace.to_json`"
            facts = {"expected": FORMAT, "found": f"{type(error).__name__}: {error}"}
            raise ScheduleError(S004, facts, hint=hint) from None
        return cls(steps)


def _step(primitive: object, args: Mapping[str, object]) -> Step:
    if primitive not in PRIMITIVES:
        raise unknown_primitive(primitive)
    return Step.of(str(primitive), **args)


def unknown_primitive(name: object) -> ScheduleError:
    """The error for a step of a primitive that does not exist."""
    close = difflib.get_close_matches(str(name), PRIMITIVES, n=3)
    hint = "use one of the known ones; `help(s.split)` explains a primitive"
    if close:
        hint = f"did you mean {', '.join(f'`{c}`' for c in close)}?"
    facts = {"primitive": name, "known": ", ".join(PRIMITIVES)}
    return ScheduleError(S003, facts, hint=hint)


def plain(value: object) -> Plain:
    """Lists and tuples become tuples; everything else must already be plain."""
    if isinstance(value, list | tuple):
        return tuple(plain(v) for v in value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"a step cannot store {value!r}")


def _python(value: Plain) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_python, value))}]"
    return json.dumps(value) if isinstance(value, str) else repr(value)
