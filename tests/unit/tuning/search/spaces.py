"""Spaces without programs: some combinations cannot be followed, and the best point is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from tilewright.tuning.search import Digits, key_of
from tilewright.tuning.search.numbering import codes_of, digits_of, distinct


@dataclass
class Grid:
    """Rows are followed whose digits add up to a multiple of `every` below `most`."""

    lengths: tuple[int, ...]
    every: int = 1
    most: int = 1 << 60
    asked: list[int] = field(default_factory=list)

    @property
    def size(self) -> int:
        return prod(self.lengths)

    def followed(self, digits: Digits) -> np.ndarray:
        self.asked.append(len(digits))
        total = digits.sum(axis=1)
        return (total % self.every == 0) & (total < self.most)

    def sample(self, rng: np.random.Generator, count: int) -> Digits:
        rows = rng.integers(self.lengths, size=(16 * count + 64, len(self.lengths)))
        rows = rows[self.followed(rows)]
        return rows[distinct(codes_of(rows, self.lengths))][:count]

    def everything(self) -> Digits:
        rows = digits_of(np.arange(self.size), self.lengths)
        return rows[self.followed(rows)]


class Valley:
    """Costs with one best point, digits that matter together, and a model that errs."""

    def __init__(self, space: Grid, seed: int, noise: float = 0.5) -> None:
        rng = np.random.default_rng([seed, 1])  # no search draws the same
        found = space.sample(rng, 8)
        self.best = found[0] if len(found) else space.everything()[0]
        self.lengths = np.array(space.lengths)
        self.steep = rng.uniform(0.5, 2.0, len(space.lengths))
        self.pairs = rng.permutation(len(space.lengths))
        self.noise, self.wave = noise, rng.uniform(1, 100, len(space.lengths))

    def costs(self, rows: Digits) -> np.ndarray:
        away = (rows - self.best) / self.lengths
        return np.exp(
            (np.abs(away) * self.steep).sum(axis=1) + (away + away[:, self.pairs]) ** 2 @ self.steep
        )

    def score(self, rows: Digits) -> np.ndarray:
        """Minus the logarithm of costs, and an error that depends on the point alone."""
        return -np.log(self.costs(rows)) + self.noise * np.sin(rows @ self.wave)


def tuned(strategy, valley: Valley, trials: int, batch: int = 16) -> tuple[Digits, np.ndarray]:
    """What so many trials have come by, in the order of measuring."""
    seen: set[bytes] = set()
    rows, costs = [], []
    while len(seen) < trials:
        digits = strategy.propose(min(batch, trials - len(seen)), valley.score, seen)
        if not len(digits):
            break
        rows.append(digits)
        costs.append(valley.costs(digits))
        strategy.learn(digits, costs[-1])
        seen |= {key_of(row) for row in digits}
    return np.concatenate(rows), np.concatenate(costs)


def keys_of(rows: Digits) -> set[bytes]:
    return {key_of(row) for row in rows}
