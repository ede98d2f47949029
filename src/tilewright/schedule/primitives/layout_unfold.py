"""Store overlapping tiles, so that each window of a sliding access lies in one piece."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import Ranges, redirected, tidied
from tilewright.schedule.dataflow import Outline, Place, edited
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.relayout import require_dim, stored_as, with_change
from tilewright.tensor import ir as tir
from tilewright.tensor.build import make_block
from tilewright.tensor.layout import Unfold
from tilewright.tensor.unfolded import window_in_tile
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["layout_unfold", "own_loop", "require_copies"]

S308 = Code(
    "S308", "dimension {dim} of `{buffer}` cannot be stored in tiles of {tile} every {stride}"
)
S309 = Code("S309", "block `{block}` cannot write every copy of an element of `{buffer}`")


@primitive
def layout_unfold(func: tir.Func, buffer: tir.Buffer, dim: int, tile: int, stride: int) -> Edit:
    """Store a dimension as tiles of `tile` elements, one every `stride`; overlaps are stored twice.

    A window `A[i * V + r]` is read at `[i // h, (i % h) * V + r]` with `h = stride / V` wherever it
    fits into one tile. A block that computes the buffer writes every copy; a buffer with another
    kind of writer gets a copy to unfold by `cache_read`.

    Before:  A: f32[10];      for i in range(8): for r in range(3): … A[i + r] …
    After:   A: f32[2, 6];    for i in range(8): for r in range(3): … A[i // 4, i % 4 + r] …
    Requires: S301 the dimension exists; S308 the size is known, the tile fits into it and the
        stride into the tile; S309 the buffer is an input, or one block with a plain loop over the
        dimension computes it element by element
    Example: s.layout_unfold("A", 0, 6, 4)
    """
    dim = require_dim(func, buffer, dim)
    extent = tir.int_value(buffer.shape[dim])
    if extent is None or not 0 < stride <= tile <= extent:
        facts = {"dim": dim, "tile": tile, "stride": stride, "size": extent or "symbolic"}
        facts["expected"] = "0 < stride <= tile <= size, and a size that is known"
        hint = "a window of w elements wants tiles of n + w - 1 every n"
        raise ScheduleError(S308, facts, program=func, marks={"buffer": buffer}, hint=hint)
    step = Unfold(dim, tile, stride, extent)
    new = stored_as(buffer, step.shape(buffer.shape), (*buffer.layout, step))
    outline = Outline(func)
    writers = outline.writers(buffer)
    if writers:
        place, loop = require_copies(outline, writers, buffer, dim)
        func = edited(func, (loop, (_copying(func, place, loop, new, step),)))
    return Edit(
        with_change(func, redirected(buffer, new, lambda at, ranges: _at(at, step, ranges)))
    )


def _at(indices: tuple[tir.Expr, ...], step: Unfold, ranges: Ranges) -> tuple[tir.Expr, ...]:
    """Where a reader finds its element: as a window if it is one, else in any tile that has it."""
    at = indices[step.dim]
    window = window_in_tile(at, step, ranges.analyzer)
    tile, inside = window or step.index(indices)[step.dim : step.dim + 2]
    found = ranges.simplify(tile), ranges.simplify(inside)
    return (*indices[: step.dim], *found, *indices[step.dim + 1 :])


def require_copies(
    outline: Outline, writers: list[Place], buffer: tir.Buffer, dim: int
) -> tuple[Place, tir.For]:
    """The one plain writer of a buffer, and its loop over the dimension (S309)."""
    place = writers[0]
    found = _reason(writers, dim)
    if found is None:
        store = place.block.body
        assert isinstance(store, tir.Store)
        return place, own_loop(place, store.indices[dim])  # type: ignore[return-value]
    raise ScheduleError(
        S309,
        {"expected": "one block that computes each element in plain loops", "found": found},
        program=outline.func,
        marks={"block": place.block, "buffer": buffer},
        hint=f'unfold a copy instead: `cache_read(…, "{buffer.name}")`, then `layout_unfold` on it',
    )


def _reason(writers: list[Place], dim: int) -> str | None:
    """Why the writers cannot store copies; None if they can."""
    place = writers[0]
    block = place.block
    if len(writers) > 1:
        return "several blocks that write it"
    if block.init is not None or any(it.kind is tir.IterKind.REDUCE for it in block.iters):
        return "a reduction"
    if not isinstance(block.body, tir.Store):
        return "a block with loops inside"
    at = block.body.indices[dim]
    others = [i for d, i in enumerate(block.body.indices) if d != dim]
    if not any(at is it.var for it in block.iters) or any(at in free_vars(i) for i in others):
        return "a block that does not write along the dimension by an iterator of its own"
    return None if own_loop(place, at) is not None else "loops that are already scheduled"


def own_loop(place: Place, iterator: tir.Expr) -> tir.For | None:
    """The serial loop that an iterator of a block is bound to, if it serves nothing else."""
    bound = place.values.get(iterator) if isinstance(iterator, tir.Var) else None
    others = [b for v, b in place.values.items() if v is not iterator] + [place.block.predicate]
    loops = place.loops
    chain: tuple[tir.Stmt, ...] = (*loops, place.block)
    for n, loop in enumerate(loops):
        if loop.var is bound:
            used = any(bound in free_vars(part) for part in others)
            used |= any(bound in free_vars(inner.extent) for inner in loops[n + 1 :])
            alone = all(
                part.body is below for part, below in zip(loops[n:], chain[n + 1 :], strict=True)
            )
            plain = loop.kind is tir.LoopKind.SERIAL
            return loop if plain and alone and not used else None
    return None


def _copying(func: tir.Func, place: Place, loop: tir.For, new: tir.Buffer, step: Unfold) -> tir.For:
    """The loop over the dimension as two, over tiles and positions, with the writer inside."""
    names = names_of(func)
    block = place.block
    store = block.body
    assert isinstance(store, tir.Store)
    old = store.indices[step.dim]
    assert isinstance(old, tir.Var)
    tile, inside = tir.Var(f"{old.name}_0"), tir.Var(f"{old.name}_1")
    at = tile * step.stride + inside
    zeros = (step.tiles - 1) * step.stride + step.tile > step.extent
    value = store.value
    if zeros:
        value = substitute(value, {old: tir.minimum(at, step.extent - 1)})
        value = tir.Select(at < step.extent, value, tir.const(0, new.dtype))
    else:
        value = substitute(value, {old: at})
    extents = ((tile, step.tiles), (inside, step.tile))
    iters = _replaced(block, old, tuple([tir.Iter(var, tir.Const(n)) for var, n in extents]))
    ranges = Ranges({it.var: it.extent for it in iters})
    where = (*store.indices[: step.dim], tile, inside, *store.indices[step.dim + 1 :])
    first = fresh(names, f"{loop.var.name}_0")
    outer, inner = tir.Var(first), tir.Var(fresh(names, f"{loop.var.name}_1", first))
    place_of = next(n for n, it in enumerate(block.iters) if it.var is old)
    bindings = (*block.bindings[:place_of], outer, inner, *block.bindings[place_of + 1 :])
    made = make_block(
        block.name,
        iters,
        bindings,
        tir.Store(new, where, tidied(value, ranges)),
        None,
        block.predicate,
    ).with_fields(notes=block.notes)

    body = edited(tir.Func("", (), loop.body), (block, (made,))).body
    body = tir.For(inner, tir.Const(step.tile), body)
    return tir.For(outer, tir.Const(step.tiles), body, loop.kind, loop.notes)


def _replaced(block: tir.Block, old: tir.Var, new: tuple[tir.Iter, ...]) -> tuple[tir.Iter, ...]:
    return tuple([n for it in block.iters for n in (new if it.var is old else (it,))])
