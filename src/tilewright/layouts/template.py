"""All layouts of a site by number: the template of ALT for what it reads and what it writes.

    algorithm × (order and block of channels, a tile along each dimension, overlap) of the data
              × (order and block of channels, a tile along each dimension, halo) of the result

Blocks are divisors of the channels, tiles of any size. Where a site reads and writes alike, or one
side has a form of its own, there is one such part only. What a number stands for is found without
any program. Its predicted cost is that of the next of kin among the forms that the untuned choice
is made of, and of what tiles move beside that: elements that they hold twice, and a copy where
windows are read across them. That is a first opinion at most: tuners measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ops.window import Conv
from tilewright.graph.sizes import bytes_of
from tilewright.layouts.algorithms import Algorithm
from tilewright.layouts.costs import Machine, bordered_cycles, streamed_cycles
from tilewright.layouts.forms import LAST, Form, blocked
from tilewright.layouts.sides import Side
from tilewright.layouts.site import Alternative, Site, cuts_blocks, is_small

__all__ = ["LayoutSpace"]

Digits = NDArray[np.int64]


@dataclass(frozen=True)
class LayoutSpace:
    """The alternatives of a site, by number; the last digit is the fastest.

    `source` and `result` are None where a site leaves no choice; where it reads and writes alike
    (`alike`), both are `source`.
    """

    site: Site
    machine: Machine
    algorithms: tuple[Algorithm, ...]
    source: Side | None
    result: Side | None
    alike: bool

    @classmethod
    def of(cls, site: Site, machine: Machine) -> LayoutSpace:
        """The space of a site on a machine."""
        lanes = machine.target.lanes(4)
        plain = [a for a in site.alternatives if not a.result.halo]
        sources, results = ({f.plain for f in side} for side in _sides(plain))
        algorithms = tuple(dict.fromkeys(a.algorithm for a in plain))
        alike = len(sources) > 1 and all(a.source.plain == a.result.plain for a in plain)
        if alike:
            inner = [v for n in site.nodes for v in n.outputs if not is_small(v)]
            every = tuple(dict.fromkeys((*site.data, *site.beside, *site.results, *inner)))
            return cls(site, machine, algorithms, Side.of(every, lanes), None, alike)
        source = result = None
        if len(sources) > 1:
            source = Side.of(site.data, lanes, _overlap(site))
        if len(results) > 1:
            result = Side.of((*site.results, *site.beside), lanes)
        return cls(site, machine, algorithms, source, result, alike)

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
        source, result = source or kin.source, result or kin.result
        copies = self._copies_windows(algorithm, source)
        return replace(
            kin,
            # A copy has the border by itself.
            source=replace(source, halo=() if copies else kin.source.halo),
            result=replace(result, halo=kin.result.halo),
            cycles=kin.cycles + self._moved(source, result, copies=copies),
        )

    def _copies_windows(self, algorithm: Algorithm, source: Form) -> bool:
        """Whether windows are read across tiles, and so from a copy of the image."""
        if not source.tiles or (self.site.conv is None and self.site.window is None):
            return False
        is_product = algorithm.tiles is None and not algorithm.lines
        return not is_product or not _holds_windows(self.site, source)

    def _moved(self, source: Form, result: Form, *, copies: bool) -> float:
        """Cycles for what tiles hold beyond the elements, and for stages that only move data.

        A result in tiles that space is no multiple of is written by a stage of its own.
        """
        found = 0.0
        written = self.source if self.alike else self.result
        for side, form, is_read in ((self.source, source, True), (written, result, False)):
            if side is not None and form.tiles:
                size, waste = bytes_of(side.values[0]), side.waste(form)
                found += streamed_cycles((waste - 1) * size, self.machine)
                if copies if is_read else not side.is_whole(form):
                    found += self.machine.model.copies.on_the_way * bordered_cycles(
                        waste * size, self.machine
                    )
        return found

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
    return tuple(max(0, reach - stride) for reach, stride in _windows(site))


def _holds_windows(site: Site, source: Form) -> bool:
    """Whether every window lies in the tile that it begins in: tiles begin where windows do."""
    windows, more = _windows(site), source.overlap or (0,) * len(source.tiles)
    return bool(windows) and all(
        not tile or reach == 1 or (tile % stride == 0 and further >= reach - stride)
        for (reach, stride), tile, further in zip(windows, source.tiles, more, strict=True)
    )


def _windows(site: Site) -> list[tuple[int, int]]:
    """How many elements a window of a convolution spans, and its step, along each dimension."""
    op = next((node.op for node in site.nodes if isinstance(node.op, Conv)), None)
    if op is None or site.conv is None:
        return []
    each = zip(site.conv.taps, op.strides, op.dilations, strict=True)
    return [((taps - 1) * dilation + 1, stride) for taps, stride, dilation in each]
