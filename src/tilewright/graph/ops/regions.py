"""`Regions`: means or extremes of interpolated points in the cells of boxes, channels last.

How many points a cell has may differ from box to box, which no tensor expression says: it is one
block for each cell, with loops over its points, and over channels in vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.dtypes import i64
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.ends import require_limits
from tilewright.graph.ops.op import Limit, Op, SizeOf, computed_as
from tilewright.graph.ops.serial import Row
from tilewright.graph.sizes import as_shape, count
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, call, select, seq

__all__ = ["Regions"]

MANY: Final = 1 << 14
"""Elements of the result from which on threads share the boxes."""

SLACK: Final = {32: 2.0**-20, 64: 2.0**-49}
"""Errors of coordinates, relative to what they are made of: some units of the last place."""

Ends = tuple[tir.Expr, tir.Expr, tir.Expr, tir.Expr]
"""Along one dimension: the points below and above a coordinate, and their weights."""


@dataclass(frozen=True)
class Regions(Op):
    """`out[r, p, q, c]` folds `in0[image(r), y, x, c]` over the points (y, x) of cell (p, q).

    Inputs: images (batch, height, width, channels); the number of each box's image (i64); where a
    box begins (boxes, 2: y then x); how large its cells are (boxes, 2); how many points they have
    (boxes, 2; i64). A point lies in the middle of its part of a cell, and is interpolated between
    four elements; more than one element outside of the image it is zero, and is not looked at:
    however large a box is, work is bounded by the image. The fold is a mean, or the greatest
    weighted element of all, as ONNX defines it; of no points it is zero. The nearest image is
    taken where there is none of a number.
    """

    cells: tuple[int, int]
    greatest: bool = False

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        x, image = inputs[:2]
        if (ranks := [t.rank for t in inputs]) != [4, 1, 2, 2, 2]:
            raise ValueError(f"images, their numbers and boxes have {ranks} dimensions")
        result = [TensorType(x.dtype, as_shape([*image.shape, *self.cells, x.shape[-1]]))]
        require_limits(self.limits(inputs, result))
        return result

    def assumptions(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[tuple[tir.Expr, tir.Expr]]:
        yield from ((t.shape[0], inputs[1].shape[0]) for t in inputs[2:])

    def limits(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[Limit]:
        """There is a nearest image, and an element that is nearest to a point."""
        yield from ((tir.Const(1), d, outputs[0].shape) for d in inputs[0].shape[:3])

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        x, image, begin, cell, points = arrays
        wide = np.float64 if x.dtype == np.float64 else np.float32
        result = np.zeros((len(image), *self.cells, x.shape[-1]), wide)
        for r, p, q in np.ndindex(result.shape[:3]):
            source = x[np.clip(image[r], 0, len(x) - 1)].astype(wide)
            ends = [
                _ends_in_numpy(source.shape[d], begin[r, d], cell[r, d], points[r, d], (p, q)[d])
                for d in range(2)
            ]
            parts = [
                source[y][:, x_] * (wy[:, None] * wx[None, :])[..., None]
                for y, wy in ends[0]
                for x_, wx in ends[1]
            ]
            several = int(np.prod(np.maximum(points[r], 0)))
            looked_at = parts[0].shape[0] * parts[0].shape[1]
            if several and self.greatest:
                some = 0.0 if looked_at < several else wide(-np.inf)
                result[r, p, q] = np.max(parts, axis=(0, 1, 2), initial=some)
            elif several:
                result[r, p, q] = np.sum(parts, axis=(0, 1, 2)) / wide(several)
        return [result.astype(x.dtype)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        x, image, begin, cell, points = inputs
        channels, wide, name = x.shape[3], computed_as(x.dtype), names[0]
        row = Row((image.shape[0], *(tir.Const(c) for c in self.cells)))
        box, *place = (it.var for it in row.iters)
        result = tir.Buffer(name, (*(it.extent for it in row.iters), channels), x.dtype)
        total = row.private(f"{name}_total", channels, wide)
        factors = row.private(f"{name}_factors", 4, wide)
        corners = row.private(f"{name}_corners", 4, i64)
        spans = row.private(f"{name}_spans", 4, i64)
        seen = row.private(f"{name}_seen", 1, i64)
        number = tir.Load(image.buffer, (box,)).to(i64)
        source = tir.maximum(tir.minimum(number, x.shape[0] - 1), 0)
        counts = [tir.maximum(tir.Load(points.buffer, (box, tir.Const(d))), 0) for d in range(2)]
        several = counts[0] * counts[1]

        def element(corner: int, c: tir.Var) -> tir.Expr:
            y, x_ = (row.load(corners, k) for k in (corner // 2, 2 + corner % 2))
            held = tir.Load(x.buffer, (source, y, x_, c)).to(wide)
            return held * row.load(factors, corner)

        def added(c: tir.Var) -> tir.Stmt:
            one, two, three, four = (element(corner, c) for corner in range(4))
            if self.greatest:
                new = tir.maximum(tir.maximum(one, two), tir.maximum(three, four))
                return row.store(total, c, tir.maximum(row.load(total, c), new))
            return row.store(total, c, row.load(total, c) + ((one + two) + (three + four)))

        lines = [
            _Line(
                x.shape[1 + d],
                tir.Load(begin.buffer, (box, tir.Const(d))).to(wide),
                tir.Load(cell.buffer, (box, tir.Const(d))).to(wide),
                counts[d],
                place[d],
            )
            for d in range(2)
        ]
        firsts = [row.load(spans, 2 * d) for d in range(2)]
        extents = [row.load(spans, 2 * d + 1) for d in range(2)]

        def point(*at: tir.Expr) -> tir.Stmt:
            ends = [line.ends(k) for line, k in zip(lines, at, strict=True)]
            stores = [row.store(corners, 2 * d + k, ends[d][k]) for d in range(2) for k in range(2)]
            weights = [ends[0][2 + k // 2] * ends[1][2 + k % 2] for k in range(4)]
            stores += [row.store(factors, k, weight) for k, weight in enumerate(weights)]
            stores.append(row.store(seen, 0, row.load(seen, 0) + 1))
            near = lines[0].is_near(at[0]) & lines[1].is_near(at[1])
            return tir.If(near, seq(*stores, _vector(row.loop(channels, added))))

        start = tir.const(wide.min_value if self.greatest else 0, wide)
        none = tir.const(0, wide)

        def finished(c: tir.Var) -> tir.Stmt:
            value = row.load(total, c)
            if self.greatest:
                some = row.load(seen, 0) < several
                value = select(some, tir.maximum(value, none), value)
            else:
                value = value / tir.maximum(several, 1).to(wide)
            return row.store(result, c, select(several.eq(0), none, value))

        body = seq(
            _vector(row.loop(channels, lambda c: row.store(total, c, start))),
            row.store(seen, 0, tir.Const(0)),
            *(row.store(spans, k, end) for k, end in enumerate(e for n in lines for e in n.span())),
            row.loop(
                extents[0],
                lambda i: row.loop(extents[1], lambda j: point(firsts[0] + i, firsts[1] + j)),
            ),
            _vector(row.loop(channels, finished)),
        )
        nest = row.nest(name, body, parallel=count(result.shape) >= MANY)
        return [Tensor(result, nest, tuple(inputs))]


def _vector(loop: tir.Stmt) -> tir.Stmt:
    assert isinstance(loop, tir.For)
    return loop.with_fields(kind=tir.LoopKind.VECTOR)


@dataclass(frozen=True)
class _Line:
    """The points of one cell along one dimension of an image."""

    size: tir.Expr
    begin: tir.Expr
    cell: tir.Expr
    points: tir.Expr
    number: tir.Expr

    def at(self, point: tir.Expr) -> tir.Expr:
        """The coordinate of a point."""
        wide = self.begin.dtype
        step = (point.to(wide) + 0.5) * self.cell / tir.maximum(self.points, 1).to(wide)
        return self.begin + self.number.to(wide) * self.cell + step

    def is_near(self, point: tir.Expr) -> tir.Expr:
        """Whether a point is in the image or within one element of it."""
        at = self.at(point)
        return (at >= -1.0) & (at <= self.size.to(self.begin.dtype))

    def span(self) -> tuple[tir.Expr, tir.Expr]:
        """The first point that may be near, and how many there are from it on to the last one."""
        wide = self.begin.dtype
        many, away = self.points.to(wide), self.number.to(wide) * self.cell
        step = self.cell / tir.maximum(many, 1.0)
        ends = [(end - (self.begin + away)) / step for end in (-1.0, self.size.to(wide))]
        reach = call("abs", self.begin) + call("abs", away) + self.size.to(wide)
        slack = reach / call("abs", step) * SLACK[wide.bits] + 2.0
        low = call("floor", tir.minimum(*ends) - slack)
        high = call("ceil", tir.maximum(*ends) + slack)
        inside = [(v > 0.0) & (v < many) for v in (low, high)]
        none = tir.const(0, wide)
        begin, end = (
            select(known, v, none).to(i64) for known, v in zip(inside, (low, high), strict=True)
        )
        first = select(inside[0], begin, select(low >= many, self.points, tir.Const(0)))
        last = select(inside[1], end, select(high <= 0.0, tir.Const(0), self.points))
        finite = (reach < math.inf) & (call("abs", step) < math.inf)
        return first, select(finite, tir.maximum(last - first, 0), tir.Const(0))

    def ends(self, point: tir.Expr) -> Ends:
        """The two elements around a point that is near."""
        wide, size = self.begin.dtype, self.size
        none = tir.const(0, wide)
        held = tir.maximum(select(self.is_near(point), self.at(point), none), 0.0)
        low = tir.minimum(call("floor", held).to(i64), size - 1)
        part = select(low < size - 1, held - low.to(wide), none)
        return low, tir.minimum(low + 1, size - 1), 1.0 - part, part


def _ends_in_numpy(
    size: int, begin: Array, cell: Array, points: int, number: int
) -> list[tuple[Array, Array]]:
    """(elements, weights) below and above the near points of a cell along one dimension."""
    wide = np.dtype(np.float64 if begin.dtype == np.float64 else np.float32)
    begin, cell, many = begin.astype(wide), cell.astype(wide), wide.type(max(points, 1))
    middles = _may_be_near(size, begin, cell, points, number).astype(wide) + wide.type(0.5)
    with np.errstate(all="ignore"):
        at = begin + wide.type(number) * cell + middles * cell / many
    at = at[(at >= -1) & (at <= size)]
    held = np.maximum(at, 0)
    low = np.minimum(np.floor(held).astype(np.int64), size - 1)
    part = np.where(low < size - 1, held - low, 0).astype(wide)
    high = np.minimum(low + 1, size - 1)
    return [(low, 1 - part), (high, part)]


def _may_be_near(size: int, begin: Array, cell: Array, points: int, number: int) -> Array:
    """The points of a cell that need to be looked at; a few more than those that are near."""
    low, away, step = float(begin), number * float(cell), float(cell) / max(points, 1)
    if not np.isfinite([low, away]).all():
        return np.arange(0)
    if step == 0:
        return np.arange(max(points, 0))
    ends = sorted((end - (low + away)) / step for end in (-1, size))
    slack = (abs(low) + abs(away) + size) / abs(step) * SLACK[32] + 2
    first, last = (np.clip(v, 0, max(points, 0)) for v in (ends[0] - slack, ends[1] + slack))
    return np.arange(int(first), int(np.ceil(last)))
