"""Convolutions with fewer multiplications: minimal filters along two dimensions of space.

Neighbouring results share products of sums and differences of the data with sums of the weights
(`minimal_filters`): F(4×4, 3×3) computes 16 results from 36 products per channel instead of 144.
The products of all channels are as many matrix products. With tiles of t elements for m results:

    R[n, d, y, x, p, j, c]    = Σ_i B[p, i] · X[n, d, m·y + i, m·x + j, c]    (columns of a tile)
    V[p, q, n, d, y, x, c]    = Σ_j B[q, j] · R[n, d, y, x, p, j, c]          (and its rows)
    M[p, q, n, d, y, x, o]    = Σ_e Σ_c V[p, q, n, d + e, y, x, c] · U[p, q, e, c, o]
    S[n, d, y, x, a, q, o]    = Σ_p A[a, p] · M[p, q, n, d, y, x, o]
    Y[n, d, m·y + a, m·x + b, o] = Σ_q A[b, q] · S[n, d, y, x, a, q, o]

Dimensions of space that are not tiled (d, with its window e) are summed up directly, and may have
strides and gaps. Results differ from those of a direct convolution by rounding (docs/accuracy.md).
The weights are transformed ahead of time, in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import Reduction, Shape, Tensor, compute, reduce_axis, select, sum_over
from tilewright.tensor.library.convolve import SPACE, WINDOW, Geometry, known_size
from tilewright.tensor.library.dims import padded, with_names
from tilewright.tensor.library.minimal_filters import Elements, Filter, minimal_filter

__all__ = ["Tiles", "convolve_winograd", "plain_weights", "winograd_weights"]

Where = Sequence[tir.Expr]


@dataclass(frozen=True)
class Tiles:
    """Windows of `taps` elements; along two dimensions tiles of so many `results`, 0 elsewhere."""

    taps: tuple[int, ...]
    results: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.taps) != len(self.results) or len(self.tiled) != 2:
            raise ValueError(f"tiles of {self.results} results do not fit windows of {self.taps}")

    @property
    def tiled(self) -> tuple[int, ...]:
        """The dimensions of space that have tiles."""
        return tuple(d for d, m in enumerate(self.results) if m)

    @property
    def plain(self) -> tuple[int, ...]:
        """The other ones."""
        return tuple(d for d, m in enumerate(self.results) if not m)

    @property
    def filters(self) -> tuple[Filter, Filter]:
        """The minimal filters of the tiled dimensions."""
        first, second = (minimal_filter(self.results[d], self.taps[d]) for d in self.tiled)
        return first, second


def winograd_weights(weights: NDArray[Any], tiles: Tiles) -> NDArray[Any]:
    """U[p, q, e…, c, o] for weights W[o, c, window…]."""
    first, second = (np.array(f.weights, np.float64) for f in tiles.filters)
    made = _along_tiled(weights, tiles, np.kron(first, second))
    # Now [o, c, e…, p·q].
    order = [made.ndim - 1, *range(2, made.ndim - 1), 1, 0]
    shape = [f.tile for f in tiles.filters] + [made.shape[d] for d in order[1:]]
    return np.ascontiguousarray(made.transpose(order), weights.dtype).reshape(shape)


def plain_weights(transformed: NDArray[Any], tiles: Tiles) -> NDArray[Any]:
    """W[o, c, window…] for `winograd_weights`."""
    first, second = (np.linalg.pinv(np.array(f.weights, np.float64)) for f in tiles.filters)
    rest = transformed.shape[2:-2]
    flat = transformed.reshape(-1, *transformed.shape[2:]).astype(np.float64)
    made = np.tensordot(np.kron(first, second), flat, axes=1)  # [window of the tiled, e…, c, o]
    made = made.reshape(*(tiles.taps[d] for d in tiles.tiled), *rest, *made.shape[-2:])
    dims = (*tiles.tiled, *tiles.plain)
    made = np.moveaxis(made, (-1, -2), (0, 1))
    return np.moveaxis(made, range(2, 2 + len(dims)), [2 + d for d in dims])


def _along_tiled(weights: NDArray[Any], tiles: Tiles, matrix: NDArray[Any]) -> NDArray[Any]:
    """A matrix times the windows along both tiled dimensions, which become one, the last."""
    order = [0, 1, *(2 + d for d in (*tiles.plain, *tiles.tiled))]
    moved = weights.transpose(order)
    flat = moved.reshape(*moved.shape[:-2], -1)
    parts = [part.astype(np.float64) @ matrix.T for part in flat]  # double precision costs memory
    return np.stack([part.astype(weights.dtype) for part in parts])


def convolve_winograd(
    x: Tensor,
    transformed: Tensor,
    tiles: Tiles,
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    groups: int = 1,
    name: str = "Y",
) -> Tensor:
    """The convolution of channels-last data with `winograd_weights`.

    Strides and dilations are 1 along tiled dimensions. With `groups`, filters see the channels of
    their group only.
    """
    geometry = Geometry(tiles.taps, strides, dilations, pads)
    if any(geometry.strides[d] * geometry.dilations[d] != 1 for d in tiles.tiled):
        raise ValueError("dimensions with tiles have neither strides nor gaps")
    return _Stages(x, transformed, tiles, geometry, groups, name).result()


class _Stages:
    """The stages of the picture above, for any number of dimensions."""

    def __init__(
        self,
        x: Tensor,
        transformed: Tensor,
        tiles: Tiles,
        geometry: Geometry,
        groups: int,
        name: str,
    ) -> None:
        self.transformed, self.tiles, self.geometry, self.name = transformed, tiles, geometry, name
        self.groups = groups
        self.batch, self.channels = x.shape[0], x.shape[-1]
        self.filters = transformed.shape[-1]
        self.first, self.second = tiles.filters
        self.space = geometry.windows(x.shape[1:-1])
        tidy = Analyzer().simplify
        self.counts = [
            tidy((size + (m - 1)) // m) if m else size
            for size, m in zip(self.space, tiles.results, strict=True)
        ]
        self.source = self._source(x)
        self.letters = SPACE[geometry.rank]

    def _source(self, x: Tensor) -> Tensor:
        """The data with their border, and with what the last tile has beyond them."""
        tidy, after = Analyzer().simplify, list(self.geometry.after)
        for d in self.tiles.tiled:
            m = self.tiles.results[d]
            missing = tir.int_value(tidy(self.counts[d] * m - self.space[d]))
            after[d] += m - 1 if missing is None else missing
        before = (0, *self.geometry.before, 0)
        names = ("n", *SPACE[self.geometry.rank], "c")
        return padded(f"{self.name}_border", x, before, (0, *after, 0), names)

    def result(self) -> Tensor:
        sums, (down, across) = self._sums(self._products(self._data())), self.tiles.tiled
        m, k = self.first.results, self.second.results

        def value(n: tir.Expr, *rest: tir.Expr) -> tir.Expr:
            *where, o = rest
            tile = list(where)
            tile[down], tile[across] = where[down] // m, where[across] // k
            row = where[down] % m
            return _one_of(
                where[across] % k,
                self.second.finished,
                lambda q: sums[(n, *tile, row, q, o)],
            )

        names = ("n", *self.letters, "o")
        shape = (self.batch, *self.space, self.filters)
        return compute(self.name, shape, with_names(names, value))

    def _data(self) -> Tensor:
        """V, by way of R; along plain dimensions as far as windows reach."""
        down, across = self.tiles.tiled
        counts = [self.source.shape[1 + d] for d in range(self.geometry.rank)]
        counts[down], counts[across] = self.counts[down], self.counts[across]
        m, k = self.first.results, self.second.results

        def row(n: tir.Expr, *rest: tir.Expr) -> tir.Expr:
            *where, p, j, c = rest

            def element(i: int) -> tir.Expr:
                at = list(where)
                at[down], at[across] = where[down] * m + i, where[across] * k + j
                return self.source[(n, *at, c)]

            return _one_of(p, self.first.transformed, element)

        names = ("n", *self.letters, "p", "j", "c")
        tile = (self.first.tile, self.second.tile)
        shape: Shape = (self.batch, *counts, *tile, self.channels)
        rows = compute(f"{self.name}_rows", shape, with_names(names, row))

        def value(p: tir.Expr, q: tir.Expr, *rest: tir.Expr) -> tir.Expr:
            *where, c = rest
            return _one_of(q, self.second.transformed, lambda j: rows[(*where, p, j, c)])

        names = ("p", "q", "n", *self.letters, "c")
        shape = (*tile, self.batch, *counts, self.channels)
        return compute(f"{self.name}_data", shape, with_names(names, value))

    def _products(self, data: Tensor) -> Tensor:
        plain, geometry = self.tiles.plain, self.geometry
        axes = {d: reduce_axis(self.tiles.taps[d], WINDOW[geometry.rank][d]) for d in plain}
        per_group = self.transformed.shape[-2]
        filters = known_size(self.filters) // self.groups if self.groups > 1 else 1
        c = reduce_axis(per_group, "c")

        def value(p: tir.Expr, q: tir.Expr, n: tir.Expr, *rest: tir.Expr) -> Reduction:
            *where, o = rest
            at = list(where)
            for d, axis in axes.items():
                at[d] = where[d] * geometry.strides[d] + axis * geometry.dilations[d]
            channel = c if self.groups == 1 else o // filters * per_group + c
            left = data[(p, q, n, *at, channel)]
            return sum_over(
                left * self.transformed[(p, q, *axes.values(), c, o)], *axes.values(), c
            )

        names = ("p", "q", "n", *self.letters, "o")
        shape: Shape = (self.first.tile, self.second.tile, self.batch, *self.counts, self.filters)
        return compute(f"{self.name}_products", shape, with_names(names, value))

    def _sums(self, products: Tensor) -> Tensor:
        def value(n: tir.Expr, *rest: tir.Expr) -> tir.Expr:
            *where, a, q, o = rest
            return _one_of(a, self.first.finished, lambda p: products[(p, q, n, *where, o)])

        names = ("n", *self.letters, "a", "q", "o")
        tile = (self.first.results, self.second.tile)
        shape: Shape = (self.batch, *self.counts, *tile, self.filters)
        return compute(f"{self.name}_sums", shape, with_names(names, value))


Transform = Callable[[Elements], list[tir.Expr]]


def _one_of(place: tir.Expr, transform: Transform, elements: Elements) -> tir.Expr:
    """Number `place` of the transformed elements."""
    *others, result = transform(elements)
    for number, value in reversed(list(enumerate(others))):
        result = select(place.eq(number), value, result)
    return result
