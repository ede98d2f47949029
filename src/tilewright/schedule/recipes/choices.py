"""Pairs of blocks that choose among values by the number of an iterator: small transforms.

    R[t, p, j, c] = p == 0 ? … : p == 1 ? … : …       six sums of six elements each
    V[p, q, t, c] = q == 0 ? … : q == 1 ? … : …       of R[t, p, 0…5, c]

The iterators that choose are unrolled, which leaves one value of each choice. Both blocks run for
one vector of the innermost dimension at a time: what the first one makes stays in registers and in
the first cache, and what neighbouring choices share is computed once.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.schedule.recipes.context import (
    Context,
    extent_of,
    iter_loop,
    lanes_of,
    parallelize,
    work_of,
)
from tilewright.schedule.recipes.contraction.roles import names_of
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, kind_of, loads_of
from tilewright.tensor.visit import find, free_vars

__all__ = ["choices_of", "schedule_choice", "schedule_choices"]

# An iterator that chooses has at most this many values.
_MOST = 8


def choices_of(block: tir.Block) -> dict[tir.Var, int]:
    """The iterators that choose a value, and how many values they choose among.

    `v == 3` or `v % 4 == 3` for all numbers in question; nothing else may choose.
    """
    if kind_of(block) is not Kind.ELEMENTWISE:
        return {}
    extents = {it.var: tir.int_value(it.extent) or _MOST + 1 for it in block.iters}
    found: dict[tir.Var, int] = {}
    for part in find(block.body, tir.Select):
        if not free_vars(part.cond) & extents.keys():
            continue  # for example a choice by the sign of a value
        period = _period(part.cond, extents)
        if period is None:
            return {}
        found[period[0]] = period[1]
    return found if all(count <= _MOST for count in found.values()) else {}


def _period(cond: tir.Expr, extents: dict[tir.Var, int]) -> tuple[tir.Var, int] | None:
    if not isinstance(cond, tir.Eq):
        return None
    if isinstance(cond.a, tir.Var) and cond.a in extents:
        return cond.a, extents[cond.a]
    if isinstance(cond.a, tir.FloorMod) and isinstance(cond.a.a, tir.Var):
        size = tir.int_value(cond.a.b)
        return None if size is None else (cond.a.a, size)
    return None


def schedule_choices(
    context: Context, first: str, second: str, epilogue: str | None = None
) -> None:
    """Run both blocks of a pair for one vector at a time, with every choice unrolled.

    What follows them element by element runs in loops: it may be long.
    """
    s = context.schedule
    cycles = work_of(context, first) + work_of(context, second)
    node, maker = s.block(second), s.block(first)
    around, vectors, inside = _unrolled_inside(
        context, second, {**_indexing(node, maker), **choices_of(node)}
    )
    made = names_of(s.compute_at(first, vectors))
    _finish(context, made, [loop for loop in made if _binds(context, first, loop)])
    if epilogue is not None:
        s.vectorize(names_of(s.reverse_compute_at(epilogue, vectors))[-1])
    _finish(context, inside, [])
    _share(context, around, cycles)


def schedule_choice(context: Context, block: str) -> None:
    """Run a block for one vector at a time, with its choices unrolled: they share their loads."""
    cycles = work_of(context, block)
    choices = choices_of(context.schedule.block(block))
    around, vectors, inside = _unrolled_inside(context, block, choices)
    _finish(context, inside, [])
    _share(context, [*around, vectors], cycles)


def _unrolled_inside(
    context: Context, block: str, unrolled: Mapping[tir.Var, int]
) -> tuple[list[str], str, list[str]]:
    """Loops around, the one over vectors, and inside of it those to unroll and that over lanes."""
    s = context.schedule
    node = s.block(block)
    *loops, last = (iter_loop(context, block, p) for p in range(len(node.iters)))
    around: list[str] = []
    inside: list[str] = []
    for loop, it in zip(loops, node.iters, strict=False):
        count = unrolled.get(it.var)
        if count is None:
            around.append(loop)
        elif tir.int_value(it.extent) == count:
            inside.append(loop)
        else:
            outer, inner = s.split(loop, count)
            around.append(str(outer))
            inside.append(str(inner))
    vectors, lane = map(str, s.split(last, lanes_of(context, block)))
    s.reorder(*around, vectors, *inside, lane)
    return around, vectors, [*inside, lane]


def _share(context: Context, around: list[str], cycles: float) -> None:
    """Let threads share the first loop that runs more than once."""
    shared = next((loop for loop in around if extent_of(context, loop) != 1), around[0])
    parallelize(context, shared, cycles)


def _indexing(node: tir.Block, maker: tir.Block) -> dict[tir.Var, int]:
    """The iterators by which a block reads what its maker has chosen, with their periods."""
    chosen, found = choices_of(maker), dict[tir.Var, int]()
    store = maker.body
    assert isinstance(store, tir.Store)
    for load in loads_of(node):
        if load.buffer is not store.buffer:
            continue
        for index, place in zip(load.indices, store.indices, strict=True):
            if place not in chosen:
                continue
            for var in free_vars(index):
                found[var] = chosen[place]  # type: ignore[index]
    return found


def _binds(context: Context, block: str, loop: str) -> bool:
    """Whether a loop drives an iterator that chooses."""
    s = context.schedule
    node, var = s.block(block), s.loop(loop).var
    chosen = choices_of(node)
    return any(
        it.var in chosen and var in free_vars(at)
        for it, at in zip(node.iters, node.bindings, strict=True)
    )


def _finish(context: Context, loops: list[str], last: list[str]) -> None:
    """Unroll loops, those that choose innermost, and vectorise the innermost one."""
    s = context.schedule
    *others, lane = loops
    order = [*(loop for loop in others if loop not in last), *last]
    if len(order) > 1 and order != others:
        s.reorder(*order)
    for loop in order:
        s.unroll(loop)
    s.vectorize(lane)
