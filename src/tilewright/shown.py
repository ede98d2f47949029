"""Names that strangers chose, and what else they wrote, as a text may show them; times in words.

A name in a model is any text: it may have thousands of characters, line ends that look like more
of the message around it, or sequences that steer a terminal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

__all__ = ["LONGEST", "counted", "duration_text", "in_line", "listed", "quoted", "shown"]
__all__ += ["time_text", "visible"]

LONGEST: Final = 120
"""Characters of a name that are shown."""

MOST: Final = 32
"""Names of a list that are shown."""

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control and format characters, halves of pairs, what has no meaning, separators of lines."""


def shown(name: object, longest: int = LONGEST) -> str:
    """A name in printable characters, shortened in the middle."""
    text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else str(name)
    if len(text) > longest:
        text = f"{text[: longest // 2]}…{text[-longest // 4 :]}"
    return in_line(text)


def quoted(name: object) -> str:
    """A name as it stands in a sentence."""
    return f"`{shown(name)}`"


def listed(names: Iterable[object], most: int = MOST) -> str:
    """Names in a sentence, the first ones if there are many."""
    known = list(names)
    more = [f"{len(known) - most} more"] if len(known) > most else []
    return ", ".join([*map(quoted, known[:most]), *more]) or "none"


def counted(count: int, noun: str) -> str:
    """`1 thread`, `2 threads`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def time_text(seconds: float) -> str:
    """`1.24 ms` for a person."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}" if seconds * scale < 1000 else f"{seconds:.0f} s"
    return f"{seconds * 1e9:.0f} ns"


def duration_text(seconds: float) -> str:
    """`3 min 12 s` for a person who waits."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def in_line(text: object) -> str:
    """A text of any length on one line, in which nothing is hidden."""
    return _without_hidden(str(text), "")


def visible(text: str) -> str:
    """A text of several lines in which nothing is hidden, and nothing steers a terminal."""
    return _without_hidden(text, "\n\t")


def _without_hidden(text: str, kept: str) -> str:
    if text.isprintable():
        return text
    return "".join(_escaped(c) if _is_hidden(c) and c not in kept else c for c in text)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
