"""All layouts of a site by number: the template of ALT for what it reads and what it writes.

    algorithm × (order and block of channels, a tile along each dimension, overlap) of the data
              × (order and block of channels, a tile along each dimension, halo) of the result

Blocks are divisors of the channels, tiles of any size. Where a site reads and writes alike, or one
side has a form of its own, there is one such part only. What a number stands for is found without
any program. Its predicted cost is that of the next of kin among the forms that the untuned choice
is made of, which is a first opinion at most: tuners measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Value
from tilewright.graph.ops.window import Conv
from tilewright.graph.sizes import fixed
from tilewright.layouts.algorithms import Algorithm
from tilewright.layouts.forms import FIRST, LAST, Form, blocked
from tilewright.layouts.site import Alternative, Site, cuts_blocks, is_small

__all__ = ["LayoutSpace", "Side"]

Digits = NDArray[np.int64]


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


@dataclass(frozen=True)
class LayoutSpace:
    """The alternatives of a site, by number; the last digit is the fastest.

    `source` and `result` are None where a site leaves no choice; where it reads and writes alike
    (`alike`), both are `source`.
    """

    site: Site
    algorithms: tuple[Algorithm, ...]
    source: Side | None
    result: Side | None
    alike: bool

    @classmethod
    def of(cls, site: Site, lanes: int) -> LayoutSpace:
        """The space of a site on a machine with vectors of so many lanes."""
        plain = [a for a in site.alternatives if not a.result.halo]
        sources, results = ({f.plain for f in side} for side in _sides(plain))
        algorithms = tuple(dict.fromkeys(a.algorithm for a in plain))
        alike = len(sources) > 1 and all(a.source.plain == a.result.plain for a in plain)
        if alike:
            inner = [v for n in site.nodes for v in n.outputs if not is_small(v)]
            every = tuple(dict.fromkeys((*site.data, *site.beside, *site.results, *inner)))
            return cls(site, algorithms, Side.of(every, lanes), None, alike)
        source = result = None
        if len(sources) > 1:
            source = Side.of(site.data, lanes, _overlap(site))
        if len(results) > 1:
            result = Side.of((*site.results, *site.beside), lanes)
        return cls(site, algorithms, source, result, alike)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many values each digit has."""
        sides = (side.lengths for side in (self.source, self.result) if side is not None)
        halos = 1 + any(a.result.halo for a in self.site.alternatives)
        return len(self.algorithms), *(n for side in sides for n in side), halos

    @property
    def size(self) -> int:
        """How many numbers there are, whether they can be followed or not."""
        return prod(self.lengths)

    def alternative(self, number: int) -> Alternative | None:
        """What a number stands for; None if nothing can be stored so."""
        digits: list[int] = []
        for length in reversed(self.lengths):
            number, digit = divmod(number, length)
            digits.append(digit)
        return self.at(digits[::-1])

    def number(self, alternative: Alternative) -> int | None:
        """The inverse, whatever the loops; None for an alternative that is none of the site's."""
        digits = self.digits(alternative)
        if digits is None:
            return None
        found = 0
        for digit, length in zip(digits, self.lengths, strict=True):
            found = found * length + digit
        return found

    def digits(self, alternative: Alternative) -> tuple[int, ...] | None:
        """An alternative as a row of digits."""
        if alternative.algorithm not in self.algorithms:
            return None
        found = [self.algorithms.index(alternative.algorithm)]
        for side, form in ((self.source, alternative.source), (self.result, alternative.result)):
            own = () if side is None else side.digits(form)
            if own is None:
                return None
            found += own
        digits = (*found, int(bool(alternative.result.halo)))
        return digits if digits[-1] < self.lengths[-1] else None

    def at(self, digits: Sequence[int]) -> Alternative | None:
        """The alternative of a row of digits; None if nothing can be stored so."""
        algorithm, rest = self.algorithms[digits[0]], [int(d) for d in digits[1:]]
        forms: list[Form | None] = []
        for side in (self.source, self.result):
            count = 0 if side is None else len(side.lengths)
            form = None if side is None else side.form(rest[:count])
            if side is not None and form is None:
                return None
            forms.append(form)
            rest = rest[count:]
        return self.made(algorithm, *forms, halo=bool(rest[0]))

    def made(
        self, algorithm: Algorithm, source: Form | None, result: Form | None, *, halo: bool
    ) -> Alternative | None:
        """An alternative with these forms, where there is a choice; None if they do not fit."""
        source = source if self.source else None
        result = source if self.alike else (result if self.result else None)
        kin = self._kin(algorithm, source, result, halo=halo)
        if kin is None or not self._fits(source, result):
            return None
        pairs = ((self.source, source), (self.result, result))
        waste = prod(side.waste(form) for side, form in pairs if side and form)
        source, result = source or kin.source, result or kin.result
        # Windows over tiles that do not overlap read a copy, which has the border by itself.
        is_copied = bool(source.tiles) and not source.overlap
        return replace(
            kin,
            source=replace(source, halo=() if is_copied else kin.source.halo),
            result=replace(result, halo=kin.result.halo),
            cycles=kin.cycles * waste,
        )

    def named(self, key: str) -> Alternative | None:
        """The alternative of a key without loops; None if the site has none such."""
        rank = self.site.results[0].rank
        word, _, pair = key.rpartition(" ")
        names = pair.split("→")
        algorithm = next((a for a in self.algorithms if a.name == word), None)
        forms = [Form.read(name, rank) for name in names]
        if algorithm is None or len(forms) != 2 or None in forms:
            return None
        found = self.made(algorithm, *forms, halo=names[1].endswith("+halo"))
        return found if found is not None and found.key(rank) == key else None

    def followed(self, digits: Digits) -> NDArray[np.bool_]:
        """Which rows are alternatives."""
        return np.array([self.at(row) is not None for row in digits], np.bool_)

    def sample(self, rng: np.random.Generator, count: int, most_draws: int = 1 << 14) -> Digits:
        """So many different rows at random, or fewer if most numbers stand for nothing.

        Every other tile is one that space is a multiple of: most sizes leave something over.
        """
        found: dict[tuple[int, ...], None] = {}
        lengths = list(zip(self.lengths, self._even, strict=True))
        for _ in range(min(most_draws, 64 * count + 64)):
            if len(found) == count:
                break
            row = tuple(int(rng.integers(pair[int(rng.integers(2))])) for pair in lengths)
            if row not in found and self.at(row) is not None:
                found[row] = None
        return np.array(list(found), np.int64).reshape(len(found), len(self.lengths))

    @cached_property
    def _even(self) -> tuple[int, ...]:
        sides = (side.even for side in (self.source, self.result) if side is not None)
        return self.lengths[0], *(n for side in sides for n in side), self.lengths[-1]

    def _fits(self, source: Form | None, result: Form | None) -> bool:
        pairs = ((self.source, source), (self.result, result))
        if any(side and form and not side.fits(form) for side, form in pairs):
            return False
        return not (self.alike and source and any(cuts_blocks(n, source) for n in self.site.nodes))

    def _kin(
        self, algorithm: Algorithm, source: Form | None, result: Form | None, *, halo: bool
    ) -> Alternative | None:
        """The alternative among those of the untuned choice that is most like it."""
        for own in _kindred(source):
            for other in _kindred(result):
                found = self._known.get((algorithm, own, other, halo))
                if found is not None:
                    return found
        return None

    @cached_property
    def _known(self) -> dict[tuple[Algorithm, Form | None, Form | None, bool], Alternative]:
        found: dict[tuple[Algorithm, Form | None, Form | None, bool], Alternative] = {}
        for a in self.site.alternatives:
            has_result = self.result is not None or self.alike
            for source in (a.source.plain, _order(a.source)) if self.source else (None,):
                for result in (a.result.plain, _order(a.result)) if has_result else (None,):
                    found.setdefault((a.algorithm, source, result, bool(a.result.halo)), a)
        return found


_BLOCKED = blocked(-1)
"""Stands for blocks of any size."""


def _order(form: Form) -> Form:
    """What counts for a cost: what lies innermost."""
    return _BLOCKED if form.block else form.plain.uncut


def _kindred(form: Form | None) -> Iterator[Form | None]:
    """Forms that one may cost as much as; channels in blocks lie innermost like all of them."""
    if form is None:
        yield None
        return
    yield from dict.fromkeys((form.plain, form.plain.uncut, _order(form)))
    if form.block:
        yield LAST


def _sides(alternatives: Iterable[Alternative]) -> tuple[list[Form], list[Form]]:
    found = [(a.source, a.result) for a in alternatives]
    return [a for a, _ in found], [b for _, b in found]


def _overlap(site: Site) -> tuple[int, ...]:
    """How far windows reach beyond the tile of the data that they begin in."""
    op = next((node.op for node in site.nodes if isinstance(node.op, Conv)), None)
    if op is None or site.conv is None:
        return ()
    windows = zip(site.conv.taps, op.strides, op.dilations, strict=True)
    return tuple(max(0, (taps - 1) * dilation + 1 - stride) for taps, stride, dilation in windows)
