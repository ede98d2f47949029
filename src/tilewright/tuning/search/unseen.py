"""Points that may be proposed: those that nobody has seen, each once.

Whatever a strategy ranks, `Unseen.first` makes the proposal of it: followed by random points where
the strategy has too few, and shorter than asked only when the space has no more. Small spaces are
walked to their end to be sure of that; in large ones sampling decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from tilewright.tuning.search.numbering import (
    codes_of,
    codes_of_keys,
    digits_of,
    distinct,
    is_among,
)
from tilewright.tuning.search.strategy import Digits, SearchSpace

__all__ = ["Unseen"]

SAMPLINGS: Final = 4
"""How often a space is sampled for points that are missing."""
LARGEST_WALK: Final = 1 << 20
"""Spaces of more combinations are not walked."""
STRIDE: Final = 1 << 14
"""Combinations that a walk looks at together."""


class Unseen:
    """The points of a space that are not `seen`."""

    def __init__(self, space: SearchSpace, seen: AbstractSet[bytes]) -> None:
        self.space = space
        self.seen = codes_of_keys(seen, space.lengths)

    def only(self, rows: Digits) -> Digits:
        """Those of the rows that are not seen, each once, in their order."""
        codes = codes_of(rows, self.space.lengths)
        places = distinct(codes)
        return rows[places[~is_among(codes[places], self.seen)]]

    def first(self, count: int, rng: np.random.Generator, *ranked: Digits) -> Digits:
        """So many of ranked rows, which are followed, and random points behind them."""
        found = self.only(np.concatenate([np.zeros((0, self._width), np.int64), *ranked]))
        for _ in range(SAMPLINGS):
            if len(found) >= count:
                break
            more = self.space.sample(rng, 2 * (count - len(found)) + 16)
            found = self.only(np.concatenate([found, more]))
        if len(found) < count and self.space.size <= LARGEST_WALK:
            for more in self._walk(rng):
                found = self.only(np.concatenate([found, more]))
                if len(found) >= count:
                    break
        return found[:count]

    @property
    def _width(self) -> int:
        return len(self.space.lengths)

    def _walk(self, rng: np.random.Generator) -> Iterator[Digits]:
        """Everything that is followed, from some number on."""
        size = self.space.size
        begin = int(rng.integers(max(1, size)))
        for at in range(0, size, STRIDE):
            numbers = (np.arange(at, min(at + STRIDE, size)) + begin) % size
            rows = digits_of(rng.permutation(numbers), self.space.lengths)
            yield rows[self.space.followed(rows)]
