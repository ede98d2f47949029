"""What commands print: texts for people, JSON for programs.

A model may name its values as it likes. No text for people steers the terminal, whatever it holds;
names in it are on one line. JSON has names as they are, in escapes of its own.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from tilewright.shown import shown, visible

__all__ = ["complain", "line", "say", "say_json"]

LONGEST: Final = 400
"""Characters of a line about one value: its name, its type and its dimensions."""


def say(text: str) -> None:
    """Print a text of several lines."""
    print(visible(text))


def say_json(facts: object) -> None:
    """Print data for programs."""
    print(json.dumps(facts, indent=2))


def complain(text: str) -> None:
    """Print a text where errors go."""
    print(visible(text), file=sys.stderr)


def line(text: object) -> str:
    """What is said of one value, on one line and not too long."""
    return shown(text, LONGEST)
