"""Every error a user can meet: a stable code, a summary, facts, a marked program, a hint.

An error holds references only; its text is made when somebody asks for it, because the search
raises thousands of `ScheduleError`s and must pay no more than a tuple for each. Whose fault it is
shows in the type: `UserError` can be fixed by the caller, `InternalError` is a bug of tilewright.

Facts and hints may hold what strangers wrote, such as names in a model. Each is one line of the
text, whatever is in it, unless tilewright itself put lines together (`Lines`); what the summary has
in backquotes is a name, and shortened like one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, Self

from tilewright.shown import in_line, quoted, shown, visible
from tilewright.unsupported import Unsupported

__all__ = [
    "CODES",
    "ArtefactError",
    "CallError",
    "Code",
    "GraphError",
    "InternalError",
    "Lines",
    "MissingFileError",
    "MissingInputError",
    "ModelError",
    "ParseError",
    "ProgramError",
    "ScheduleError",
    "TargetError",
    "TilewrightError",
    "TilewrightWarning",
    "TuneError",
    "UserError",
    "require",
]

LONGEST: Final = 1000
"""Characters of a fact or a hint that are shown; it may hold names in any number."""

CODES: dict[str, Code] = {}
"""All codes by id; `docs/errors.md` has one entry for each, which a test checks."""


@dataclass(frozen=True, slots=True)
class Code:
    """A stable error code; `summary` is a template filled from the error's facts and marks."""

    id: str
    summary: str

    def __post_init__(self) -> None:
        if self.id in CODES and CODES[self.id] != self:
            raise ValueError(f"error code {self.id} is defined twice")
        CODES[self.id] = self


class Lines(str):
    """A fact of several lines, put together from lines that are safe to show."""

    __slots__ = ()


class TilewrightWarning(UserWarning):
    """The one warning class; the test suite turns it into an error.

    `nodes` are those of a model that it concerns, all of them, where the text shows some.
    """

    def __init__(self, text: str, nodes: Sequence[Unsupported] = ()) -> None:
        super().__init__(visible(text))
        self.nodes = tuple(nodes)


class TilewrightError(Exception):
    """Base of all errors: `code`, `facts` (label → value), `marks` (label → IR node), `hint`."""

    def __init__(
        self,
        code: Code,
        facts: Mapping[str, object] | None = None,
        *,
        hint: str = "",
        program: object = None,
        marks: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.facts = dict(facts or {})
        self.hint = hint
        self.program = program
        self.marks = dict(marks or {})
        self.step: object = None  # the schedule step that failed, filled in by `Schedule`

    def at_step(self, step: object) -> Self:
        """Say which schedule step failed; returns the error so that it can be raised at once."""
        self.step = step
        return self

    def summary(self) -> str:
        """The first line without the code."""
        names = {label: _name_of(node) for label, node in self.marks.items()}
        values = {**self.facts, **names}
        return _HOLE.sub(lambda hole: _filled(hole, values), self.code.summary)

    def __str__(self) -> str:
        lines = [f"{self.code.id}: {self.summary()}"]
        if self.step is not None:
            lines.append(f"  step: {in_line(self.step)}")
        in_summary = self.code.summary
        facts = {k: _told(v) for k, v in self.facts.items() if f"{{{k}}}" not in in_summary}
        lines += [f"  {k}:{'' if v.startswith(chr(10)) else ' '}{v}" for k, v in facts.items()]
        if self.program is not None:
            # A program knows how to print itself with marks; errors stay below it in the layers.
            text = self.program.marked_text(self.marks)  # type: ignore[attr-defined]
            lines += [f"    {line}" for line in text.splitlines()]
        if self.hint:
            lines.append(f"  hint: {_told(self.hint)}")
        return visible("\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        # Across processes the rendered text travels, not the program.
        return _restore, (type(self), self.code.id, str(self))


class UserError(TilewrightError):
    """Something the caller can fix."""


class ModelError(UserError):
    """M…: unsupported ops or bad shapes in a model; `nodes` are all that it concerns."""

    nodes: tuple[Unsupported, ...] = ()


class GraphError(UserError):
    """G…: a type rule of the graph level is violated."""


class ProgramError(UserError):
    """V…: a tensor program is not well formed; carries the program and the marked place."""


class ScheduleError(UserError):
    """S…: a primitive cannot be applied; carries the program, the step and the marked handles."""


class ParseError(UserError):
    """P…: text of a tensor program does not parse; carries the line."""


class TargetError(UserError):
    """T…: a target or a feature is unknown or not available."""


class TuneError(UserError):
    """U…: nothing to tune, or a database that does not fit."""


class CallError(UserError):
    """C…: a compiled kernel is called with wrong arrays."""


class MissingInputError(CallError, ValueError):
    """An input of a model is missing: a ValueError, too, as ONNX Runtime raises."""


class MissingFileError(ModelError, FileNotFoundError):
    """There is no file where a model should be, compiled or not."""


class ArtefactError(UserError):
    """A…: a compiled model in a file is damaged, or made for something else than this machine."""


class InternalError(TilewrightError):
    """I…: a bug of tilewright; says where it happened and how to report it."""


class _Restored(str):
    """Text of an error that crossed a process boundary."""

    __slots__ = ()


def _restore(kind: type[TilewrightError], code_id: str, text: str) -> TilewrightError:
    code = CODES.get(code_id)
    if code is None:  # its module has not been imported here, and will define it when it is
        code = Code(code_id, text.partition("\n")[0])
        del CODES[code_id]
    error = kind(code)
    error.__class__ = type(kind.__name__, (kind,), {"__str__": lambda _: text})
    return error


_HOLE: Final = re.compile(r"`\{(\w+)\}`|\{(\w+)\}")
"""A place of a summary: with backquotes that of a name."""


def _filled(hole: re.Match[str], values: Mapping[str, object]) -> str:
    name, other = hole.groups()
    value = values.get(name or other, f"<{name or other}>")
    return quoted(value) if name else _told(value)


def _told(value: object) -> str:
    return str(value) if isinstance(value, Lines) else shown(value, LONGEST)


def _name_of(node: object) -> object:
    name = getattr(node, "name", None)  # blocks, buffers and variables
    if name is None:
        name = getattr(getattr(node, "var", None), "name", None)  # loops and iterators
    return name if name is not None else node


def require(condition: object, error: type[TilewrightError], code: Code, **details: object) -> None:
    """Raise `error` with `code` unless `condition` holds; keep hot paths free of string work."""
    if not condition:
        _raise(error, code, details)


def _raise(error: type[TilewrightError], code: Code, details: dict[str, object]) -> NoReturn:
    raise error(
        code,
        details.get("facts"),  # type: ignore[arg-type]
        hint=str(details.get("hint", "")),
        program=details.get("program"),
        marks=details.get("marks"),  # type: ignore[arg-type]
    )
