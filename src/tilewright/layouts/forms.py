"""Forms: the layouts that feature maps (batch, space…, channels) are given.

    nhwc      as operators mean them: channels innermost
    nchw      as models pass them
    nchw8c    channels in blocks of eight, a block innermost
    …/4x7     space in tiles of four lines and seven columns, each in one piece
    …/4x7~2x2 tiles that reach into the next ones, for windows that would
    …+halo    with zeros around space, where the convolution that reads it wants them

A form is a short name for steps of a layout (`tensor/layout.py`): the template of ALT. Dimensions
are stored as (batch, tiles…, blocks of channels, places of a tile…, channels of a block), of which
uncut ones have no first part. The untuned choice is between the first three kinds; the others are
for a tuner (`template.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from tilewright.errors import Code, UserError
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import LayoutStep, Pad, Reorder, Split, Unfold

__all__ = ["FIRST", "LAST", "Form", "blocked"]

K060 = Code("K060", "there is no layout `{text}`")

_SPACE: Final = {1: "w", 2: "hw", 3: "dhw"}
_NAMED: Final = re.compile(
    r"(?P<order>n[dhw…]+c|nc[dhw…]+)((?P<block>\d{1,6})c)?"
    r"(/(?P<tiles>\d{1,6}(x\d{1,6})*))?(~(?P<overlap>\d{1,6}(x\d{1,6})*))?"
)


@dataclass(frozen=True)
class Form:
    """Channels last, first, or first in blocks; `halo` is (before, after) of each dimension.

    `tiles` are the sizes of tiles along each dimension of space, 0 for one that is not cut, and
    `overlap` how many elements of the next tile each of them holds as well. Where space is no
    multiple of a tile, the last one is filled up with zeros.
    """

    first: bool = False
    block: int = 0
    halo: tuple[tuple[int, int], ...] = ()
    tiles: tuple[int, ...] = ()
    overlap: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """One form has one value: what cuts nothing is left out."""
        if self.tiles and not any(self.tiles):
            object.__setattr__(self, "tiles", ())
        if self.overlap and not (self.tiles and any(self.overlap)):
            object.__setattr__(self, "overlap", ())

    def name(self, rank: int) -> str:
        """The name for a value of so many dimensions."""
        space = _SPACE.get(rank - 2, "…")
        order = f"nc{space}" if self.first else f"n{space}c"
        inner = f"{self.block}c" if self.block else ""
        tiles = f"/{'x'.join(map(str, self.tiles))}" if self.tiles else ""
        further = f"~{'x'.join(map(str, self.overlap))}" if self.overlap else ""
        return f"{order}{inner}{tiles}{further}{'+halo' if any(map(any, self.halo)) else ''}"

    def exact_name(self, rank: int) -> str:
        """The name with the sizes of its halo: what a conversion into it is measured under."""
        name = self.name(rank)
        if not name.endswith("+halo"):
            return name
        return name + ",".join(f"{before}.{after}" for before, after in self.halo)

    def __str__(self) -> str:
        return self.name(4)

    @cached_property
    def plain(self) -> Form:
        """The same without a halo."""
        return replace(self, halo=()) if self.halo else self

    @cached_property
    def as_copied(self) -> Form:
        """What a conversion makes of it: borders are for whoever writes a value, or reads it.

        Windows inside of tiles have no other place for theirs.
        """
        return self if self.tiles else self.plain

    @cached_property
    def uncut(self) -> Form:
        """The same without tiles."""
        return replace(self, tiles=(), overlap=()) if self.tiles else self

    def covers(self, wanted: Form) -> bool:
        """Whether there are zeros wherever another form wants some."""
        if not wanted.halo:
            return True
        own = self.halo or ((0, 0),) * len(wanted.halo)
        return all(
            b >= before and a >= after
            for (b, a), (before, after) in zip(own, wanted.halo, strict=True)
        )

    def misfit(self, shape: Sequence[tir.Expr]) -> str | None:
        """Why a value of this shape cannot have the form; None if it can."""
        channels = tir.int_value(shape[-1])
        if self.block and (channels is None or channels % self.block):
            shown = "an unknown number of" if channels is None else str(channels)
            return f"{shown} channels are not whole blocks of {self.block}"
        if self.halo and len(self.halo) != len(shape) - 2:
            return f"a halo for {len(self.halo)} dimensions of space"
        return self._misfit_of_tiles(shape[1:-1]) if self.tiles else None

    def _misfit_of_tiles(self, space: Sequence[tir.Expr]) -> str | None:
        if len(self.tiles) != len(space) or len(self.overlap) not in (0, len(space)):
            return f"tiles for {len(self.tiles)} dimensions of space"
        for size, (tile, more) in zip(space, self._cuts(), strict=True):
            known = tir.int_value(size)
            if tile and (known is None or tile + more > known):
                shown = "an unknown number of" if known is None else str(known)
                return f"{shown} places are fewer than a tile of {tile + more}"
        return None

    def _cuts(self) -> list[tuple[int, int]]:
        """(tile, overlap) of each dimension of space."""
        return list(zip(self.tiles, self.overlap or (0,) * len(self.tiles), strict=True))

    def steps(self, shape: Sequence[tir.Expr] | int) -> tuple[LayoutStep, ...]:
        """The layout, for values of this shape; how many dimensions is enough without tiles."""
        rank = shape if isinstance(shape, int) else len(shape)
        found: list[LayoutStep] = [
            Pad(1 + d, *border) for d, border in enumerate(self.halo) if any(border)
        ]
        space = range(1, rank - 1)
        if self.tiles:
            assert not isinstance(shape, int), "tiles have to know the sizes of space"
            found += self._tiled(shape)
        elif self.block:
            found += [Split(rank - 1, self.block), Reorder((0, rank - 1, *space, rank))]
        elif self.first:
            found.append(Reorder((0, rank - 1, *space)))
        return tuple(found)

    def _tiled(self, shape: Sequence[tir.Expr]) -> list[LayoutStep]:
        """Cuts of channels and space, and their order."""
        halo = self.halo or ((0, 0),) * len(self.tiles)
        found: list[LayoutStep] = [Split(len(shape) - 1, self.block)] if self.block else []
        outer, inner = list[int](), list[int]()
        place = 1
        for d, (tile, more) in enumerate(self._cuts()):
            size = (tir.int_value(shape[1 + d]) or 0) + sum(halo[d])
            if tile:
                whole = size % tile == 0 and not more
                found.append(
                    Split(place, tile) if whole else Unfold(place, tile + more, tile, size)
                )
                outer.append(place)
                place += 1
            inner.append(place)
            place += 1
        blocks, within = ([place], [place + 1]) if self.block else ([], [place])
        if self.first and not self.block:
            blocks, within = within, []
        order = (0, *outer, *blocks, *inner, *within)
        return found if order == tuple(range(len(order))) else [*found, Reorder(order)]

    def memory(self, shape: Sequence[tir.Expr]) -> tuple[object, ...]:
        """Where elements of a value lie; forms that agree in it differ by name alone.

        `nhwc/4x0` is `nhwc` if there are whole tiles. These are loops over memory from the slowest
        to the fastest, as (dimension, step along it, extent), behind the zeros around.
        """
        loops = [(d, 1, tir.int_value(size) or 0) for d, size in enumerate(shape)]
        for step in self.steps(shape):
            match step:
                case Reorder(order=order):
                    loops = [loops[d] for d in order]
                case Split(dim=dim, factor=factor):
                    d, by, extent = loops[dim]
                    loops[dim : dim + 1] = (d, by * factor, extent // factor), (d, by, factor)
                case Unfold(dim=dim, tile=tile, stride=stride):
                    d, by, _ = loops[dim]
                    loops[dim : dim + 1] = (d, by * stride, step.tiles), (d, by, tile)
                case Pad(dim=dim, lead=lead, tail=tail):
                    d, by, extent = loops[dim]
                    loops[dim] = d, by, extent + lead + tail
        merged: list[tuple[int, int, int]] = []
        for d, by, extent in loops:
            if merged and merged[-1][:2] == (d, by * extent):
                *_, outer = merged.pop()
                merged.append((d, by, outer * extent))
            elif extent != 1:
                merged.append((d, by, extent))
        return self.halo if any(map(any, self.halo)) else (), *merged

    @classmethod
    def named(cls, text: str) -> Form:
        """`nhwc`, `nchw` or `nchw8c` for any block, and `…/4x7` for any tiles."""
        found = cls.read(text, 4)
        if found is None or str(found) != text:
            hint = "auto, or one of nhwc, nchw, nchw8c, nchw16c or another size of a block"
            raise UserError(K060, {"text": text}, hint=hint)
        return found

    @classmethod
    def read(cls, text: str, rank: int) -> Form | None:
        """The inverse of `name`; the zeros around a form have no sizes in it, and are left out."""
        space = _SPACE.get(rank - 2, "…")
        found = _NAMED.fullmatch(text.removesuffix("+halo"))
        if found is None or found["order"] not in (f"n{space}c", f"nc{space}"):
            return None
        first, block = found["order"] != f"n{space}c", int(found["block"] or 0)
        tiles, overlap = (_sizes(found[part]) for part in ("tiles", "overlap"))
        if block == 1 or (block and not first):
            return None
        if any(len(sizes) not in (0, rank - 2) for sizes in (tiles, overlap)):
            return None
        form = cls(first, block, (), tiles, overlap)
        return form if form.name(rank) == text.removesuffix("+halo") else None


def _sizes(text: str | None) -> tuple[int, ...]:
    return tuple(map(int, text.split("x"))) if text else ()


LAST: Final = Form()
FIRST: Final = Form(first=True)


def blocked(size: int) -> Form:
    """Channels first, in blocks of this size."""
    return Form(first=True, block=size)
