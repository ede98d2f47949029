"""Convolutions with fewer multiplications: minimal filters along one or two dimensions of space.

Neighbouring results share products of sums and differences of the data with sums of the weights
(`minimal_filters`): F(4×4, 3×3) computes 16 results from 36 products per channel instead of 144.
The products of all channels are as many matrix products. With tiles of t elements for m results:

    R[n, d, y, x, p, j, c]    = Σ_i B[p, i] · X[n, d, m·y + i, m·x + j, c]    (columns of a tile)
    V[p, q, n, d, y, x, c]    = Σ_j B[q, j] · R[n, d, y, x, p, j, c]          (and its rows)
    M[p, q, n, d, y, x, o]    = Σ_e Σ_c V[p, q, n, d + e, y, x, c] · U[p, q, e, c, o]
    S[n, d, y, x, a, q, o]    = Σ_p A[a, p] · M[p, q, n, d, y, x, o]
    Y[n, d, m·y + a, m·x + b, o] = Σ_q A[b, q] · S[n, d, y, x, a, q, o]

Dimensions of space that are not tiled (d, with its window e) are summed up directly, and may have
any strides and gaps. Along tiled ones, strides make phases of the data, which are summed up like
channels, as are pieces of long windows; gaps, and the strides of transposed convolutions, make
images of the results, which lie behind the batch until the end (`tiles`). Results differ from those
of a direct convolution by rounding (docs/accuracy.md). The weights are transformed ahead of time,
in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import (
    Reduction,
    Shape,
    Tensor,
    compute,
    placeholder,
    reduce_axis,
    select,
    sum_over,
)
from tilewright.tensor.library.convolve import SPACE, WINDOW, Geometry, known_size
from tilewright.tensor.library.dims import padded, with_names
from tilewright.tensor.library.minimal_filters import Elements
from tilewright.tensor.library.tiles import Line, SpreadTiles, Tiles

__all__ = ["convolve_spread", "convolve_winograd", "transformed_data"]

Where = Sequence[tir.Expr]


def convolve_winograd(
    x: Tensor,
    transformed: Tensor,
    tiles: Tiles,
    pads: Sequence[int] = (),
    groups: int = 1,
    name: str = "Y",
) -> Tensor:
    """The convolution of channels-last data with `winograd_weights`.

    With `groups`, filters see the channels of their group only.
    """
    geometry = Geometry(tiles.taps, tiles.strides, tiles.dilations, pads)
    space, after = geometry.windows(x.shape[1:-1]), list(geometry.after)
    for d, line in tiles.lines.items():
        most = line.reach(0) + line.step * line.results - geometry.reach[d]
        missing = _missing(x, d, geometry.before[d], space, line)
        after[d] = max(0, after[d] + most if missing is None else missing)
    source = _bordered(x, geometry.before, after, name)
    return _Stages(source, transformed, tiles, space, groups, name).result()


def convolve_spread(
    x: Tensor,
    transformed: Tensor,
    tiles: SpreadTiles,
    after: Sequence[int] = (),
    groups: int = 1,
    name: str = "Y",
) -> Tensor:
    """The transposed convolution of channels-last data with `spread_weights`.

    `after` says how many results are cut off at the end of each dimension: less than none are
    beyond the last window.
    """
    space, before, behind = [], [], []
    for d, line in tiles.lines.items():
        cut = tiles.before[d] + (after[d] if after else 0)
        window = tiles.taps[d] - cut
        space.append(Analyzer().simplify((x.shape[1 + d] - 1) * tiles.strides[d] + window))
        most = line.reach(1) - line.taps + max(0, -(-(window - 1) // tiles.strides[d]))
        before.append(line.taps - 1)
        missing = _missing(x, d, before[d], space, line)
        behind.append(max(0, most if missing is None else missing))
    source = _bordered(x, before, behind, name)
    return _Stages(source, transformed, tiles, space, groups, name).result()


def transformed_data(x: Tensor, tiles: Tiles, space: Where, name: str = "Y") -> Tensor:
    """The first stage alone: V of channels-last data that have their border already."""
    sizes = [line.filter.tile for line in tiles.lines.values()]
    weights = placeholder("U", (*sizes, x.shape[-1], x.shape[-1]), x.dtype)  # of no consequence
    return _Stages(x, weights, tiles, space, 1, name).data()


def _missing(x: Tensor, d: int, before: int, space: Where, line: Line) -> int | None:
    """How many elements the last tile sees beyond the data; None if sizes are not known."""
    results, size = tir.int_value(space[d]), tir.int_value(x.shape[1 + d])
    if results is None or size is None:
        return None
    return line.reach(line.tiles(results)) - size - before


def _bordered(x: Tensor, before: Sequence[int], after: Sequence[int], name: str) -> Tensor:
    names = ("n", *SPACE[len(before)], "c")
    return padded(f"{name}_border", x, (0, *before, 0), (0, *after, 0), names)


class _Stages:
    """The stages of the picture above, for any number of dimensions.

    `source` has a border as wide as tiles see it, `space` is that of the result.
    """

    def __init__(
        self,
        source: Tensor,
        transformed: Tensor,
        tiles: Tiles,
        space: Where,
        groups: int,
        name: str,
    ) -> None:
        self.transformed, self.tiles, self.name, self.groups = transformed, tiles, name, groups
        self.batch, self.channels = source.shape[0], source.shape[-1]
        self.filters = transformed.shape[-1]
        self.rank, self.letters, self.lines = len(space), SPACE[len(space)], tiles.lines
        tidy = Analyzer().simplify
        self.space = space
        self.counts = [
            tidy(self.lines[d].tiles(size)) if d in self.lines else size
            for d, size in enumerate(space)
        ]
        self.summed = [d for d, line in self.lines.items() if line.parts > 1]
        self.parted = [d for d, line in self.lines.items() if line.images > 1]
        # Names of what stands before and behind space in all stages.
        self.outer = ("n", *(f"i{self.letters[d]}" for d in self.parted))
        self.inner = (*(f"f{self.letters[d]}" for d in self.summed), "c")
        self.source = self._images(source) if self.parted else source

    @property
    def outer_shape(self) -> tuple[tir.Expr | int, ...]:
        return (self.batch, *(self.lines[d].images for d in self.parted))

    @property
    def inner_shape(self) -> tuple[tir.Expr | int, ...]:
        return (*(self.lines[d].parts for d in self.summed), self.channels)

    def _images(self, source: Tensor) -> Tensor:
        """What each image of the results sees of the data, behind the batch."""
        sizes: list[tir.Expr] = list(source.shape[1:-1])
        for d in self.parted:
            line = self.lines[d]
            sizes[d] = Analyzer().simplify(line.elements(self.counts[d]))

        def value(n: tir.Expr, *rest: tir.Expr) -> tir.Expr:
            images, at, c = rest[: len(self.parted)], list(rest[len(self.parted) : -1]), rest[-1]
            for d, image in zip(self.parted, images, strict=True):
                at[d] = self.lines[d].at(at[d], 0, image)
            return source[(n, *at, c)]

        shape: Shape = (*self.outer_shape, *sizes, self.channels)
        names = (*self.outer, *self.letters, "c")
        return compute(f"{self.name}_seen", shape, with_names(names, value), source.dtype)

    def _seen(self, outer: Where, where: Where, inner: Where) -> tir.Expr:
        """An element of the source: `where` counts elements of tiles along tiled dimensions."""
        at, (*parts, c) = list(where), inner
        part_of = dict(zip(self.summed, parts, strict=True))
        for d, line in self.lines.items():
            part = part_of.get(d, 0)
            if line.pieces > 1:
                at[d], part = where[d] + part * line.taps, 0
            if d not in self.parted:
                at[d] = line.at(at[d], part, 0)
        return self.source[(*outer, *at, c)]

    def _elements(self, rest: Where, inner: Where, across: Mapping[int, tir.Expr]) -> Elements:
        """Elements of a tile along the first tiled dimension, at a place `across` the other."""
        outer, where = rest[: len(self.outer)], rest[len(self.outer) :]
        down, line = next(iter(self.lines.items()))

        def element(i: int) -> tir.Expr:
            at = list(where)
            at[down] = where[down] * line.results + i
            for d, j in across.items():
                at[d] = where[d] * self.lines[d].results + j
            return self._seen(outer, at, inner)

        return element

    def _rows(self, counts: Sequence[tir.Expr]) -> Tensor:
        """R: tiles transformed along the first of two dimensions."""
        (_, first), (across, second) = self.lines.items()
        depth = len(self.outer) + self.rank

        def value(*at: tir.Expr) -> tir.Expr:
            rest, (p, j, *inner) = at[:depth], at[depth:]
            elements = self._elements(rest, inner, {across: j})
            return _one_of(p, first.filter.transformed, elements)

        names = (*self.outer, *self.letters, "p", "j", *self.inner)
        tile = (first.filter.tile, second.filter.tile)
        shape: Shape = (*self.outer_shape, *counts, *tile, *self.inner_shape)
        return compute(f"{self.name}_rows", shape, with_names(names, value))

    def data(self) -> Tensor:
        """V, by way of R if there are two dimensions; plain ones as far as windows reach."""
        counts = [self.source.shape[len(self.outer) + d] for d in range(self.rank)]
        for d in self.lines:
            counts[d] = self.counts[d]
        rows = self._rows(counts) if len(self.lines) == 2 else None
        tile, depth = (
            [line.filter.tile for line in self.lines.values()],
            len(self.outer) + self.rank,
        )
        transform = list(self.lines.values())[-1].filter.transformed

        def value(*at: tir.Expr) -> tir.Expr:
            (*rows_at, q), rest, inner = (
                at[: len(tile)],
                at[len(tile) :][:depth],
                at[len(tile) + depth :],
            )
            if rows is None:
                return _one_of(q, transform, self._elements(rest, inner, {}))
            return _one_of(q, transform, lambda j: rows[(*rest, *rows_at, j, *inner)])

        names = (*("p", "q")[: len(tile)], *self.outer, *self.letters, *self.inner)
        shape: Shape = (*tile, *self.outer_shape, *counts, *self.inner_shape)
        return compute(f"{self.name}_data", shape, with_names(names, value))

    def _products(self, data: Tensor) -> Tensor:
        tiles, letters = self.tiles, self.letters
        axes = {d: reduce_axis(tiles.taps[d], WINDOW[self.rank][d]) for d in tiles.plain}
        parts = [reduce_axis(self.lines[d].parts, f"f{letters[d]}") for d in self.summed]
        per_group = self.transformed.shape[-2]
        filters = known_size(self.filters) // self.groups if self.groups > 1 else 1
        c, tiled, depth = reduce_axis(per_group, "c"), len(self.lines), len(self.outer)

        def value(*at: tir.Expr) -> Reduction:
            tile, outer, where, o = at[:tiled], at[tiled:][:depth], at[tiled + depth : -1], at[-1]
            places = list(where)
            for d, axis in axes.items():
                places[d] = where[d] * tiles.strides[d] + axis * tiles.dilations[d]
            channel = c if self.groups == 1 else o // filters * per_group + c
            left = data[(*tile, *outer, *places, *parts, channel)]
            summed, images = (*axes.values(), *parts, c), outer[1:] if tiles.own > 1 else ()
            return sum_over(left * self.transformed[(*images, *tile, *summed, o)], *summed)

        names = (*("p", "q")[:tiled], *self.outer, *letters, "o")
        tile = [line.filter.tile for line in self.lines.values()]
        shape: Shape = (*tile, *self.outer_shape, *self.counts, self.filters)
        return compute(f"{self.name}_products", shape, with_names(names, value))

    def result(self) -> Tensor:
        """Y, by way of S if there are two dimensions."""
        products, depth = self._products(self.data()), len(self.outer)
        sums = self._sums(products) if len(self.lines) == 2 else None
        last, line = list(self.lines.items())[-1]

        def value(*at: tir.Expr) -> tir.Expr:
            outer, where, o = at[:depth], at[depth:-1], at[-1]
            tile, place = list(where), where[last] % line.results
            for d, own in self.lines.items():
                tile[d] = where[d] // own.results

            def element(q: int) -> tir.Expr:
                if sums is None:
                    return products[(q, *outer, *tile, o)]
                down, first = next(iter(self.lines.items()))
                return sums[(*outer, *tile, where[down] % first.results, q, o)]

            return _one_of(place, line.filter.finished, element)

        if self.parted:
            return self._joined(value)
        shape: Shape = (self.batch, *self.space, self.filters)
        return compute(self.name, shape, with_names((*self.outer, *self.letters, "o"), value))

    def _sums(self, products: Tensor) -> Tensor:
        first, second = self.lines.values()
        depth = len(self.outer) + self.rank

        def value(*at: tir.Expr) -> tir.Expr:
            rest, (a, q, o) = at[:depth], at[depth:]
            return _one_of(a, first.filter.finished, lambda p: products[(p, q, *rest, o)])

        names = (*self.outer, *self.letters, "a", "q", "o")
        tile = (first.results, second.filter.tile)
        shape: Shape = (*self.outer_shape, *self.counts, *tile, self.filters)
        return compute(f"{self.name}_sums", shape, with_names(names, value))

    def _joined(self, value: Callable[..., tir.Expr]) -> Tensor:
        """Results of all images, taken by turns."""
        sizes, tidy = list(self.space), Analyzer().simplify
        for d in self.parted:
            count = self.lines[d].images
            sizes[d] = tidy((self.space[d] + (count - 1)) // count)
        names, shape = (*self.outer, *self.letters, "o"), (*self.outer_shape, *sizes, self.filters)
        images = compute(f"{self.name}_images", shape, with_names(names, value))

        def joined(n: tir.Expr, *rest: tir.Expr) -> tir.Expr:
            *where, o = rest
            turns = []
            for d in self.parted:
                count = self.lines[d].images
                turns.append(where[d] % count)
                where[d] = where[d] // count
            return images[(n, *turns, *where, o)]

        names = ("n", *self.letters, "o")
        return compute(
            self.name, (self.batch, *self.space, self.filters), with_names(names, joined)
        )


Transform = Callable[[Elements], list[tir.Expr]]


def _one_of(place: tir.Expr, transform: Transform, elements: Elements) -> tir.Expr:
    """Number `place` of the transformed elements."""
    *others, result = transform(elements)
    for number, value in reversed(list(enumerate(others))):
        result = select(place.eq(number), value, result)
    return result
