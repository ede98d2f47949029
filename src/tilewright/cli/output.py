"""What commands print: texts for people, JSON for programs.

A model may name its values as it likes. No text for people steers the terminal, whatever it holds;
names in it are on one line. JSON has names as they are, in escapes of its own.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping
from typing import Any, Final, TextIO

import numpy as np

from tilewright.errors import Code, TilewrightError, UserError
from tilewright.shown import in_line, shown, visible

__all__ = ["complain", "drop_output", "error_facts", "flush", "line", "make_printable", "say"]
__all__ += ["encodable", "paragraph", "say_json", "say_json_line", "screen_width"]

K049 = Code("K049", "results cannot be printed: {problem}")

LONGEST: Final = 400
"""Characters of a line about one value: its name, its type and its dimensions."""
WIDTH: Final = 80
"""Columns where there is no terminal to ask."""
NARROWEST: Final = 40
"""Columns below which tables are not made to fit."""

_FORMS: Final = str.maketrans(
    {"µ": "u", "×": "x", "·": "*", "…": "~", "–": "-", "≈": "~", "→": "->", "≤": "<=", "≥": ">="}
)
"""What our own texts use beyond ASCII, for terminals that have nothing else."""


def make_printable() -> None:
    """Let characters that an output cannot encode be written in ASCII instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="tilewright")


def _in_ascii(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    text = problem.object[problem.start : problem.end].translate(_FORMS)
    return text.encode("ascii", "backslashreplace").decode("ascii"), problem.end


def screen_width() -> int:
    """Columns of the terminal, or of a page if there is none."""
    return max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns)


def paragraph(text: object, first: str = "", rest: str = "", width: int | None = None) -> str:
    """Text in lines that fit the screen: `first` begins the first one, `rest` the others."""
    return textwrap.fill(
        in_line(text),
        width or screen_width(),
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
    )


def say(text: str) -> None:
    """Print a text of several lines."""
    with _printing():
        print(visible(text))


def say_json(facts: object) -> None:
    """Print data for programs: one document, in which what is no finite number is null."""
    with _printing():
        print(json.dumps(_plain(facts), indent=2, allow_nan=False))


def say_json_line(facts: object) -> None:
    """Print data for programs that read while it is written: one document in each line."""
    with _printing():
        print(json.dumps(_plain(facts), allow_nan=False), flush=True)


def encodable(text: str, stream: TextIO) -> str:
    """A text as a stream will write it, by which its width is known."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "tilewright").decode(encoding)


def complain(text: str) -> None:
    """Print a text where errors go."""
    print(visible(text), file=sys.stderr)


def flush() -> None:
    """Bring all that was printed to its reader: a full disk shows only here."""
    if sys.stdout is not None:
        with _printing():
            sys.stdout.flush()


def drop_output() -> None:
    """Throw away what could not be written, which Python would try again at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def line(text: object) -> str:
    """What is said of one value, on one line and not too long."""
    return shown(text, LONGEST)


def error_facts(error: TilewrightError) -> dict[str, Any]:
    """An error for programs."""
    summary = str(error).partition("\n")[0].removeprefix(f"{error.code.id}: ")
    facts = {name: _fact(value) for name, value in error.facts.items()}
    return {"code": error.code.id, "summary": summary, "facts": facts, "hint": error.hint}


def _fact(value: object) -> object:
    return value if isinstance(value, int | float | str | list | tuple) else str(value)


@contextlib.contextmanager
def _printing() -> Any:
    try:
        yield
    except BrokenPipeError:  # the reader has had enough, for example `| head`
        raise
    except OSError as problem:
        drop_output()
        facts = {"problem": problem.strerror or str(problem)}
        hint = "print to another place: a terminal, a pipe, or a file on a disk with room"
        raise UserError(K049, facts, hint=hint) from None


def _plain(value: object) -> object:
    """Data of JSON: arrays become lists, bytes texts, and NaN and infinities null."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case np.ndarray() | np.generic():
            return _plain(value.tolist())
        case bytes():
            return value.decode("utf-8", "backslashreplace")
    return value


codecs.register_error("tilewright", _in_ascii)
