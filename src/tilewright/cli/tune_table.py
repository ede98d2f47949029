"""What a tuner has found so far as text: a table of tasks, and a few lines about the model.

Everything is made of a `State` alone, for a screen of a given size: tasks that do not fit are one
line. `tune_watch.py` says when it is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tilewright.cli.table import cut, fitted
from tilewright.shown import counted, duration_text, in_line, time_text
from tilewright.tuning.events import State, TaskState

__all__ = ["GAINED", "gain_text", "latency", "painted", "progress_text", "table_lines"]

_HEAD: Final = ["task", "runs", "share", "draft µs", "best µs", "gain", "trials"]
_LEAST: Final = {"task": 12}
_SPARE: Final = ["runs", "draft µs", "trials", "share"]
"""Columns that a narrow screen does without, the first one first."""

GAINED: Final = 1.02
"""From this gain on a task has become faster; less may be noise."""
ROWS_LEAST: Final = 1
"""Tasks that are shown on the lowest of screens."""

_GREEN, _FAINT, _BOLD, _PLAIN = "\x1b[32m", "\x1b[2m", "\x1b[1m", "\x1b[0m"
_GAIN: Final = re.compile(r"(\d+\.\d\d)([×x])")


def table_lines(state: State, width: int, height: int) -> list[str]:
    """The tasks that take most of the time, and what is known of the model, within the screen."""
    below = [cut(line, width) for line in _below(state)]
    room = max(ROWS_LEAST, height - len(below) - 3)  # the head, what is left out, an empty line
    ranked = sorted(state.tasks, key=lambda task: -task.share)
    if not ranked:
        return below
    rows = [_HEAD, *map(_cells, ranked[:room])]
    lines = [cut(row, width) for row in fitted(rows, 1, _LEAST, _SPARE, width).splitlines()]
    rest = ranked[room:]
    if rest:
        share = sum(task.share for task in rest)
        lines.append(cut(f"and {len(rest)} more, {share:.1%} of the time", width))
    return [*lines, "", *below]


def _cells(task: TaskState) -> list[str]:
    tried = task.trials > 0
    return [
        in_line(task.label) or task.recipe,
        str(task.runs),
        f"{task.share:.1%}",
        _micros(task.drafted_ns),
        _micros(task.best_ns) if tried else "-",
        gain_text(task.gain) if tried else "-",
        f"{task.trials} done" if task.is_done else str(task.trials),
    ]


def _micros(time_ns: float) -> str:
    micros = time_ns / 1e3
    if not micros:
        return "-"
    return f"{micros:.0f}" if micros >= 100 else f"{micros:.3g}"


def gain_text(gain: float) -> str:
    """`1.24×`."""
    return f"{gain:.2f}×"


def _below(state: State) -> Iterator[str]:
    """What there is to say of all tasks together."""
    yield progress_text(state)
    found = latency(state)
    if found:
        yield found
    for name, peer in sorted(state.peers_ms.items()):
        now = state.now_ms or state.predicted_ms or state.before_ms
        ratio = f", {peer / now:.2f} times as long as ours" if now else ""
        yield f"{in_line(name)}: {time_text(peer / 1e3)}{ratio}"


def progress_text(state: State) -> str:
    """How far the search is, and how long it goes on."""
    words = [in_line(state.stage)] if state.stage else []
    failed = f" ({state.failures} failed)" if state.failures else ""
    words += [f"{counted(state.trials, 'trial')}{failed}", f"{duration_text(state.seconds)} so far"]
    if state.trials_left is not None:
        words.append(f"{counted(state.trials_left, 'trial')} left")
    if state.seconds_left is not None:
        words.append(f"{duration_text(state.seconds_left)} left")
    return ", ".join(words)


def latency(state: State) -> str:
    """The model before and now; what was not measured says so."""
    before, now, predicted = state.before_ms, state.now_ms, state.predicted_ms
    if before is None:
        return "" if predicted is None else f"model: {time_text(predicted / 1e3)} (predicted)"
    if now is None:
        if predicted is None:
            return f"model: {time_text(before / 1e3)}"
        return f"model: {_change(before, predicted)} (predicted)"
    text = f"model: {_change(before, now)} (measured)"
    if predicted is not None and abs(predicted - now) > 0.005 * now:
        text += f", {time_text(predicted / 1e3)} predicted"
    return text


def _change(before_ms: float, now_ms: float) -> str:
    gain = f", {before_ms / now_ms:.2f} times as fast" if now_ms else ""
    return f"{time_text(before_ms / 1e3)} → {time_text(now_ms / 1e3)}{gain}"


def painted(lines: Sequence[str]) -> list[str]:
    """The lines in colours: the head faint, gains green, the latency bold."""
    return [_painted(line, is_head=number == 0) for number, line in enumerate(lines)]


def _painted(line: str, *, is_head: bool) -> str:
    if line.startswith("model: "):
        return f"{_BOLD}{line}{_PLAIN}"
    if (is_head and line.startswith("task ")) or line.startswith("and "):
        return f"{_FAINT}{line}{_PLAIN}"
    return _GAIN.sub(_painted_gain, line)


def _painted_gain(found: re.Match[str]) -> str:
    return f"{_GREEN}{found[0]}{_PLAIN}" if float(found[1]) >= GAINED else found[0]
