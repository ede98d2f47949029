"""`Tokenizer` of ONNX Runtime, for the ONNX reference implementation: texts become rows of tokens.

Patterns are those of RE2, which takes the longest of the matches that begin first, where Python
takes the first of several ways to match.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from onnx.reference.op_run import OpRun

from tilewright.frontend.onnx.regular import in_python

__all__ = ["Tokenizer"]

BEGIN, END = "\x02", "\x03"
MARKS: Final = 2
"""Tokens that `mark` puts around those of a text."""


class Tokenizer(OpRun):  # type: ignore[misc]
    """[…, c] texts become […, c, most tokens]: letters, what matches, or what lies between."""

    op_domain = "com.microsoft"

    def _run(
        self,
        x: Any,
        mark: int = 0,
        mincharnum: int = 1,
        pad_value: str = "",
        separators: Sequence[str] | None = None,
        tokenexp: str | None = None,
    ) -> tuple[Any]:
        if x.ndim not in (1, 2):
            raise ValueError(f"texts of shape {list(x.shape)}, where [C] or [N, C] is expected")
        if mincharnum < 1:
            raise ValueError(f"`mincharnum` is {mincharnum}")
        split = _splitting(separators or (), tokenexp or "", mincharnum)
        if not x.size:  # as ONNX Runtime has it: with one dimension less
            return (np.empty((*x.shape[:-1], 0), dtype=object),)
        rows = [split(text) for text in x.ravel().tolist()]
        most = max(map(len, rows))
        if mark and most:
            most, rows = most + MARKS, [[BEGIN, *row, END] for row in rows]
        found = np.empty((len(rows), most), dtype=object)
        for k, row in enumerate(rows):
            found[k] = row + [pad_value] * (most - len(row)) if most else []
        return (found.reshape(*x.shape, most),)


def _splitting(separators: Sequence[str], pattern: str, least: int) -> Callable[[str], list[str]]:
    """What takes a text apart, into tokens of at least so many letters."""
    if bool(separators) == bool(pattern):
        raise ValueError("either `separators` or `tokenexp` must be given")
    if list(separators) == [""] or pattern == ".":
        if least > 1:
            raise ValueError("letters are shorter than `mincharnum`")
        return list
    if pattern:
        return lambda text: [t for a, b in _matches(pattern, text) if len(t := text[a:b]) >= least]

    def between(text: str) -> list[str]:
        parts = [text]
        for separator in separators:
            parts = [p for part in parts for p in _between(separator, part) if len(p) >= least]
        return parts

    return between


def _between(separator: str, text: str) -> Iterator[str]:
    """What lies between the matches; where one is empty, the next letter is lost."""
    begin = 0
    for first, last in _matches(separator, text):
        yield text[begin:first]
        begin = max(last, first + 1)
    yield text[begin:]


def _matches(pattern: str, text: str) -> Iterator[tuple[int, int]]:
    """Where matches begin and end, one after another."""
    at, expression = 0, in_python(pattern)
    while at <= len(text) and (found := expression.search(text, at)) is not None:
        first, last = found.start(), found.end()
        if "|" in pattern or "?" in pattern:  # there may be a longer one
            last = next(
                (
                    end
                    for end in range(len(text), last, -1)
                    if _ends(expression.pattern, text, first, end)
                ),
                last,
            )
        yield first, last
        at = last if last > first else first + 1


def _ends(expression: str, text: str, first: int, end: int) -> bool:
    """Whether there is a match that begins and ends there."""
    return _before(expression, len(text) - end).match(text, first) is not None


@functools.lru_cache(256)
def _before(expression: str, rest: int) -> re.Pattern[str]:
    """A pattern for what stands so many letters before the end of a text."""
    return re.compile(rf"(?:{expression})(?=[\s\S]{{{rest}}}\Z)")
