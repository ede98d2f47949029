"""When each step of a run began and ended, as a table and as a Chrome trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tilewright.runtime.program import Call, Host, Program, SizeExpr
from tilewright.runtime.sizes import evaluate

__all__ = ["Event", "Profile"]


@dataclass(frozen=True, slots=True)
class Event:
    """One step that was run; times are those of the first thread, from the start of the run.

    `flops` and `moved_bytes` are None where the compiler does not tell them.
    """

    step: int
    label: str
    kernel: str
    begin_ns: int
    end_ns: int
    flops: int | None = None
    moved_bytes: int | None = None

    @property
    def time_ns(self) -> int:
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True)
class Profile:
    """Events in order of time."""

    model: str
    events: tuple[Event, ...]

    @classmethod
    def of(cls, program: Program, events: bytes, sizes: tuple[int, ...]) -> Self:
        """From what the native side noted: (step, begin, end) of each, and the sizes at the end."""
        rows = np.frombuffer(events, np.int64).reshape(-1, 3).tolist()
        start = rows[0][1] if rows else 0
        found = [_event(program, sizes, at, b - start, e - start) for at, b, e in rows]
        return cls(program.name, tuple(found))

    def chrome_trace(self) -> dict[str, object]:
        """For `json.dump` and a viewer of Chrome traces."""
        events = self.chrome_events()
        return {"displayTimeUnit": "ns", "otherData": {"model": self.model}, "traceEvents": events}

    def chrome_events(self) -> list[dict[str, Any]]:
        """The events of a Chrome trace; times are in microseconds."""
        return [
            {
                "name": event.label,
                "cat": event.kernel,
                "ph": "X",
                "ts": event.begin_ns / 1000,
                "dur": event.time_ns / 1000,
                "pid": 0,
                "tid": 0,
                "args": {
                    "step": event.step,
                    "flops": event.flops,
                    "moved_bytes": event.moved_bytes,
                },
            }
            for event in self.events
        ]


def _event(program: Program, sizes: tuple[int, ...], at: int, begin: int, end: int) -> Event:
    step = program.steps[at]
    if isinstance(step, Call):
        name = program.kernels[step.kernel].name
        work = _value(step.flops, sizes), _value(step.moved_bytes, sizes)
        return Event(at, step.label or name, name, begin, end, *work)
    kind = type(step).__name__.lower()
    label = step.label if isinstance(step, Host) else ""
    return Event(at, label or kind, kind, begin, end)


def _value(expression: SizeExpr, sizes: tuple[int, ...]) -> int | None:
    return evaluate(expression, sizes) if expression else None
