"""An example of an error: what it means, a snippet that raises it, and the same without it.

Snippets are text and not functions, because they are read as often as they are run: a reader sees
exactly the lines that were executed, without a `def` around them.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass

__all__ = ["Example", "example"]


@dataclass(frozen=True, slots=True)
class Example:
    """The last statement of `given` and `wrong` raises `code`; `given` and `right` run.

    A snippet may be a command of the shell, `$ tilewright …`. `alone` asks for a process of its
    own, for snippets that change the process they run in.
    """

    code: str
    meaning: str
    given: str
    wrong: str
    right: str
    alone: bool = False


def example(
    code: str, meaning: str, *, wrong: str, right: str, given: str = "", alone: bool = False
) -> Example:
    """An example from indented texts; `meaning` is one paragraph."""
    paragraph = " ".join(meaning.split())
    given, wrong, right = (inspect.cleandoc(text) for text in (given, wrong, right))
    return Example(code, paragraph, given, wrong, right, alone)
