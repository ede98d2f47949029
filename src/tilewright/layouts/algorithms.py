"""The ways to compute a convolution: directly, or by minimal filters with tiles of some size.

Which one is fastest depends on the image, the channels and the caches: F(6, 3) multiplies least but
has the most weights to stream, F(2, 3) has few, and a direct convolution has none but its own. Only
the direct one is exact up to the order of its sums: `accuracy="strict"` keeps to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, gcd, prod
from typing import Final

from tilewright.dtypes import f32
from tilewright.graph.ir import Array, Value
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.sizes import fixed, sized
from tilewright.layouts.costs import (
    ConvShape,
    Machine,
    direct_cycles,
    direct_product,
    kept_cycles,
    lines_cycles,
    lines_product,
    winograd_cycles,
    winograd_product,
)
from tilewright.schedule.recipes.contraction.space import ContractionShape
from tilewright.tensor.library.tiles import Line, SpreadTiles, Tiles

__all__ = ["DIRECT", "Algorithm", "algorithms_of", "lines_of", "shape_of", "shape_with"]

# What follows is policy on accuracy, not on cost; bounds and measured errors: docs/accuracy.md.

_LARGEST_TILE: Final = 8
"""Elements of a tile along a dimension: with nine or more, even the best points lose more than a
decimal digit beside F(6, 3), whose errors are the largest that the default accuracy allows."""

_RESULTS: Final = (2, 3, 4, 5, 6)
"""Of a tile along a dimension; more of them exceed the largest tile with any window."""

_MARGIN: Final = {0: 1.0, 3: 1.05, 4: 1.05, 5: 1.05, 6: 1.05, 7: 1.15, 8: 1.15}
"""How much faster an algorithm must be than one that rounds less, by elements of a tile: up to six
round about as a direct convolution does, seven and eight lose a digit (bounds of 1e-5 to 6e-5 of
the largest result)."""


@dataclass(frozen=True)
class Algorithm:
    """A way to compute a convolution; without tiles it is the direct one.

    With tiles, it begins with so many `places` of a result: smaller ones are computed by `below`.
    Along `lines`, places are in vectors instead of filters, and a line is rounded up to a multiple.
    """

    tiles: Tiles | None = None
    lines: int = field(default=0, kw_only=True)
    places: int = field(default=0, kw_only=True)
    below: Tiles | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        """`direct`, `F(4, 3)`; `3×F(4, 3)` with tiles along the second of two dimensions only.

        `lines`, or `lines of 8` that end with a whole vector.

        `F(4, 3) ≥ 64, direct` if sizes decide.
        """
        if self.tiles is None:
            return {0: "direct", 1: "lines"}.get(self.lines, f"lines of {self.lines}")
        if self.places:
            return f"{Algorithm(self.tiles).name} ≥ {self.places}, {self.for_less.name}"
        filters = [f"F({f.results}, {f.taps})" for f in self.tiles.filters]
        if len(filters) == 2:
            return "×".join(sorted(set(filters)))
        (along,), windows = self.tiles.tiled, enumerate(self.tiles.taps)
        return "×".join(filters[0] if d == along else str(t) for d, t in windows if t > 1)

    @property
    def for_less(self) -> Algorithm:
        """What computes results of fewer places."""
        return Algorithm(self.below)

    def price(self, cycles: float, conv: ConvShape, machine: Machine) -> float:
        """What it is compared with others by: time, rounding, and the memory of its weights."""
        held = replace(self, lines=0).product(conv, machine)  # which has weights at the right
        return cycles * self.margin + kept_cycles(held, machine)

    @property
    def margin(self) -> float:
        """What its cycles are multiplied by when it is compared with others: it rounds more."""
        size = 0 if self.tiles is None else max(f.tile for f in self.tiles.filters)
        return _MARGIN.get(size, _MARGIN[_LARGEST_TILE])

    @property
    def weight(self) -> int:
        """By how much its weights are more than one for each filter and channel."""
        if self.tiles is None:
            return 0
        return self.tiles.elements * prod(self.tiles.taps[d] for d in self.tiles.plain)

    def halo(
        self, op: Conv, space: Sequence[int], source: Sequence[int]
    ) -> tuple[tuple[int, int], ...]:
        """The zeros around its data that spare it a copy with a border.

        The last tile may reach beyond the border. `space` is that of the result, `source` that of
        the data.
        """
        rank = len(space)
        found = [(op.pads[d], op.pads[rank + d]) for d in range(rank)]
        if self.lines:
            wide = -(-space[-1] // self.lines) * self.lines
            more = (wide - space[-1]) * op.strides[-1]
            found[-1] = op.pads[rank - 1], op.pads[-1] + more
        if self.tiles is None:
            return tuple(found)
        counts = self.tiles.counts(space)
        for d, line in self.tiles.lines.items():
            if line.images > 1:
                return ()  # which have a copy each
            before = op.pads[d]
            found[d] = before, max(0, line.reach(counts[d]) - source[d] - before)
        return tuple(found)

    def product(self, conv: ConvShape, machine: Machine) -> ContractionShape:
        """The product in it, which has loops of its own to choose."""
        if self.lines:
            return lines_product(conv, self.lines, machine)
        if self.tiles is None:
            return direct_product(conv, machine)
        return winograd_product(conv, self.tiles, machine)

    def cycles(self, conv: ConvShape, machine: Machine) -> float:
        """Predicted by the model of the machine."""
        if conv.places < self.places:
            return self.for_less.cycles(conv, machine)
        if self.lines:
            return lines_cycles(conv, self.lines, machine)
        if self.tiles is None:
            return direct_cycles(conv, machine)
        return winograd_cycles(conv, self.tiles, machine)


DIRECT: Final = Algorithm()


def algorithms_of(op: Conv | ConvTranspose, weights: Array, *, strict: bool) -> Iterator[Algorithm]:
    """What a convolution with these weights may run as, the direct way first."""
    if isinstance(op, Conv):
        return _conv_algorithms(op, weights, strict=strict)
    return _spread_algorithms(op, weights, strict=strict)


def _conv_algorithms(op: Conv, weights: Array, *, strict: bool) -> Iterator[Algorithm]:
    yield DIRECT
    taps, rank = tuple(weights.shape[2:]), weights.ndim - 2
    if strict or op.dtype != f32 or weights.dtype != f32.numpy:
        return
    tiled = [d for d in range(rank) if _is_tiled(taps[d], op.strides[d], op.dilations[d])][-2:]
    # Along one of two dimensions there are fewer weights to stream, which small images wait for.
    choices = (tiled, tiled[-1:])[: len(tiled)]
    for m, along in itertools.product(_RESULTS, choices):
        results = tuple(m if d in along else 0 for d in range(rank))
        tiles = Tiles(taps, results, op.strides, op.dilations)
        if all(m + line.taps - 1 <= _LARGEST_TILE for line in tiles.lines.values()):
            yield Algorithm(tiles)


def _is_tiled(taps: int, stride: int, dilation: int) -> bool:
    """Whether there are tiles along a dimension that gain anything."""
    common = gcd(stride, dilation) in (stride, dilation)
    return common and Line.of(1, taps, stride, dilation).taps > 1


def _spread_algorithms(op: ConvTranspose, weights: Array, *, strict: bool) -> Iterator[Algorithm]:
    yield DIRECT
    taps, rank = tuple(weights.shape[2:]), weights.ndim - 2
    if strict or op.dtype != f32 or weights.dtype != f32.numpy or rank > 2:
        return
    if set(op.dilations) != {1}:
        return
    for m in _RESULTS:
        tiles = SpreadTiles(taps, (m,) * rank, op.strides, op.dilations, op.pads[:rank])
        lines = tiles.lines.values()
        fits = all(1 < line.taps <= _LARGEST_TILE + 1 - m for line in lines)
        if fits and not tiles.of_one_image.parts:  # long windows of images are not cut
            yield Algorithm(tiles)


def lines_of(op: Conv | ConvTranspose, conv: ConvShape, machine: Machine) -> Iterator[Algorithm]:
    """The ways to have places in vectors: for filters that leave some of a vector empty.

    Windows of one element have no use for a copy of the data, and those whose channels are apart
    have recipes of their own. Those of a transposed one without steps are seldom, and none.
    """
    lanes = machine.target.lanes(conv.element_bytes)
    shared = conv.groups == 1 and conv.channels > 1 and prod(conv.taps) * prod(conv.phases) > 1
    if not shared or not op.dtype.is_float or op.dtype.bits < 32 or conv.filters % lanes == 0:
        return
    if isinstance(op, ConvTranspose) and not conv.phases:
        return
    line = ceil(conv.space[-1] / (conv.phases or (1,))[-1])
    if line >= lanes:
        yield Algorithm(lines=1)
    if line % lanes and line > conv.filters:
        yield Algorithm(lines=lanes)


def shape_of(op: Conv | ConvTranspose, weights: Array, result: Value) -> ConvShape | None:
    """The convolution in numbers; None for space of unknown size."""
    space, batch = sized(result.shape[1:-1]), fixed(result.shape[0])
    return None if space is None else shape_with(op, weights, space, batch or 1)


def shape_with(
    op: Conv | ConvTranspose, weights: Array, space: Sequence[int], batch: int = 1
) -> ConvShape:
    """The same for a result of any size; images of a transposed one see a part of its window."""
    strides: tuple[int, ...] = ()
    phases: tuple[int, ...] = ()
    window = 0
    if isinstance(op, Conv):
        filters, per_group, *taps = weights.shape
        channels, bordered = per_group * op.groups, any(op.pads)
        strides = op.strides
    else:
        channels, per_group, *windows = weights.shape
        filters, bordered = per_group * op.groups, True
        taps = [-(-t // s) for t, s in zip(windows, op.strides, strict=True)]
        phases = op.strides if max(op.strides) > 1 else ()
        window = prod(windows) if phases else 0
    return ConvShape(
        batch,
        tuple(space),
        channels,
        filters,
        tuple(taps),
        op.groups,
        element_bytes=op.dtype.size_bytes,
        bordered=bordered,
        strides=strides,
        phases=phases,
        window=window,
    )
