"""Store a dimension once, instead of in overlapping tiles."""

from __future__ import annotations

from tilewright.errors import ScheduleError
from tilewright.schedule.accesses import Ranges, redirected, tidied
from tilewright.schedule.dataflow import Outline, Place, edited
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.primitives.layout_unfold import S309, own_loop
from tilewright.schedule.relayout import last_step, stored_as, with_change
from tilewright.tensor import ir as tir
from tilewright.tensor.build import make_block
from tilewright.tensor.layout import Unfold
from tilewright.tensor.visit import substitute

__all__ = ["layout_fold"]


@primitive
def layout_fold(func: tir.Func, buffer: tir.Buffer) -> Edit:
    """Undo the last `layout_unfold` of a buffer.

    Before:  A: f32[2, 6];   for i in range(8): for r in range(3): … A[i // 4, i % 4 + r] …
    After:   A: f32[10];     for i in range(8): for r in range(3): … A[i + r] …
    Requires: S302 the last layout step is an unfold; S309 the block that writes the copies still
        does so in two plain loops
    Example: s.layout_fold("A")
    """
    step = last_step(func, buffer, Unfold)
    assert isinstance(step, Unfold)
    new = stored_as(buffer, step.before(buffer.shape), buffer.layout[:-1])
    outline = Outline(func)
    for place in outline.writers(buffer):
        tiles, inside = _loops(outline, place, buffer, step)
        func = edited(func, (tiles, (_once(func, place, tiles, inside, new, step),)))

    def move(indices: tuple[tir.Expr, ...], ranges: Ranges) -> tuple[tir.Expr, ...]:
        tile, position = indices[step.dim : step.dim + 2]
        at = ranges.simplify(tile * step.stride + position)
        return (*indices[: step.dim], at, *indices[step.dim + 2 :])

    return Edit(with_change(func, redirected(buffer, new, move)))


def _loops(
    outline: Outline, place: Place, buffer: tir.Buffer, step: Unfold
) -> tuple[tir.For, tir.For]:
    """The writer's loops over tiles and positions, the second directly or further inside."""
    store = place.block.body
    if isinstance(store, tir.Store):
        tiles, inside = (own_loop(place, i) for i in store.indices[step.dim : step.dim + 2])
        if tiles is not None and inside is not None and tiles in place.loops_to(inside):
            return tiles, inside
    raise ScheduleError(
        S309,
        {"expected": "plain loops over tiles and positions", "found": "other loops"},
        program=outline.func,
        marks={"block": place.block, "buffer": buffer},
        hint="undo the unfolding before the writer is scheduled",
    )


def _once(
    func: tir.Func,
    place: Place,
    tiles: tir.For,
    inside: tir.For,
    new: tir.Buffer,
    step: Unfold,
) -> tir.For:
    """The writer with one loop over the dimension instead of two."""
    block = place.block
    store = block.body
    assert isinstance(store, tir.Store)
    tile, position = store.indices[step.dim : step.dim + 2]
    var = tir.Var(_stem(tile), tile.dtype)
    at = step.index((*store.indices[: step.dim], var))[step.dim :]
    values = dict(zip((tile, position), at, strict=True))
    iters: list[tir.Iter] = []
    bindings: list[tir.Expr] = []
    loop = tir.Var(fresh(names_of(func), _stem(tiles.var)))
    for it, binding in zip(block.iters, block.bindings, strict=True):
        if it.var is tile:
            iters.append(tir.Iter(var, tir.Const(step.extent)))
            bindings.append(loop)
        elif it.var is not position:
            iters.append(it)
            bindings.append(binding)
    ranges = Ranges({it.var: it.extent for it in iters})
    value = tidied(substitute(store.value, values), ranges)  # type: ignore[arg-type]
    where = (*store.indices[: step.dim], var, *store.indices[step.dim + 2 :])
    body = tir.Store(new, where, value)
    made = make_block(block.name, tuple(iters), tuple(bindings), body, None, block.predicate)
    made = made.with_fields(notes=block.notes)
    inner = edited(tir.Func("", (), inside.body), (block, (made,))).body
    outer = edited(tir.Func("", (), tiles.body), (inside, (inner,))).body
    return tir.For(loop, tir.Const(step.extent), outer, tiles.kind, tiles.notes)


def _stem(var: tir.Expr) -> str:
    assert isinstance(var, tir.Var)
    return var.name.removesuffix("_0") or var.name
