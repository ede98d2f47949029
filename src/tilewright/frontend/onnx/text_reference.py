"""Operators of texts for the ONNX reference implementation, in the place of its own.

Its `StringNormalizer` strips accents, looks for stop words inside of elements, drops empty ones and
changes the locale of the process; its `RegexFullMatch` takes patterns of Python instead of RE2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from onnx.reference.op_run import OpRun

from tilewright.frontend.onnx.regular import in_python

__all__ = ["RegexFullMatch", "StringNormalizer", "as_texts"]


def as_texts(value: Any) -> Any:
    """Texts in an array of objects: those of lists, of arrays of fixed lengths, and of bytes."""
    array = np.asarray(value)
    if array.dtype.kind not in "OUST":
        return value
    array = array.astype(object)
    for place, text in np.ndenumerate(array):
        if isinstance(text, bytes):
            array[place] = text.decode()
    return array


def _each(letters: Callable[[str], str]) -> Callable[[str], str]:
    """Another case, letter by letter: those with none of one letter stay (`ß`)."""

    def changed(text: str) -> str:
        made = ((letter, letters(letter)) for letter in text)
        return "".join(new if len(new) == 1 else old for old, new in made)

    return changed


_CASES: Final[dict[str, Callable[[str], str]]] = {
    "LOWER": _each(str.lower),
    "UPPER": _each(str.upper),
    "NONE": str,
}


class StringNormalizer(OpRun):  # type: ignore[misc]
    """Elements without stop words, in lower or upper case."""

    def _run(
        self,
        x: Any,
        case_change_action: str = "NONE",
        is_case_sensitive: int = 0,
        locale: str | None = None,  # noqa: ARG002  (letters have their cases everywhere)
        stopwords: Sequence[str] | None = None,
    ) -> tuple[Any]:
        if case_change_action not in _CASES:
            raise ValueError(f"`case_change_action` is `{case_change_action}`")
        if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
            raise ValueError(f"texts of shape {list(x.shape)}, where [C] or [1, C] is expected")
        alike = str if is_case_sensitive else _CASES["LOWER"]
        stops = {alike(word) for word in stopwords or ()}
        kept = [text for text in x.ravel().tolist() if alike(text) not in stops]
        texts = [_CASES[case_change_action](text) for text in kept] or [""]
        return (np.array(texts, dtype=object).reshape((-1,) if x.ndim == 1 else (1, -1)),)


class RegexFullMatch(OpRun):  # type: ignore[misc]
    """Whether each text matches a pattern, as a whole."""

    def _run(self, x: Any, pattern: str = "") -> tuple[Any]:
        matches = in_python(pattern).fullmatch
        found = [matches(text) is not None for text in as_texts(x).ravel().tolist()]
        return (np.array(found, dtype=np.bool_).reshape(x.shape),)
