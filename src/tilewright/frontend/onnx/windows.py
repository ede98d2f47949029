"""Where the windows of a convolution or a pooling lie: kernels, strides, borders of every mode.

Borders are numbers of the operator wherever they do not depend on sizes. A border that does
(`SAME` with strides over symbolic sizes) is made by a `Remap` in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.frontend.onnx.node import OnnxNode
from tilewright.graph import Builder, Value
from tilewright.graph.folding import TooLarge
from tilewright.graph.sizes import fixed, tidy
from tilewright.tensor import ir as tir

__all__ = ["Side", "Windows", "channels_first", "channels_last", "place_windows"]
__all__ += ["require_near"]


MAX_STEP: Final = 1 << 40
"""Sizes, strides, gaps and borders of windows, whose sums and products must fit 64 bits."""


def require_near(*numbers: int) -> None:
    """Refuse windows that reach further than any tensor (`TooLarge`)."""
    far = next((n for n in numbers if abs(n) > MAX_STEP), None)
    if far is not None:
        raise TooLarge(f"windows have a size, a step or a border of {far}")


def channels_last(b: Builder, x: Value) -> Value:
    """(batch, channels, space…) → (batch, space…, channels)."""
    return b.transpose(x, [0, *range(2, x.rank), 1])


def channels_first(b: Builder, x: Value) -> Value:
    """(batch, space…, channels) → (batch, channels, space…)."""
    return b.transpose(x, [0, x.rank - 1, *range(1, x.rank - 1)])


@dataclass(frozen=True)
class Side:
    """One dimension of space: `begin` elements of border in front, `size` elements with all border.

    `counted` is the size with the border that the model asks for, without what a last incomplete
    window reaches beyond it.
    """

    begin: tir.Expr
    size: tir.Expr
    counted: tir.Expr


@dataclass(frozen=True)
class Windows:
    """Windows over space, one `Side` for each dimension."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    sides: tuple[Side, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def bordered(self, b: Builder, x: Value, fill: float = 0) -> tuple[Value, tuple[int, ...]]:
        """Channels-last data, and the border that is left to the operator."""
        ends = [tidy(s.size - s.begin - n) for s, n in zip(self.sides, x.shape[1:-1], strict=True)]
        pads = [fixed(s.begin) for s in self.sides] + [fixed(e) for e in ends]
        if all(p is not None and p >= 0 for p in pads) and not self._may_see_nothing(x):
            return x, tuple(p for p in pads if p is not None)

        def places(*out: tir.Expr) -> list[tir.Expr]:
            moved = [o - s.begin for o, s in zip(out[1:-1], self.sides, strict=True)]
            return [out[0], *moved, out[-1]]

        def inside(*out: tir.Expr) -> tir.Expr:
            held: tir.Expr = tir.TRUE
            for o, side, n in zip(out[1:-1], self.sides, x.shape[1:-1], strict=True):
                held = held & (o >= side.begin) & (o < side.begin + n)
            return held

        shape = [x.shape[0], *(s.size for s in self.sides), x.shape[-1]]
        return b.remap(x, shape, places, inside, fill), (0,) * (2 * len(self.sides))

    def _may_see_nothing(self, x: Value) -> bool:
        """Whether a window finds room in the border alone, and there may be no data."""
        sides = zip(self.sides, x.shape[1:-1], self.reach, strict=True)
        return any(
            (fixed(n) or 0) == 0 and (fixed(tidy(s.size - n)) or 0) >= reach
            for s, n, reach in sides
        )


def place_windows(
    node: OnnxNode, space: Sequence[tir.Expr], kernel: Sequence[int], *, ceil: bool = False
) -> Windows:
    """The windows that the attributes of a node say."""
    steps = [*(node.ints("strides") or ()), *(node.ints("dilations") or ())]
    if min([*kernel, *steps], default=1) < 1:
        raise ValueError("windows, strides and dilations are 1 or more")
    rank = len(kernel)
    if len(space) != rank or rank > 3:
        node.decline(f"windows of {rank} dimensions over {len(space)}")
    strides = node.ints("strides") or [1] * rank
    dilations = node.ints("dilations") or [1] * rank
    pads = node.ints("pads") or [0] * (2 * rank)
    if (len(strides), len(dilations), len(pads)) != (rank, rank, 2 * rank):
        raise ValueError(f"strides, dilations or pads are not those of {rank} dimensions")
    require_near(*kernel, *strides, *dilations, *pads)
    mode = node.string("auto_pad", "NOTSET") or "NOTSET"
    sides: list[Side] = []
    for d, size in enumerate(space):
        reach = (kernel[d] - 1) * dilations[d] + 1
        if mode.startswith("SAME"):
            sides.append(_same(size, reach, strides[d], upper=mode == "SAME_UPPER"))
        else:
            explicit = mode == "NOTSET"
            begin, end = (pads[d], pads[rank + d]) if explicit else (0, 0)
            make = _rounded_up if ceil else _plain
            sides.append(make(size, reach, strides[d], begin, end))
    return Windows(tuple(kernel), tuple(strides), tuple(dilations), tuple(sides))


def _plain(size: tir.Expr, reach: int, stride: int, begin: int, end: int) -> Side:
    whole = tidy(size + begin + end)
    return Side(tir.Const(begin), whole, whole)


def _rounded_up(size: tir.Expr, reach: int, stride: int, begin: int, end: int) -> Side:
    """A last window that is not full counts if it starts before the border behind the data."""
    counted = tidy(size + begin + end)
    full = (counted - reach + stride - 1) // stride + 1
    started = (size + (begin + stride - 1)) // stride
    may_start_outside = stride > reach - end
    if fixed(size) is None and not may_start_outside:
        return Side(tir.Const(begin), tidy(counted + (stride - 1)), counted)
    count = tir.minimum(full, started) if may_start_outside else full
    needed = tidy((count - 1) * stride + reach)
    number, least = fixed(needed), fixed(tidy(size + begin))
    if number is not None and least is not None:
        needed = tir.Const(max(number, least))
    return Side(tir.Const(begin), needed, counted)


def _same(size: tir.Expr, reach: int, stride: int, *, upper: bool) -> Side:
    """As many windows as steps of the stride into the data; the border is shared out evenly."""
    count = (size + (stride - 1)) // stride
    needed = tidy((count - 1) * stride + reach)
    total = tidy(tir.maximum(needed - size, 0)) if stride > 1 else tir.Const(reach - 1)
    begin = tidy(total // 2 if upper else (total + 1) // 2)
    number, least = fixed(needed), fixed(size)
    if number is not None and least is not None:
        needed = tir.Const(max(number, least))
    return Side(begin, needed, needed)
