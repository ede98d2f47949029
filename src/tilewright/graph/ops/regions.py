"""`Regions`: means or extremes of interpolated points in the cells of boxes, channels last.

How many points a cell has may differ from box to box, which no tensor expression says: it is one
block for each cell, with loops over its points, and over channels in vectors.
"""

from __future__ import annotations

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

Ends = tuple[tir.Expr, tir.Expr, tir.Expr, tir.Expr]
"""Along one dimension: the points below and above a coordinate, and their weights."""


@dataclass(frozen=True)
class Regions(Op):
    """`out[r, p, q, c]` folds `in0[image(r), y, x, c]` over the points (y, x) of cell (p, q).

    Inputs: images (batch, height, width, channels); the number of each box's image (i64); where a
    box begins (boxes, 2: y then x); how large its cells are (boxes, 2); how many points they have
    (boxes, 2; i64). A point lies in the middle of its part of a cell, and is interpolated between
    four elements; more than one element outside of the image it is zero. The fold is a mean, or
    the greatest weighted element of all, as ONNX defines it; of no points it is zero. The nearest
    image is taken where there is none of a number.
    """

    cells: tuple[int, int]
    greatest: bool = False

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        x, image = inputs[:2]
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
            if parts[0].size and self.greatest:
                result[r, p, q] = np.max(parts, axis=(0, 1, 2))
            elif parts[0].size:
                result[r, p, q] = np.sum(parts, axis=(0, 1, 2)) / (parts[0].size // x.shape[-1])
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

        def point(*at: tir.Var) -> tir.Stmt:
            ends = [
                _ends(
                    x.shape[1 + d],
                    tir.Load(begin.buffer, (box, tir.Const(d))).to(wide),
                    tir.Load(cell.buffer, (box, tir.Const(d))).to(wide),
                    counts[d],
                    place[d],
                    at[d],
                )
                for d in range(2)
            ]
            stores = [row.store(corners, 2 * d + k, ends[d][k]) for d in range(2) for k in range(2)]
            weights = [ends[0][2 + k // 2] * ends[1][2 + k % 2] for k in range(4)]
            stores += [row.store(factors, k, weight) for k, weight in enumerate(weights)]
            return seq(*stores, _vector(row.loop(channels, added)))

        start = tir.const(wide.min_value if self.greatest else 0, wide)

        def finished(c: tir.Var) -> tir.Stmt:
            value = row.load(total, c)
            if not self.greatest:
                value = value / tir.maximum(several, 1).to(wide)
            return row.store(result, c, select(several.eq(0), tir.const(0, wide), value))

        body = seq(
            _vector(row.loop(channels, lambda c: row.store(total, c, start))),
            row.loop(counts[0], lambda i: row.loop(counts[1], lambda j: point(i, j))),
            _vector(row.loop(channels, finished)),
        )
        nest = row.nest(name, body, parallel=count(result.shape) >= MANY)
        return [Tensor(result, nest, tuple(inputs))]


def _vector(loop: tir.Stmt) -> tir.Stmt:
    assert isinstance(loop, tir.For)
    return loop.with_fields(kind=tir.LoopKind.VECTOR)


def _ends(
    size: tir.Expr,
    begin: tir.Expr,
    cell: tir.Expr,
    points: tir.Expr,
    number: tir.Expr,
    point: tir.Expr,
) -> Ends:
    """The two elements around a point along one dimension; without weight if it is far outside."""
    wide = begin.dtype
    step = (point.to(wide) + 0.5) * cell / tir.maximum(points, 1).to(wide)
    at = begin + number.to(wide) * cell + step
    near = (at >= -1.0) & (at <= size.to(wide))
    held = tir.maximum(select(near, at, tir.const(0, wide)), 0.0)
    low = tir.minimum(call("floor", held).to(i64), size - 1)
    part = select(low < size - 1, held - low.to(wide), tir.const(0, wide))
    none = tir.const(0, wide)
    return (
        low,
        tir.minimum(low + 1, size - 1),
        select(near, 1.0 - part, none),
        select(near, part, none),
    )


def _ends_in_numpy(
    size: int, begin: Array, cell: Array, points: int, number: int
) -> list[tuple[Array, Array]]:
    """(elements, weights) below and above all points of a cell along one dimension."""
    wide = np.dtype(np.float64 if begin.dtype == np.float64 else np.float32)
    begin, cell = begin.astype(wide), cell.astype(wide)
    middles = np.arange(max(points, 0)).astype(wide) + wide.type(0.5)
    at = begin + wide.type(number) * cell + middles * cell / wide.type(max(points, 1))
    near = (at >= -1) & (at <= size)
    held = np.maximum(np.where(near, at, 0), 0)
    low = np.minimum(np.floor(held).astype(np.int64), size - 1)
    part = np.where(low < size - 1, held - low, 0).astype(wide)
    high = np.minimum(low + 1, size - 1)
    return [(low, np.where(near, 1 - part, 0)), (high, np.where(near, part, 0))]
