"""Winograd convolutions, and the transformation of their weights ahead of time."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from tilewright.dtypes import DType, f64
from tilewright.errors import GraphError
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, Role, SizeOf
from tilewright.graph.ops.window import FIT, G030, Conv, ConvTranspose, window_counts
from tilewright.graph.sizes import as_shape, dims_equal, fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute
from tilewright.tensor.library.tile_weights import (
    plain_spread_weights,
    plain_weights,
    transformed,
)
from tilewright.tensor.library.tiles import SpreadTiles, Tiles
from tilewright.tensor.library.winograd import convolve_spread, convolve_winograd

__all__ = ["WinogradConv", "WinogradTransposed", "WinogradWeights"]


@dataclass(frozen=True)
class WinogradWeights(Op):
    """Transformed weights [i…, tile…, …] of a matrix [t, k] and short windows [i…, k, …].

    See `tensor/library/tile_weights.py`: NumPy and a kernel give the same bits. i are `lead`
    dimensions, and t are the elements of a tile.
    """

    role = Role.WEIGHTS

    lead: int
    tile: tuple[int, ...]

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        matrix, windows = inputs
        count = windows.shape[self.lead] if self.lead < windows.rank else tir.Const(0)
        fits = matrix.rank == 2 and fixed(matrix.shape[0]) == prod(self.tile)
        if not fits or not dims_equal(matrix.shape[1], count):
            facts = {"weights": ", ".join(map(str, windows.shape)), "matrix": str(matrix)}
            raise GraphError(G030, facts, hint=FIT)
        before, after = windows.shape[: self.lead], windows.shape[self.lead + 1 :]
        return [TensorType(windows.dtype, as_shape([*before, *self.tile, *after]))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        matrix, windows = arrays
        made = transformed(matrix, windows, self.lead)
        before, after = windows.shape[: self.lead], windows.shape[self.lead + 1 :]
        return [made.reshape(*before, *self.tile, *after)]

    def slices(self, arrays: Sequence[Array], size_of: SizeOf) -> Iterator[Array]:
        matrix, windows = arrays
        first = self.tile[0]
        if self.lead or first == 1:
            yield from super().slices(arrays, size_of)
            return
        held = np.ascontiguousarray(windows)  # once for all slices
        one = WinogradWeights(0, (1, *self.tile[1:]))
        for rows in np.split(matrix, first):
            yield from one.evaluate([rows, held], size_of)

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        matrix, windows = inputs
        before, after = windows.shape[: self.lead], windows.shape[self.lead + 1 :]
        behind = self.lead + len(self.tile)

        def element(*at: tir.Expr) -> tir.Expr:
            row: tir.Expr = tir.Const(0)
            for size, index in zip(self.tile, at[self.lead : behind], strict=True):
                row = row * size + index
            # Written out, so that sums keep their order: that of a fold is left to the schedule.
            products = [
                matrix[row, k] * windows[(*at[: self.lead], tir.Const(k), *at[behind:])].to(f64)
                for k in range(fixed(matrix.shape[1]) or 0)
            ]
            return reduce(operator.add, products).to(windows.buffer.dtype)

        shape: Sequence[int | tir.Expr] = (*before, *self.tile, *after)
        return [compute(names[0], shape, element, windows.buffer.dtype)]


@dataclass(frozen=True)
class WinogradConv(Op):
    """A convolution with `winograd_weights` for its tiles; see `tensor/library/tiles.py`."""

    role = Role.ANCHOR

    taps: tuple[int, ...]
    results: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    groups: int
    dtype: DType

    @property
    def tiles(self) -> Tiles:
        """Which dimensions are tiled, and how."""
        return Tiles(self.taps, self.results, self.strides, self.dilations)

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        x, weights = inputs
        tiles = self.tiles
        rank = len(tiles.tiled) + len(tiles.plain) + len(tiles.parts) + 2
        _require_fit(x, weights, rank, self.groups, self.taps)
        space = window_counts(x.shape[1:-1], self.taps, self.strides, self.dilations, self.pads)
        return [TensorType(self.dtype, as_shape([x.shape[0], *space, weights.shape[-1]]))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        """The weights transformed back, and a plain convolution with them."""
        plain = Conv(self.strides, self.dilations, self.pads, self.groups, self.dtype)
        return plain.evaluate([arrays[0], plain_weights(arrays[1], self.tiles)], size_of)

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        x, weights = inputs
        return [convolve_winograd(x, weights, self.tiles, self.pads, self.groups, names[0])]


@dataclass(frozen=True)
class WinogradTransposed(Op):
    """A transposed convolution without gaps, with `spread_weights` for its tiles."""

    role = Role.ANCHOR

    taps: tuple[int, ...]
    results: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    extra: tuple[int, ...]
    groups: int
    dtype: DType

    @property
    def tiles(self) -> SpreadTiles:
        """How dimensions are tiled: all of them are."""
        rank = len(self.taps)
        return SpreadTiles(self.taps, self.results, self.strides, (1,) * rank, self.pads[:rank])

    @property
    def plain(self) -> ConvTranspose:
        """The same with weights as models have them."""
        ones = (1,) * len(self.taps)
        return ConvTranspose(self.strides, ones, self.pads, self.extra, self.groups, self.dtype)

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        x, weights = inputs
        tiles = self.tiles
        rank = len(tiles.images) + len(tiles.tiled) + 2
        _require_fit(x, weights, rank, self.groups, self.taps)
        space = self.plain.space(x.shape[1:-1], self.taps)
        return [TensorType(self.dtype, as_shape([x.shape[0], *space, weights.shape[-1]]))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        """The weights transformed back, and a plain transposed convolution with them."""
        weights = plain_spread_weights(arrays[1], self.tiles, self.groups)
        return self.plain.evaluate([arrays[0], weights], size_of)

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        x, weights = inputs
        after = [a - e for a, e in zip(self.pads[len(self.taps) :], self.extra, strict=True)]
        return [convolve_spread(x, weights, self.tiles, after, self.groups, names[0])]


def _require_fit(
    x: TensorType, weights: TensorType, rank: int, groups: int, taps: Sequence[int]
) -> None:
    fits = x.rank == len(taps) + 2 and weights.rank == rank
    if not fits or not dims_equal(x.shape[-1], weights.shape[-2] * groups):
        shown = ", ".join(map(str, weights.shape))
        facts = {"weights": shown, "channels": x.shape[-1], "groups": groups}
        raise GraphError(G030, facts, hint=FIT)
