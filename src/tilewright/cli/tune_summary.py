"""What a tuner leaves behind: how much faster the model is, why, and how to use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilewright.cli.output import paragraph
from tilewright.cli.table import aligned, cut
from tilewright.cli.tune_table import GAINED, gain_text, latency
from tilewright.records.kinds import MOST_TIME
from tilewright.records.record import OK
from tilewright.shown import counted, duration_text, in_line, time_text
from tilewright.tuning.events import State, TaskState

__all__ = ["Summary"]

MOST_TASKS: Final = 5
"""Tasks that are named for what they gained."""


@dataclass(frozen=True)
class Summary:
    """What stands at the end. `use` is the call that uses it, `again` the command that goes on."""

    state: State
    database: Path
    outcomes: Mapping[str, int]
    is_interrupted: bool
    use: str
    again: str

    def text(self, width: int) -> str:
        """For people."""
        return "\n".join(self._lines(width))

    def facts(self) -> dict[str, Any]:
        """For programs."""
        state = self.state
        return {
            "model": state.model,
            "trials": state.trials,
            "failures": self.failures,
            "failed": state.failures,
            "seconds": state.seconds,
            "before_ms": state.before_ms,
            "now_ms": state.now_ms,
            "predicted_ms": state.predicted_ms,
            "peers_ms": dict(state.peers_ms),
            "gained": [_task_facts(task) for task in self.gained],
            "database": str(self.database),
            "is_interrupted": self.is_interrupted,
            "is_slower": self.is_slower,
            "use": self.use,
            "again": self.again,
        }

    @property
    def failures(self) -> dict[str, int]:
        """How many trials failed, by kind, the most frequent first."""
        ranked = sorted(self.outcomes.items(), key=lambda pair: (-pair[1], pair[0]))
        return {kind: count for kind, count in ranked if kind != OK}

    @property
    def gained(self) -> list[TaskState]:
        """Tasks that became faster, by the part of the model's time that they saved."""
        faster = [task for task in self.state.tasks if task.trials and task.gain >= GAINED]
        return sorted(faster, key=lambda task: -_saved(task))

    @property
    def is_slower(self) -> bool:
        """Whether the model with its records takes longer than drafted, by more than noise."""
        before, now = self.state.before_ms, self.state.now_ms
        return before is not None and now is not None and now > MOST_TIME * before

    def _lines(self, width: int) -> Iterator[str]:
        state = self.state
        if self.is_interrupted:
            yield "interrupted: everything that was measured is saved"
        found = latency(state).removeprefix("model: ")
        yield paragraph(
            f"{in_line(state.model)}: {found or 'not measured'}", rest="  ", width=width
        )
        yield paragraph(self._trials(), "  ", "    ", width)
        yield from self._gains(width)
        for name, peer in sorted(state.peers_ms.items()):
            now = state.now_ms or state.before_ms
            ratio = f", {peer / now:.2f} times as long as tilewright" if now else ""
            yield paragraph(f"{name}: {time_text(peer / 1e3)}{ratio}", "  ", "    ", width)
        # Commands and calls are to be copied: they are not broken into lines.
        yield f"  records: {in_line(self.database)}"
        yield f"  to use them: {in_line(self.use)}"
        if self.is_slower:
            what = "with these records the model as a whole was slower than its draft"
            hint = "go on tuning, or compile with database=False"
            yield paragraph(f"{what}: {hint}", "  ", "    ", width)
        if self.is_interrupted:
            yield f"  to go on: {in_line(self.again)}"

    def _trials(self) -> str:
        state = self.state
        text = f"{counted(state.trials, 'trial')} in {duration_text(state.seconds)}"
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.failures.items())
        if not state.failures:
            return f"{text}, none failed"
        return f"{text}, {state.failures} failed" + (f": {kinds}" if kinds else "")

    def _gains(self, width: int) -> Iterator[str]:
        gained = self.gained
        if not gained:
            if self.state.trials:
                yield "  no kernel became faster than its draft"
            return
        yield f"  {counted(len(gained), 'kernel')} of {len(self.state.tasks)} became faster:"
        rows = [
            [
                in_line(task.label) or task.recipe,
                f"{task.share:.1%}",
                f"{time_text(task.drafted_ns / 1e9)} → {time_text(task.best_ns / 1e9)}",
                gain_text(task.gain),
            ]
            for task in gained[:MOST_TASKS]
        ]
        for line in aligned(rows, least={0: 12}, width=width - 4).splitlines():
            yield f"    {cut(line, width - 4)}"
        if len(gained) > MOST_TASKS:
            yield f"    and {len(gained) - MOST_TASKS} more"


def _saved(task: TaskState) -> float:
    return task.share * (1 - 1 / task.gain)


def _task_facts(task: TaskState) -> dict[str, Any]:
    times = {"drafted_ns": task.drafted_ns, "best_ns": task.best_ns, "gain": task.gain}
    return {"label": task.label, "runs": task.runs, "share": task.share, **times}
