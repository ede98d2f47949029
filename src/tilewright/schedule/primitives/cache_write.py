"""Let a block work on a buffer of its own, and copy the result out afterwards."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import change_block, redirected
from tilewright.schedule.copies import box_nest, iters_over
from tilewright.schedule.dataflow import Outline, Place, edited, require_scope
from tilewright.schedule.domains import solved
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.nests import allocate
from tilewright.schedule.primitive import Edit, primitive
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer

__all__ = ["cache_write"]

S223 = Code("S223", "block `{block}` writes more than one buffer")
S224 = Code("S224", "block `{block}` does not write the whole of `{buffer}`")


@primitive
def cache_write(func: tir.Func, block: tir.Block, scope: str = "register") -> Edit:
    """Compute into a new buffer `C_write`, and copy it to `C` after the nest in a block `C_write`.

    Start value and updates of a reduction both move to the new buffer, and so does everything else
    that uses the buffer up to the end of the nest.

    Before:  for i in range(64): for k in range(8): C[i] += A[i, k]
    After:   for i in range(64): for k in range(8): C_write[i] += A[i, k]
             for C_write_0 in range(64): C[C_write_0] = C_write[C_write_0]
    Requires: S201 the block is not inside another block; S223 it writes one buffer; S224 it writes
        the whole of it; S215 the scope exists
    Example: s.cache_write("C", "register")
    """
    outline = Outline(func)
    place = outline.place(block)
    kept = require_scope(func, scope)
    buffer = _written(outline, place)
    names = names_of(func)
    name = fresh(names, f"{buffer.name}_write")
    work = tir.Buffer(name, buffer.shape, buffer.dtype, kept)
    nest = box_nest(
        names, name, iters_over(buffer.shape), lambda at: tir.Store(buffer, at, tir.Load(work, at))
    )
    last = outline.writers(buffer)[-1]
    end = max(p.number for p in outline.inside(outline.top(last)))
    moved = [p for p in outline.places[: end + 1] if p.reads(buffer) or p.writes(buffer)]
    change = redirected(buffer, work)
    changes = [(p.block, (change_block(p.block, change),)) for p in moved]
    top = outline.top(last)
    inside = [c for c, p in zip(changes, moved, strict=True) if p.is_inside(top)]
    outside = [c for c in changes if not any(c is i for i in inside)]
    after = edited(tir.Func("", (), top), *inside).body
    return Edit(allocate(edited(func, *outside, (top, (after, nest))), work), (name,))


def _written(outline: Outline, place: Place) -> tir.Buffer:
    """The buffer that the block writes; S223 and S224 unless it is one, and whole."""
    buffers = list(dict.fromkeys(r.buffer for r in place.block.writes))
    if len(buffers) != 1:
        facts = {"it writes": ", ".join(f"`{b.name}`" for b in buffers) or "nothing"}
        marks, hint = {"block": place.block}, "write a block for each buffer"
        raise ScheduleError(S223, facts, program=outline.func, marks=marks, hint=hint)
    buffer = buffers[0]
    if not any(_fills(writer.block, buffer) for writer in outline.writers(buffer)):
        raise ScheduleError(
            S224,
            {"expected": "a block that writes every element"},
            program=outline.func,
            marks={"block": place.block, "buffer": buffer},
            hint="let the block compute every element: the copy overwrites all of them",
        )
    return buffer


def _fills(block: tir.Block, buffer: tir.Buffer) -> bool:
    """Does the block write every element? Each must tell the iteration that writes it."""
    iters = {it.var: it.extent for it in block.iters if it.kind is tir.IterKind.SPATIAL}
    for region in block.writes:
        starts = tuple([part.start for part in region.ranges])
        if region.buffer is not buffer:
            continue
        if starts == tuple(iters) and tuple(iters.values()) == buffer.shape:
            return True
        at = tuple([tir.Var(f"at{d}") for d in range(len(starts))])
        analyzer = Analyzer(dict(zip(at, buffer.shape, strict=True)))
        found = solved(iters, region, at, analyzer)
        if found is not None and all(
            analyzer.prove((value >= 0) & (value < iters[var])) for var, value in found.items()
        ):
            return True
    return False
