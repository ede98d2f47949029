"""Answers that are found once: by the identity of the nodes that a question is about.

A step rebuilds the path to what it changes and shares the rest, so most questions of validation
come again about the very same nodes. Nodes never change, and those that were asked about are kept
alive, so an answer holds as long as it is remembered; comparing them by value would cost more than
most answers. What is refused is not remembered: it is asked again, and refused again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

__all__ = ["Memo"]

R = TypeVar("R")

_MOST = 1 << 14  # answers; then all are forgotten


class Memo:
    """Remembers answers."""

    __slots__ = ("_answers",)

    def __init__(self) -> None:
        self._answers: dict[tuple[Hashable, ...], tuple[tuple[object, ...], object]] = {}

    def once(self, question: Hashable, about: tuple[object, ...], answer: Callable[[], R]) -> R:
        """What `answer` returns, called only if the question is new for these very objects."""
        key = (question, *map(id, about))
        known = self._answers.get(key)
        if known is not None:
            return known[1]  # type: ignore[return-value]
        found = answer()
        if len(self._answers) >= _MOST:
            self._answers.clear()
        self._answers[key] = (about, found)
        return found

    def share(self, other: Memo) -> None:
        """Know what another one knows now."""
        self._answers.update(other._answers)
