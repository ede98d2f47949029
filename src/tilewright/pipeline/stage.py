"""A stop on a path, and what is found there.

A table of stages is an ordered tuple of `Stage`: `pipeline/kernel.py` has the one of a tensor
program, `pipeline/model.py` the one of a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tilewright.errors import Code, UserError

if TYPE_CHECKING:
    from tilewright.schedule import Trace
    from tilewright.schedule.recipes.recipe import Decision

__all__ = ["Artefact", "Observer", "Progress", "Reached", "Report", "Stage", "Tell"]
__all__ += ["dump_to", "stage_named"]

K001 = Code("K001", "there is no stage `{stage}`")


@dataclass(frozen=True, slots=True)
class Stage:
    """A stop on the path: what it comes from, the ending of its files, and what it is."""

    name: str
    source: str
    suffix: str
    summary: str

    @property
    def is_resumable(self) -> bool:
        """Whether its text parses: only then it can be edited, and the path goes on from it."""
        return self.suffix in (".tir", ".ll")


@dataclass(frozen=True, slots=True)
class Artefact:
    """What a stage made; `value` prints as the text of the stage."""

    stage: str
    value: object

    @property
    def text(self) -> str:
        """The artefact as text; object code only says how much of it there is."""
        if isinstance(self.value, bytes):
            return f"{len(self.value)} bytes of object code"
        return str(self.value)


Observer: TypeAlias = Callable[[Artefact], None]
"""Called with every artefact as soon as it is made."""


@dataclass
class Report:
    """How something came about: seconds by stage; trace and decisions of a kernel, remarks."""

    seconds: dict[str, float] = field(default_factory=dict)
    trace: Trace | None = None
    remarks: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds.values())

    def __str__(self) -> str:
        rows = [f"{stage:<20}{1e3 * s:8.2f} ms" for stage, s in self.seconds.items()]
        rows.append(f"{'total':<20}{1e3 * self.total_seconds:8.2f} ms")
        return "\n".join([*rows, *self.remarks])


@dataclass(frozen=True)
class Progress:
    """How far a compilation is: a stage, and how many of its parts are done."""

    stage: str
    done: int = 0
    total: int = 0


Tell: TypeAlias = Callable[[Progress], None]


class Reached(Exception):  # noqa: N818  (a signal between two functions, not an error)
    """The last stage that was asked for is done."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact


def stage_named(name: str, stages: Sequence[Stage]) -> Stage:
    """The stage of a table; K001 if it has none of this name."""
    for stage in stages:
        if stage.name == name:
            return stage
    known = ", ".join(stage.name for stage in stages)
    raise UserError(K001, {"stage": name}, hint=f"stages in order: {known}")


def dump_to(folder: Path, stages: Sequence[Stage]) -> Observer:
    """An observer that writes every artefact to a file, numbered by its place in a table."""
    folder.mkdir(parents=True, exist_ok=True)

    def dump(artefact: Artefact) -> None:
        stage = stage_named(artefact.stage, stages)
        path = folder / f"{stages.index(stage):02}-{stage.name}{stage.suffix}"
        if isinstance(artefact.value, bytes):
            path.write_bytes(artefact.value)
        elif stage.suffix:
            path.write_text(artefact.text, encoding="utf-8")

    return dump
