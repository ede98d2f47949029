"""Convolutions over channels-last data, as stages of a program: tensors in, a tensor out.

Data are (batch, space…, channels), weights (filters, channels of a group, window…) as models store
them, results (batch, space…, filters). A border is an explicit block, so that the sums test
nothing. What follows a convolution is written behind it in the same program:

    y = convolve(x, w, pads=(1, 1, 1, 1))
    z = compute("Z", y.shape, lambda n, h, w, o: tir.maximum(y[n, h, w, o] + b[o], 0.0))
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import Axis, Reduction, Shape, Tensor, compute, reduce_axis, sum_over
from tilewright.tensor.library.dims import (
    accumulator,
    last,
    line_multiple,
    padded,
    rounded_up,
    turned,
    with_names,
)

__all__ = ["SPACE", "WINDOW", "ZERO", "Geometry", "convolve", "known_size"]

ZERO = tir.Const(0)
SPACE = {1: ("x",), 2: ("h", "w"), 3: ("d", "h", "w")}
WINDOW = {1: ("rx",), 2: ("rh", "rw"), 3: ("rd", "rh", "rw")}


class Geometry:
    """How windows lie over space: their size, their steps, their gaps and the border."""

    __slots__ = ("after", "before", "dilations", "kernel", "strides")

    def __init__(
        self,
        kernel: Sequence[int],
        strides: Sequence[int] = (),
        dilations: Sequence[int] = (),
        pads: Sequence[int] = (),
    ) -> None:
        """`pads` are all beginnings, then all ends; what is left out is 1, or 0 for `pads`."""
        rank = len(kernel)
        self.kernel = tuple(kernel)
        self.strides = tuple(strides) or (1,) * rank
        self.dilations = tuple(dilations) or (1,) * rank
        border = tuple(pads) or (0,) * (2 * rank)
        self.before, self.after = border[:rank], border[rank:]
        lengths = (len(self.strides), len(self.dilations), len(self.before), len(self.after))
        if rank not in SPACE or lengths != (rank,) * 4:
            raise ValueError(f"a window of {rank} dimensions does not fit {lengths} numbers")
        if min((*self.kernel, *self.strides, *self.dilations), default=1) < 1 or min(border) < 0:
            raise ValueError("windows, strides and dilations are 1 or more, borders 0 or more")

    @property
    def rank(self) -> int:
        return len(self.kernel)

    @property
    def reach(self) -> tuple[int, ...]:
        """How many elements a window spans, gaps included."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def windows(self, space: Sequence[tir.Expr]) -> tuple[tir.Expr, ...]:
        """How many windows fit into space with its border, along each dimension."""
        parts = zip(space, self.before, self.after, self.reach, self.strides, strict=True)
        tidy = Analyzer().simplify
        return tuple(tidy((size + b + a - r) // s + 1) for size, b, a, r, s in parts)

    def at(self, where: Sequence[tir.Expr], inside: Sequence[tir.Expr]) -> tuple[tir.Expr, ...]:
        """Where, in space with its border, an element of a window lies."""
        parts = zip(where, self.strides, inside, self.dilations, strict=True)
        return tuple(w * s + r * d for w, s, r, d in parts)

    def axes(self) -> tuple[list[tir.Expr], list[Axis]]:
        """An index for each dimension of a window, and those of them that are more than a zero."""
        found = [reduce_axis(k, r) for k, r in zip(self.kernel, WINDOW[self.rank], strict=True)]
        long = [axis for axis, k in zip(found, self.kernel, strict=True) if k > 1]
        return [axis if axis in long else ZERO for axis in found], long

    def bordered(
        self, x: Tensor, name: str, fill: float = 0, wide: Sequence[tir.Expr] = ()
    ) -> Tensor:
        """Channels-last `x` with its border filled; itself if there is none.

        For so many windows there is more of it behind the data than the result needs.
        """
        names = ("n", *SPACE[self.rank], "c")
        after = list(self.after)
        for d, (size, count) in enumerate(zip(x.shape[1:-1], wide, strict=False)):
            known, windows = tir.int_value(size), tir.int_value(count)
            if known is not None and windows is not None:
                end = (windows - 1) * self.strides[d] + self.reach[d]
                after[d] = max(after[d], end - known - self.before[d])
        return padded(name, x, (0, *self.before, 0), (0, *after, 0), names, fill)


def convolve(
    x: Tensor,
    weights: Tensor,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
    groups: int = 1,
    name: str = "Y",
    *,
    lines: int | None = None,
) -> Tensor:
    """Y[n, s…, o] = Σ X[n, s·stride + r·dilation - pad, c]·W[o, c, r…], in 1 to 3 dimensions.

    With `groups`, filters see the channels of their group only; groups of one channel (depthwise)
    have no sum over channels. Narrow types are summed up in 32 bits, which is the result's type.
    With `lines`, it is computed line by line, channels first, and turned at the end; lines are as
    long as a multiple of that number. If nothing is said, few filters have lines of any length.
    """
    geometry = Geometry([known_size(k) for k in weights.shape[2:]], strides, dilations, pads)
    rank = geometry.rank
    filters, per_group = known_size(weights.shape[0]), known_size(weights.shape[1])
    channels = tir.int_value(x.shape[-1])
    if len(x.shape) != rank + 2 or channels not in (None, groups * per_group) or filters % groups:
        given = f"{channels} channels, {filters} filters of {per_group}"
        raise ValueError(f"{groups} groups do not fit {given}")
    acc = accumulator(x.dtype)
    c = reduce_axis(per_group, "c")
    window, axes = geometry.axes()
    axes += [c] if per_group > 1 or (groups == 1 and not axes) else []

    space = geometry.windows(x.shape[1:-1])
    reused = prod(geometry.kernel) > 1  # else turning the data costs more than it saves
    multiple = line_multiple(lines, filters, space[-1])
    narrow = multiple > 0 and reused and groups == 1 and per_group > 1
    wide = [*space[:-1], rounded_up(space[-1], multiple)] if narrow else space
    source = geometry.bordered(x, f"{name}_border", wide=wide)
    if narrow:
        source = turned(f"{name}_turned", source, ("n", *SPACE[rank], "c"))

    def value(n: tir.Expr, *where: tir.Expr) -> Reduction:
        o, *places = where if narrow else (where[-1], *where[:-1])
        channel = _channel(
            o, c if c in axes else tir.Const(0), filters // groups, per_group, groups
        )
        at = geometry.at(places, window)
        left = source[(n, channel, *at) if narrow else (n, *at, channel)]
        return sum_over(left.to(acc) * weights[(o, c if c in axes else 0, *window)].to(acc), *axes)

    if not narrow:
        shape: Shape = (x.shape[0], *space, filters)
        return compute(name, shape, with_names(("n", *SPACE[rank], "o"), value))
    made = compute(
        f"{name}_lines", (x.shape[0], filters, *wide), with_names(("n", "o", *SPACE[rank]), value)
    )
    return last(name, made, space, ("n", *SPACE[rank], "o"))


def _channel(
    o: tir.Expr, c: tir.Expr, filters_per_group: int, per_group: int, groups: int
) -> tir.Expr:
    """The channel that filter `o` sees at place `c` of its group."""
    if groups == 1:
        return c
    group = o if filters_per_group == 1 else o // filters_per_group
    return group if per_group == 1 else group * per_group + c


def known_size(size: tir.Expr) -> int:
    """A dimension of weights as a number."""
    value = tir.int_value(size)
    if value is None:
        raise ValueError(f"the shape of weights must be known, found `{size}`")
    return value
