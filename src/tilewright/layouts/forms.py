"""Forms: the layouts that feature maps (batch, space…, channels) are given.

    nhwc      as operators mean them: channels innermost
    nchw      as models pass them
    nchw8c    channels in blocks of eight, a block innermost
    …+halo    with zeros around space, where the convolution that reads it wants them

A form is a short name for steps of a layout (`tensor/layout.py`); any layout can be stored, these
are the ones that are worth a choice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tilewright.errors import Code, UserError
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import LayoutStep, Pad, Reorder, Split

__all__ = ["FIRST", "LAST", "Form", "blocked"]

K060 = Code("K060", "there is no layout `{text}`")

_SPACE: Final = {1: "w", 2: "hw", 3: "dhw"}
_NAMED: Final = re.compile(r"nchw(\d+)c")


@dataclass(frozen=True)
class Form:
    """Channels last, first, or first in blocks; `halo` is (before, after) of each dimension."""

    first: bool = False
    block: int = 0
    halo: tuple[tuple[int, int], ...] = ()

    def name(self, rank: int) -> str:
        """The name for a value of so many dimensions."""
        space = _SPACE.get(rank - 2, "…")
        order = f"nc{space}" if self.first else f"n{space}c"
        inner = f"{self.block}c" if self.block else ""
        return f"{order}{inner}{'+halo' if any(map(any, self.halo)) else ''}"

    def __str__(self) -> str:
        return self.name(4)

    @property
    def plain(self) -> Form:
        """The same without a halo."""
        return replace(self, halo=()) if self.halo else self

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
        return None

    def steps(self, rank: int) -> tuple[LayoutStep, ...]:
        """The layout, for values of so many dimensions."""
        found: list[LayoutStep] = [
            Pad(1 + d, *border) for d, border in enumerate(self.halo) if any(border)
        ]
        space = range(1, rank - 1)
        if self.block:
            found += [Split(rank - 1, self.block), Reorder((0, rank - 1, *space, rank))]
        elif self.first:
            found.append(Reorder((0, rank - 1, *space)))
        return tuple(found)

    @classmethod
    def named(cls, text: str) -> Form:
        """`nhwc`, `nchw` or `nchw8c` for any block."""
        if text == "nhwc":
            return LAST
        if text == "nchw":
            return FIRST
        found = _NAMED.fullmatch(text)
        if found is None or int(found[1]) < 2:
            hint = "auto, or one of nhwc, nchw, nchw8c, nchw16c or another size of a block"
            raise UserError(K060, {"text": text}, hint=hint)
        return blocked(int(found[1]))


LAST: Final = Form()
FIRST: Final = Form(first=True)


def blocked(size: int) -> Form:
    """Channels first, in blocks of this size."""
    return Form(first=True, block=size)
