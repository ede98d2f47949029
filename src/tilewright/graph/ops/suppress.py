"""`Suppress`: of boxes in order, those that overlap no earlier one that is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.dtypes import boolean, f32, i64
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, SizeOf
from tilewright.graph.ops.serial import Row
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, seq

__all__ = ["Suppress"]

RUN: Final = 16
"""Kept boxes that are looked at between two questions whether a box is suppressed already."""

Sides = tuple[tir.Expr, tir.Expr, tir.Expr, tir.Expr]
"""Where a box begins and ends: low and high along one dimension, then along the other."""


@dataclass(frozen=True)
class Suppress(Op):
    """Which boxes (bool) are kept, looked at one after another, in stretches of equal `group`s.

    Inputs: low and high along one dimension, low and high along the other (f32 vectors); group
    (an i64 vector; those of a group stand together); how many are kept of a group at most (one
    i64); how much of their union two boxes may share (one f32). The time grows with boxes · kept
    boxes of a group, and ends early for boxes that are suppressed.
    """

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        return [TensorType(boolean, inputs[0].shape)]

    def assumptions(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[tuple[tir.Expr, tir.Expr]]:
        yield from ((t.shape[0], outputs[0].shape[0]) for t in inputs[1:5])

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        *sides, group, most, threshold = arrays
        boxes = np.stack(sides)
        kept: list[int] = []
        for place in range(len(group)):
            if place and group[place] != group[place - 1]:
                first = len(kept)
            elif not place:
                first = 0
            earlier = kept[first:]
            if len(earlier) < most.item() and not _overlaps(
                boxes[:, [place]], boxes[:, earlier], threshold.item()
            ):
                kept.append(place)
        result = np.zeros(len(group), np.bool_)
        result[kept] = True
        return [result]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        """The sides of kept boxes stand together in memory of their own."""
        *sides, group, most, threshold = inputs
        name, count = names[0], group.shape[0]
        row = Row(())
        result = tir.Buffer(name, (count,), boolean)
        kept = [row.private(f"{name}_side{k}", count, f32) for k in range(4)]
        found = row.private(f"{name}_found", 1, i64)
        first = row.private(f"{name}_first", 1, i64)
        out = row.private(f"{name}_out", 1, i64)

        def candidate(p: tir.Var) -> tir.Stmt:
            box = [row.load(side.buffer, p) for side in sides]
            before = row.load(group.buffer, tir.maximum(p - 1, 0))
            others = row.load(found, 0) - row.load(first, 0)

            def compared(place: tir.Expr) -> tir.Stmt:
                at = row.load(first, 0) + place
                other = [row.load(side, at) for side in kept]
                hit = _overlap(_sides(box), _sides(other), row.load(threshold.buffer, 0))
                return tir.If(hit, row.store(out, 0, tir.Const(1)))

            def run(start: tir.Var) -> tir.Stmt:
                rest = tir.maximum(tir.minimum(others - start * RUN, RUN), 0)
                several = row.loop(rest, lambda q: compared(start * RUN + q))
                return tir.If(row.load(out, 0).eq(0), several)

            here = row.load(found, 0)
            keep = [row.store(to, here, side) for to, side in zip(kept, box, strict=True)]
            keep += [row.store(result, p, tir.TRUE), row.store(found, 0, here + 1)]
            return seq(
                tir.If(row.load(group.buffer, p).ne(before), row.store(first, 0, here)),
                row.store(out, 0, tir.Const(0)),
                tir.If(row.load(most.buffer, 0) <= others, row.store(out, 0, tir.Const(1))),
                tir.If(
                    row.load(out, 0).eq(0),
                    row.loop((tir.maximum(others, 0) + (RUN - 1)) // RUN, run),
                ),
                tir.If(row.load(out, 0).eq(0), seq(*keep)),
            )

        body = seq(
            row.loop(count, lambda p: row.store(result, p, tir.const(0, boolean))),
            row.store(found, 0, tir.Const(0)),
            row.store(first, 0, tir.Const(0)),
            row.loop(count, candidate),
        )
        return [Tensor(result, row.nest(name, body), tuple(inputs))]


def _sides(parts: Sequence[tir.Expr]) -> Sides:
    low, high, low2, high2 = parts
    return low, high, low2, high2


def _overlap(a: Sides, b: Sides, threshold: tir.Expr) -> tir.Expr:
    """Whether two boxes share more than a part of their union; boxes without area share nothing."""
    height = tir.minimum(a[1], b[1]) - tir.maximum(a[0], b[0])
    width = tir.minimum(a[3], b[3]) - tir.maximum(a[2], b[2])
    shared = height * width
    areas = [(s[1] - s[0]) * (s[3] - s[2]) for s in (a, b)]
    union = areas[0] + areas[1] - shared
    meet = (height > 0.0) & (width > 0.0) & (shared > 0.0)
    real = (areas[0] > 0.0) & (areas[1] > 0.0) & (union > 0.0)
    return meet & real & (shared / union > threshold)


def _overlaps(box: Array, others: Array, threshold: float) -> bool:
    """The same in NumPy, for one box and several."""
    height = np.minimum(box[1], others[1]) - np.maximum(box[0], others[0])
    width = np.minimum(box[3], others[3]) - np.maximum(box[2], others[2])
    shared = height * width
    areas = [(b[1] - b[0]) * (b[3] - b[2]) for b in (box, others)]
    union = areas[0] + areas[1] - shared
    with np.errstate(all="ignore"):
        much = shared / union > np.float32(threshold)
    meet = (height > 0) & (width > 0) & (shared > 0)
    return bool((meet & (areas[0] > 0) & (areas[1] > 0) & (union > 0) & much).any())
