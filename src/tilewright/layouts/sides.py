"""The forms of one side of a site, by digits: order and block of channels, tiles, overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd

from tilewright.graph.ir import Value
from tilewright.graph.sizes import fixed
from tilewright.layouts.forms import FIRST, LAST, Form, blocked

__all__ = ["Side"]


@dataclass(frozen=True)
class Side:
    """The forms of values that are stored alike, by digits."""

    values: tuple[Value, ...]
    orders: tuple[Form, ...]
    tiles: tuple[tuple[int, ...], ...]
    overlap: tuple[int, ...] = ()

    @classmethod
    def of(cls, values: Sequence[Value], lanes: int, overlap: tuple[int, ...] = ()) -> Side:
        """Everything that fits these values."""
        channels = gcd(*(fixed(v.shape[-1]) or 1 for v in values))
        spaces = list(zip(*(v.shape[1:-1] for v in values), strict=True))
        tiles = [_tiles([fixed(size) or 0 for size in along]) for along in spaces]
        orders = LAST, FIRST, *map(blocked, _blocks(channels, lanes))
        return cls(tuple(values), orders, tuple(tiles), overlap if any(overlap) else ())

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many values each digit has."""
        return len(self.orders), *map(len, self.tiles), 2 if self.overlap else 1

    def form(self, digits: Sequence[int]) -> Form | None:
        """The form of some digits, whether it fits or not; None if other digits stand for it."""
        order, *cuts, overlaps = digits
        tiles = tuple(sizes[digit] for sizes, digit in zip(self.tiles, cuts, strict=True))
        more = tuple(n if t else 0 for n, t in zip(self.overlap, tiles, strict=False))
        if overlaps and not any(more):
            return None
        return replace(self.orders[order], tiles=tiles, overlap=more if overlaps else ())

    def digits(self, form: Form) -> tuple[int, ...] | None:
        """The inverse; None for a form that is none of them."""
        tiles = form.tiles or (0,) * len(self.tiles)
        try:
            cuts = [sizes.index(tile) for sizes, tile in zip(self.tiles, tiles, strict=True)]
            found = self.orders.index(form.plain.uncut), *cuts, int(bool(form.overlap))
        except ValueError:
            return None
        return found if self.form(found) == form.plain else None

    @cached_property
    def even(self) -> tuple[int, ...]:
        """How many of the first values of each digit leave nothing over: space is whole tiles."""
        sizes = zip(*([fixed(d) or 0 for d in v.shape[1:-1]] for v in self.values), strict=True)
        whole = (
            sum(t == 0 or all(s % t == 0 for s in along) for t in tiles)
            for along, tiles in zip(sizes, self.tiles, strict=True)
        )
        return len(self.orders), *whole, self.lengths[-1]

    def waste(self, form: Form) -> float:
        """Places that are stored by those that there are."""
        found = 1.0
        overlap = form.overlap or (0,) * len(form.tiles)
        for size, tile, more in zip(self.values[0].shape[1:-1], form.tiles, overlap, strict=False):
            places = fixed(size) or 1
            found *= -(-places // tile) * (tile + more) / places if tile else 1.0
        return found

    def is_whole(self, form: Form) -> bool:
        """Whether tiles hold every place once, and nothing else."""
        return all(
            not tile or (fixed(size) or 0) % tile == 0
            for value in self.values
            for size, tile in zip(value.shape[1:-1], form.tiles, strict=False)
        )

    def fits(self, form: Form) -> bool:
        """Whether all values can be stored so."""
        return all(form.misfit(value.shape) is None for value in self.values)


def _blocks(channels: int, lanes: int) -> list[int]:
    """Divisors: first those of whole or equal parts of vectors, down to four channels."""
    found = [b for b in range(2, channels + 1) if channels % b == 0]
    return sorted(found, key=lambda b: (b < 4 or (b % lanes != 0 and lanes % b != 0), b))


def _tiles(sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes of tiles along a dimension: none, whole parts of it, and all others."""
    size = min(sizes)
    return 0, *sorted(range(1, size), key=lambda t: (any(s % t for s in sizes), t))
