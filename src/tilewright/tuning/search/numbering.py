"""Points as numbers: whole matrices of digits become sets, without a loop over rows.

A space of up to 2**64 combinations has a number for each. In a larger one the number is a hash
whose weights are random: two points share one with a probability of 2**-64, and then the second is
not proposed, which nobody notices.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.tuning.search.strategy import Digits, SearchSpace

__all__ = ["Codes", "codes_of", "codes_of_keys", "digits_of", "distinct", "is_among", "sound"]

Codes = NDArray[np.uint64]


@lru_cache(maxsize=256)
def _weights(lengths: tuple[int, ...]) -> Codes:
    if prod(lengths) > 1 << 64:
        drawn = np.random.default_rng(len(lengths)).integers(1 << 64, size=len(lengths), dtype="u8")
        return np.asarray(drawn | np.uint64(1))
    behind = [prod(lengths[place + 1 :]) % (1 << 64) for place in range(len(lengths))]
    return np.array(behind, np.uint64)


def codes_of(rows: Digits, lengths: tuple[int, ...]) -> Codes:
    """A number for each row, equal for equal rows only."""
    return np.asarray(rows.astype(np.uint64) @ _weights(lengths))


def codes_of_keys(keys: AbstractSet[bytes], lengths: tuple[int, ...]) -> Codes:
    """Sorted numbers of points by their keys (`key_of`)."""
    digits = np.frombuffer(b"".join(keys), np.int64).reshape(len(keys), len(lengths))
    return np.sort(codes_of(digits, lengths))


def digits_of(numbers: NDArray[Any], lengths: tuple[int, ...]) -> Digits:
    """Rows of numbers; these are objects, integers of Python, where a space has more than 2**63."""
    rows = np.zeros((len(numbers), len(lengths)), np.int64)
    for place in reversed(range(len(lengths))):
        rows[:, place] = numbers % lengths[place]
        numbers = numbers // lengths[place]
    return rows


def distinct(codes: Codes) -> NDArray[np.intp]:
    """Where each code is for the first time, in the order of rows."""
    return np.sort(np.unique(codes, return_index=True)[1])


def is_among(codes: Codes, known: Codes) -> NDArray[np.bool_]:
    """Which codes are among known ones; these are sorted."""
    if not known.size:
        return np.zeros(len(codes), np.bool_)
    places = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.asarray(known[places] == codes)


def sound(space: SearchSpace, rows: Digits | None) -> Digits:
    """Those rows that are points of the space; seeds may come from a relative's space."""
    lengths = np.array(space.lengths, np.int64)
    if rows is None or not len(rows) or np.shape(rows)[1] != len(lengths):
        return np.zeros((0, len(lengths)), np.int64)
    rows = np.asarray(rows, np.int64)
    rows = rows[((rows >= 0) & (rows < lengths)).all(axis=1)]
    rows = rows[space.followed(rows)]
    return rows[distinct(codes_of(rows, space.lengths))]
