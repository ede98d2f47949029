"""Names that strangers chose, as a text may show them.

A name in a model is any text: it may have thousands of characters, line ends that look like more
of the message around it, or sequences that steer a terminal.
"""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["LONGEST", "shown", "visible"]

LONGEST: Final = 120
"""Characters of a name that are shown."""

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control and format characters, halves of pairs, what has no meaning, separators of lines."""


def shown(name: object, longest: int = LONGEST) -> str:
    """A name in printable characters, shortened in the middle."""
    text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else str(name)
    if len(text) > longest:
        text = f"{text[: longest // 2]}…{text[-longest // 4 :]}"
    return visible(text).replace("\n", "\\n")


def visible(text: str) -> str:
    """A text of several lines in which nothing is hidden, and nothing steers a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c == "\n" or not _is_hidden(c) else _escaped(c) for c in text)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
