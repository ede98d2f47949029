"""Who watches a tuner: a live table on a terminal, lines elsewhere, JSON for programs.

A watcher is called with every event and must cost next to nothing: the table is drawn at most five
times a second, and lines come every ten seconds. All of them keep the last state and count what
trials came to, of which the summary is made.
"""

from __future__ import annotations

import shutil
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from types import TracebackType
from typing import Any, Final, Self, TextIO

from tilewright import options
from tilewright.cli.output import encodable, say_json_line
from tilewright.cli.table import cut
from tilewright.cli.tune_table import latency, painted, progress_text, table_lines
from tilewright.records.record import OK
from tilewright.shown import in_line, visible
from tilewright.tuning.events import Event, State

__all__ = ["JsonLines", "Lines", "LiveTable", "Watcher", "state_facts", "watcher_for"]

REDRAW_S: Final = 0.2
LINE_S: Final = 10.0

Clock = Callable[[], float]


class Watcher:
    """Sees every event and says nothing; others say what they see."""

    def __init__(self) -> None:
        self.state: State | None = None
        self.outcomes: Counter[str] = Counter()
        self.details: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __call__(self, event: Event) -> None:
        self.state = event.state
        if event.kind == "trial" and event.outcome:
            self.outcomes[event.outcome] += 1
            if event.outcome != OK:
                self.details[event.outcome] = event.detail
        self.show(event)

    def show(self, event: Event) -> None:
        """Say what has happened."""

    def close(self) -> None:
        """Leave the screen as others expect it."""


class LiveTable(Watcher):
    """A table that is drawn again in its place."""

    def __init__(self, stream: TextIO | None = None, clock: Clock = time.monotonic) -> None:
        super().__init__()
        self.stream = sys.stderr if stream is None else stream
        self.clock = clock
        self._height = 0
        self._next = float("-inf")
        self._warn = warnings.showwarning

    def __enter__(self) -> Self:
        self._warn = warnings.showwarning
        warnings.showwarning = self._show_warning
        return self

    def show(self, event: Event) -> None:
        now = self.clock()
        if now >= self._next or event.kind == "end":
            self._draw()
            self._next = now + REDRAW_S

    def close(self) -> None:
        """The last table goes: the summary says what stands."""
        warnings.showwarning = self._warn
        self._clear()

    def _draw(self) -> None:
        assert self.state is not None
        width, height = shutil.get_terminal_size()
        lines = table_lines(self.state, width - 1, height - 1)
        lines = [self._fitting(visible(line), width - 1) for line in lines]
        lines = lines[: max(1, height - 1)]
        shown = painted(lines) if options.wants_colour() else lines
        self.stream.write(self._up() + "".join(f"\x1b[2K{line}\n" for line in shown) + "\x1b[J")
        self.stream.flush()
        self._height = len(lines)

    def _fitting(self, line: str, width: int) -> str:
        """A line as it will be written: what ASCII says in two characters makes it longer."""
        return encodable(cut(encodable(line, self.stream), width), self.stream)

    def _clear(self) -> None:
        if self._height:
            self.stream.write(f"{self._up()}\x1b[J")
            self.stream.flush()
        self._height = 0

    def _up(self) -> str:
        return f"\x1b[{self._height}F" if self._height else ""

    def _show_warning(self, *what: Any, **more: Any) -> None:
        """A warning above the table: below it, the next drawing would miss its place."""
        self._clear()
        self._warn(*what, **more)
        if self.state is not None:
            self._draw()


class Lines(Watcher):
    """A line now and then, for logs."""

    def __init__(self, stream: TextIO | None = None, clock: Clock = time.monotonic) -> None:
        super().__init__()
        self.stream = sys.stderr if stream is None else stream
        self.clock = clock
        self._next = float("-inf")

    def show(self, event: Event) -> None:
        now = self.clock()
        if event.kind == "trial" and now < self._next:
            return
        self._next = now + LINE_S
        words = [f"tune {in_line(event.state.model)}", progress_text(event.state)]
        found = latency(event.state).removeprefix("model: ")
        self.stream.write(visible(": ".join(words) + (f"; {found}" if found else "")) + "\n")
        self.stream.flush()


class JsonLines(Watcher):
    """Every event as a line of JSON.

    That of a trial has the state of its task; others, which are few, have those of all.
    """

    def show(self, event: Event) -> None:
        facts: dict[str, Any] = {"event": event.kind}
        if event.kind == "trial":
            facts |= {"task": event.task, "outcome": event.outcome, "detail": event.detail}
        say_json_line(facts | {"state": state_facts(event)})


def state_facts(event: Event) -> dict[str, Any]:
    """The state behind an event, for programs."""
    facts = asdict(event.state)
    tasks = [{"task": k, **own, "gain": event.state.tasks[k].gain} for k, own in _tasks(facts)]
    is_one = event.kind == "trial" and event.task is not None
    return facts | {"tasks": [row for row in tasks if not is_one or row["task"] == event.task]}


def _tasks(facts: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return list(enumerate(facts["tasks"]))


def watcher_for(
    *, is_json: bool, is_quiet: bool, stream: TextIO | None = None, clock: Clock = time.monotonic
) -> Watcher:
    """The one that suits who reads."""
    if is_json:
        return JsonLines()
    if is_quiet:
        return Watcher()
    where = sys.stderr if stream is None else stream
    if where.isatty() and not options.has_plain_terminal():
        return LiveTable(where, clock)
    return Lines(where, clock)
