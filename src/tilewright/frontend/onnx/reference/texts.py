"""Operators of texts for the ONNX reference implementation, in the place of its own.

Its `StringNormalizer` strips accents, looks for stop words inside of elements, drops empty ones and
changes the locale of the process; its `RegexFullMatch` takes patterns of Python instead of RE2; its
`StringSplit` takes no scalar; its `TfIdfVectorizer` needs weights, and has them by columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from onnx.reference.op_run import OpRun

from tilewright.frontend.onnx.ngrams import columns_of, weights_of
from tilewright.frontend.onnx.regular import in_python

__all__ = ["RegexFullMatch", "StringNormalizer", "StringSplit", "TfIdfVectorizer", "as_texts"]


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


class StringSplit(OpRun):  # type: ignore[misc]
    """The parts of each text between delimiters, with empty texts behind the fewer ones."""

    def _run(
        self, x: Any, delimiter: str | None = None, maxsplit: int | None = None
    ) -> tuple[Any, Any]:
        most = -1 if maxsplit is None else maxsplit
        parts = [text.split(delimiter or None, most) for text in as_texts(x).ravel().tolist()]
        counts = np.array([len(found) for found in parts], np.int64)
        width = int(counts.max(initial=0))
        rows = [[*found, *[""] * (width - len(found))] for found in parts]
        texts = np.array(rows, dtype=object).reshape(*np.shape(x), width)
        return texts, counts.reshape(np.shape(x))


class TfIdfVectorizer(OpRun):  # type: ignore[misc]
    """How often the sequences of a list occur in each row, with steps between their elements."""

    def _run(
        self,
        x: Any,
        max_gram_length: int = 1,
        max_skip_count: int = 0,
        min_gram_length: int = 1,
        mode: str = "TF",
        ngram_counts: Sequence[int] = (),
        ngram_indexes: Sequence[int] = (),
        pool_int64s: Sequence[int] | None = None,
        pool_strings: Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
    ) -> tuple[Any]:
        width = max(ngram_indexes) + 1
        lengths = range(min_gram_length, max_gram_length + 1)
        pool: Any = pool_strings or pool_int64s or []
        column_of = columns_of(pool, list(ngram_counts), list(ngram_indexes), lengths)
        rows = np.asarray(x).reshape(1, -1) if np.ndim(x) < 2 else np.asarray(x)
        counts = np.zeros((len(rows), width), np.float32)
        longest = max(map(len, column_of), default=0)
        for row, elements in enumerate(rows.tolist()):
            for n in range(max(lengths.start, 1), min(longest, len(elements)) + 1):
                # Single elements have no steps between them: they count once.
                steps = min(max_skip_count + 1, (len(elements) - 1) // (n - 1)) if n > 1 else 1
                for step in range(1, steps + 1):
                    reach = (n - 1) * step
                    for at in range(len(elements) - reach):
                        column = column_of.get(tuple(elements[at : at + reach + 1 : step]))
                        if column is not None:
                            counts[row, column] += 1
        if mode != "TF":
            once = np.minimum(counts, 1) if mode == "IDF" else counts
            counts = once * np.array(weights_of(ngram_indexes, weights or [], width), np.float32)
        return (counts if np.ndim(x) == 2 else counts.reshape(width),)
