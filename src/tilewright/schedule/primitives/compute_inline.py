"""Compute values where they are used, instead of storing them."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import Change, Ranges, change_block, tidied
from tilewright.schedule.dataflow import Outline, Place, edited, without_alloc
from tilewright.schedule.domains import solved
from tilewright.schedule.moves import cannot_pass
from tilewright.schedule.primitive import Edit, primitive
from tilewright.tensor import ir as tir
from tilewright.tensor.regions import point
from tilewright.tensor.visit import substitute

__all__ = ["compute_inline", "require_plain"]

S230 = Code("S230", "block `{block}` is not one plain value for each element")
S231 = Code(
    "S231", "an element of `{buffer}` does not tell which iteration of `{block}` computes it"
)
S232 = Code("S232", "nothing reads `{buffer}`, which block `{block}` computes")


@primitive
def compute_inline(func: tir.Func, block: tir.Block) -> Edit:
    """Replace every read of what the block computes by the computation itself.

    Before:  for i in range(64): B[i] = exp(A[i])
             for i in range(64): C[i] = B[i] + 1
    After:   for i in range(64): C[i] = exp(A[i]) + 1
    Requires: S201 the block is not inside another block; S202 it writes no output; S203 it is the
        only writer of its buffer; S208 nothing changes its inputs before they are used; S230 it
        computes one plain value per element, without a reduction; S231 its indices can be
        inverted; S232 something reads it
    Example: s.compute_inline("B")
    """
    outline = Outline(func)
    place = outline.place(block)
    store = require_plain(outline, place)
    outline.require_intermediate(store.buffer)
    outline.require_sole_writer(place, store.buffer)
    readers = outline.readers(store.buffer)
    if not readers:
        marks = {"block": block, "buffer": store.buffer}
        raise ScheduleError(S232, program=func, marks=marks, hint="remove it from the program")
    _require_inputs_last(outline, place)
    inlined = _Inlined(func, block, store)
    changes = [(reader.block, (change_block(reader.block, inlined),)) for reader in readers]
    new = edited(func, (outline.own(place), ()), *changes)
    return Edit(without_alloc(new, store.buffer))


def require_plain(outline: Outline, place: Place) -> tir.Store:
    """The one store of a block without reduction (S230)."""
    block = place.block
    spatial = all(it.kind is tir.IterKind.SPATIAL for it in block.iters)
    if spatial and block.init is None and isinstance(block.body, tir.Store):
        return block.body
    found = "a body of several statements" if spatial and block.init is None else "a reduction"
    raise ScheduleError(
        S230,
        {"expected": "a single store over spatial iterators", "found": found},
        program=outline.func,
        marks={"block": block},
        hint="use `compute_at` or `reverse_compute_at` to bring the blocks together",
    )


def _require_inputs_last(outline: Outline, place: Place) -> None:
    """S208: no input is written after the block."""
    for region in place.block.reads:
        for writer in outline.writers(region.buffer):
            if writer.number > place.number:
                hint = "keep a copy of the input with `cache_read` first"
                raise cannot_pass(outline, place, region.buffer, writer, hint)


class _Inlined(Change):
    """Loads of the buffer become the value that would have been stored there."""

    def __init__(self, func: tir.Func, block: tir.Block, store: tir.Store) -> None:
        self.func, self.block, self.stored = func, block, store
        self.iters = {it.var: it.extent for it in block.iters}
        self.region = point(store.buffer, store.indices)

    def touches(self, block: tir.Block) -> bool:
        return any(r.buffer is self.stored.buffer for r in block.reads)

    def expr(self, expr: tir.Expr, ranges: Ranges) -> tir.Expr | None:
        if type(expr) is not tir.Load or expr.buffer is not self.stored.buffer:
            return None
        at = solved(self.iters, self.region, expr.indices, ranges.analyzer)
        if at is None:
            raise ScheduleError(
                S231,
                {"expected": "indices like `v`, `v + 1`, or the pair `v // 4`, `v % 4`"},
                program=self.func,
                marks={"block": self.block, "buffer": self.stored.buffer},
                hint="let the block write along its iterators, and read at computed indices",
            )
        return tidied(substitute(self.stored.value, at), ranges)
