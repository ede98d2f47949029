"""Give a block its own copy of a buffer that it reads."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import change_block, redirected
from tilewright.schedule.copies import box_nest, iters_over
from tilewright.schedule.dataflow import Outline, Place, edited, require_scope
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.nests import allocate
from tilewright.schedule.primitive import Edit, primitive
from tilewright.tensor import ir as tir

__all__ = ["cache_read"]

S220 = Code("S220", "block `{block}` does not read `{buffer}`")
S221 = Code("S221", "block `{block}` writes `{buffer}` itself")
S222 = Code("S222", "`{other}` writes `{buffer}` in a loop that block `{block}` shares")


@primitive
def cache_read(func: tir.Func, block: tir.Block, buffer: tir.Buffer, scope: str = "memory") -> Edit:
    """Copy a buffer in front of the nest that reads it, and let the block read the copy.

    The copy is a block `A_read` over the whole of a new buffer `A_read`; `compute_at` moves it to
    where it is needed, layout primitives arrange it, and lowering keeps only the part that is live.

    Before:  for i in range(64): B[i] = f(A[i])
    After:   for A_read_0 in range(64): A_read[A_read_0] = A[A_read_0]
             for i in range(64): B[i] = f(A_read[i])
    Requires: S201 the block is not inside another block; S220 it reads the buffer; S221 it does not
        write it; S222 the buffer is complete before the nest begins; S215 the scope exists
    Example: s.cache_read("C", "A")
    """
    outline = Outline(func)
    place = outline.place(block)
    kept = require_scope(func, scope)
    require_reader(outline, place, buffer)
    names = names_of(func)
    name = fresh(names, f"{buffer.name}_read")
    copy = tir.Buffer(name, buffer.shape, buffer.dtype, kept)
    nest = box_nest(
        names, name, iters_over(buffer.shape), lambda at: tir.Store(copy, at, tir.Load(buffer, at))
    )
    top = outline.top(place)
    reader = change_block(block, redirected(buffer, copy))
    after = edited(tir.Func("", (), top), (block, (reader,))).body
    return Edit(allocate(edited(func, (top, (nest, after))), copy), (name,))


def require_reader(outline: Outline, place: Place, buffer: tir.Buffer) -> None:
    """S220, S221, S222: a copy in front of the block's nest holds what the block reads."""
    block = place.block
    marks = {"block": block, "buffer": buffer}
    if place.writes(buffer):
        hint = f'a result is kept elsewhere by `cache_write("{block.name}")`'
        raise ScheduleError(S221, program=outline.func, marks=marks, hint=hint)
    if not place.reads(buffer):
        known = ", ".join(dict.fromkeys(f"`{r.buffer.name}`" for r in block.reads)) or "nothing"
        hint = "name one of the buffers that it reads"
        raise ScheduleError(S220, {"it reads": known}, program=outline.func, marks=marks, hint=hint)
    top = outline.top(place)
    for writer in outline.writers(buffer):
        if writer.is_inside(top):
            hint = "use this step before `compute_at` or `reverse_compute_at`"
            facts = {"other": writer.block.name}
            marks = {**marks, "writer": writer.block}
            raise ScheduleError(S222, facts, program=outline.func, marks=marks, hint=hint)
