"""Explanations as Markdown: the section of one code, and the page of all of them.

`docs/errors.md` is the page, and `tilewright explain V103` prints a section, so both say the same.
The text of an error is that of the error itself: the example is run.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Final

from tilewright.errors import Code
from tilewright.explain.example import Example
from tilewright.explain.run import PRELUDE, error_of

__all__ = ["FAMILIES", "page", "section"]

FAMILIES: dict[str, str] = {
    "A": "the file of a compiled model",
    "C": "calling a kernel or a model",
    "G": "a graph whose shapes and types do not fit",
    "K": "the path and the command line",
    "M": "a model that cannot be read",
    "O": "environment variables",
    "P": "the text of a program",
    "S": "a schedule step that does not apply",
    "T": "targets",
    "U": "tuning",
    "V": "a program that is not well formed, or a schedule that would change its meaning",
    "I": "a bug of tilewright",
}
"""Titles by the letter that codes begin with, in the order of the page."""

WIDTH: Final = 100
"""Columns of running text."""

REPORT = """\
This is a bug of tilewright and no mistake of yours: please report it, with the whole text of the
error, the program and the target."""

_HEAD = f"""\
# Errors

Every error starts with its code. Below come the step that failed, what was expected and found, the
program with the place marked, and a hint. On this page each code has a section: what it means, a
snippet whose last statement raises it, the error as shown, and what to write instead. On the
command line `tilewright explain V103` prints the same.

Made by `python scripts/make_reference.py`, which runs all snippets. They begin with

```python
{PRELUDE}```
"""


def section(code: Code, example: Example | None, width: int = WIDTH) -> str:
    """What one code means, with its example; a code without one is a bug of tilewright."""
    if example is None:
        return f"### {code.id}\n\n`{code.summary}`\n\n{REPORT}\n"
    language = "console" if example.wrong.startswith("$ ") else "python"
    wrong = f"{example.given}\n\n{example.wrong}" if example.given else example.wrong
    parts = [
        f"### {code.id}",
        textwrap.fill(example.meaning, width, break_on_hyphens=False),
        _fenced(language, wrong),
        _fenced("text", str(error_of(example))),
        "Instead:",
        _fenced(language, example.right),
    ]
    return "\n\n".join(parts) + "\n"


def page(codes: Mapping[str, Code], examples: Mapping[str, Example]) -> str:
    """All sections by family, with a table of contents."""
    families = {
        letter: [codes[code] for code in sorted(codes) if code.startswith(letter)]
        for letter in FAMILIES
    }
    contents = [_contents(letter, members) for letter, members in families.items()]
    parts = [_HEAD, "\n".join(contents), ""]
    for letter, members in families.items():
        parts += [f"## {_title(letter)}", "", _table(members, linked=letter != "I"), ""]
        if letter == "I":
            parts += [REPORT, ""]
        else:
            parts += [section(code, examples.get(code.id)) for code in members]
    return "\n".join(parts)


def _title(letter: str) -> str:
    return f"{letter}: {FAMILIES[letter]}"


def _contents(letter: str, members: list[Code]) -> str:
    """An entry of the table of contents; the anchor is the one that GitHub gives to a heading."""
    kept = "".join(c for c in _title(letter).lower() if c.isalnum() or c == " ")
    head = f"- [{_title(letter)}](#{kept.replace(' ', '-')})"
    return f"{head}, {len(members)} codes" if len(members) > 1 else head


def _table(members: list[Code], *, linked: bool) -> str:
    rows = [f"| {_link(code) if linked else code.id} | {code.summary} |" for code in members]
    return "\n".join(["| code | says |", "|---|---|", *rows])


def _link(code: Code) -> str:
    return f"[{code.id}](#{code.id.lower()})"


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
