"""Several kernels as one space: which algorithm and layouts, and every decision about its loops.

The first digit is the variant, the others are digits of its own space. Variants have different
axes: behind the last of its own, a row has zeros. A model that orders points of all variants looks
at the columns that they share, and at those of each recipe where a variant has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tilewright.tuning.features.points import SHARED
from tilewright.tuning.features.scaling import Features
from tilewright.tuning.search.strategy import Digits
from tilewright.tuning.space import KernelSpace

__all__ = ["JointSpace", "TaskSpace"]


class TaskSpace(Protocol):
    """What a search needs to know of a task's space; `SearchSpace` and what rows mean."""

    @property
    def lengths(self) -> tuple[int, ...]: ...

    @property
    def size(self) -> int: ...

    def followed(self, digits: Digits) -> NDArray[np.bool_]: ...

    def sample(self, rng: np.random.Generator, count: int) -> Digits: ...

    def cycles(self, digits: Digits) -> NDArray[np.float64]:
        """What the machine model predicts."""

    def features(self, digits: Digits) -> Features:
        """What a cost model looks at."""

    def drafts(self) -> Digits:
        """The drafted points, one for each variant whose space has it, in their order."""

    def part(self, row: Digits) -> tuple[int, Digits]:
        """The number of the variant of a row, and its row in that variant's space."""

    def row_of(self, variant: int, own: Digits) -> Digits:
        """The inverse of `part`."""


class JointSpace:
    """The spaces of several variants, side by side.

    `around` are cycles that each variant costs others: conversions, for example. `drafted` are
    those of each draft by a model that knows the whole kernel, where recipes know parts of it.
    """

    def __init__(
        self,
        spaces: Sequence[KernelSpace],
        around: Sequence[float] = (),
        drafted: Sequence[float] = (),
    ) -> None:
        self.spaces = tuple(spaces)
        self.around = np.array(around if len(around) else [0.0] * len(spaces))
        own = np.array([space.drafted_cycles for space in spaces])
        self.scales = np.array(drafted) / own if all(drafted) and drafted else np.ones(len(own))

    def with_drafts(self, cycles: Sequence[float]) -> JointSpace:
        """The same points, where drafts take so long: as measured, or as others have taught."""
        return JointSpace(self.spaces, tuple(self.around), cycles)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        longest = max(len(space.lengths) for space in self.spaces)
        own = [space.lengths + (1,) * (longest - len(space.lengths)) for space in self.spaces]
        return len(self.spaces), *map(max, zip(*own, strict=True))

    @cached_property
    def size(self) -> int:
        """Combinations that belong to a variant: those of all of them together."""
        return sum(space.size for space in self.spaces)

    @property
    def combinations(self) -> int:
        """All combinations of digits."""
        return prod(self.lengths)

    def followed(self, digits: Digits) -> NDArray[np.bool_]:
        keep = np.zeros(len(digits), np.bool_)
        for _, space, rows in self._by_variant(digits):
            inside = digits[rows, 1:]
            own, rest = inside[:, : len(space.lengths)], inside[:, len(space.lengths) :]
            fits = (own < np.array(space.lengths)).all(axis=1) & (rest == 0).all(axis=1)
            found = np.zeros(len(rows), np.bool_)
            found[fits] = space.followed(own[fits])
            keep[rows] = found
        return keep

    def sample(self, rng: np.random.Generator, count: int) -> Digits:
        """Variants are drawn alike: one with few loops is as likely as one with many."""
        drawn = np.bincount(rng.integers(len(self.spaces), size=count), minlength=len(self.spaces))
        parts = [
            self._rows_of(k, space.sample(rng, int(n)))
            for k, (space, n) in enumerate(zip(self.spaces, drawn, strict=True))
            if n
        ]
        return rng.permutation(np.concatenate([self._none(), *parts]))

    def cycles(self, digits: Digits) -> NDArray[np.float64]:
        total = np.zeros(len(digits))
        for _, space, rows in self._by_variant(digits):
            total[rows] = space.cycles(self._own(digits[rows], space))
        total *= self.scales[digits[:, 0]]
        return np.asarray(np.maximum(1.0, total + self.around[digits[:, 0]]))

    def features(self, digits: Digits) -> Features:
        """Columns of all variants; what one does not have is missing in its rows."""
        names = self._names
        table = np.full((len(digits), len(names)), np.nan)
        own = self.spaces[0].drafted_cycles * self.scales[0]
        first = max(1.0, own + self.around[0])
        for k, space, rows in self._by_variant(digits):
            found = space.features(self._own(digits[rows], space))
            places = np.array([names[name] for name in found.names])
            table[np.ix_(rows, places)] = found.rows
            # Each space compares with its own draft; together they compare with the first.
            by_draft = found.rows[:, found.names.index(SHARED[0])]
            cycles = np.exp2(by_draft) * space.drafted_cycles * self.scales[k] + self.around[k]
            table[rows, names[SHARED[0]]] = np.log2(np.maximum(1.0, cycles) / first)
            table[rows, names["variant"]] = k
        return Features(tuple(names), table)

    def drafts(self) -> Digits:
        rows = [self._rows_of(k, space.drafts()) for k, space in enumerate(self.spaces)]
        return np.concatenate([self._none(), *rows])

    def part(self, row: Digits) -> tuple[int, Digits]:
        variant = int(row[0])
        return variant, row[1 : 1 + len(self.spaces[variant].lengths)]

    def row_of(self, variant: int, own: Digits) -> Digits:
        (row,) = self._rows_of(variant, own[None])
        return np.asarray(row)

    @cached_property
    def _names(self) -> dict[str, int]:
        names = ["variant"]
        for space in self.spaces:
            drafted = space.drafts()
            row = drafted if len(drafted) else space.sample(np.random.default_rng(0), 1)
            names += space.features(row[:1]).names
        return {name: k for k, name in enumerate(dict.fromkeys(names))}

    def _by_variant(self, digits: Digits) -> Iterator[tuple[int, KernelSpace, NDArray[np.intp]]]:
        for k, space in enumerate(self.spaces):
            rows = np.flatnonzero(digits[:, 0] == k)
            if len(rows):
                yield k, space, rows

    def _own(self, digits: Digits, space: KernelSpace) -> Digits:
        return digits[:, 1 : 1 + len(space.lengths)]

    def _none(self) -> Digits:
        return np.zeros((0, len(self.lengths)), np.int64)

    def _rows_of(self, variant: int, own: Digits) -> Digits:
        rows = np.zeros((len(own), len(self.lengths)), np.int64)
        rows[:, 0] = variant
        rows[:, 1 : 1 + own.shape[1]] = own
        return rows
