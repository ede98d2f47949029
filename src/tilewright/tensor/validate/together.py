"""Several blocks that fill one buffer between them: zeros, and what they surround."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.boxes import covers
from tilewright.tensor.arith.sweep import region_bounds
from tilewright.tensor.validate.bindings import Bound
from tilewright.tensor.visit import free_vars

__all__ = ["fill_together"]


def fill_together(writers: Sequence[Bound], buffer: tir.Buffer) -> bool:
    """Is each element of the buffer in the box that one of the blocks writes without gaps?"""
    boxes = []
    for writer in writers:
        box = _box(writer.place.block, buffer)
        if box is None:
            return False
        boxes.append(box)
    whole = tuple([tir.Range(tir.Const(0), size) for size in buffer.shape])
    return covers(boxes, whole, Analyzer({tir.Var("d"): size for size in buffer.shape}))


def _box(block: tir.Block, buffer: tir.Buffer) -> tuple[tir.Range, ...] | None:
    """What a block writes over its whole domain, if that is a box with no element left out."""
    regions = [r for r in block.writes if r.buffer is buffer]
    if len(regions) != 1 or any(tir.int_value(r.extent) != 1 for r in regions[0].ranges):
        return None
    starts = [r.start for r in regions[0].ranges]
    used = {var for start in starts for var in free_vars(start)}
    iters = [(it.var, it.extent) for it in block.iters if it.var in used]
    analyzer = Analyzer(dict(iters))
    found = region_bounds(starts, iters, analyzer)
    box = tuple([span for span in found if span is not None])
    if len(box) < len(found):
        return None
    # As many elements as points: a block writes each element at one point of its domain only.
    points = _product([extent for _, extent in iters])
    return box if analyzer.prove_equal(points, _product([s.extent for s in box])) else None


def _product(sizes: Sequence[tir.Expr]) -> tir.Expr:
    result: tir.Expr = tir.Const(1)
    for size in sizes:
        result = result * size
    return result
