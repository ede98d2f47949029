"""Reduction blocks: recognise `C[i] = fold(C[i], value)`, build the nest of its start values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.nests import copy_loops, vars_by_kind, wrap
from tilewright.tensor import ir as tir
from tilewright.tensor.build import make_block
from tilewright.tensor.visit import free_vars, substitute, walk

__all__ = ["S253", "Update", "init_nest", "update_of"]

S253 = Code("S253", "loop `{loop}` drives both kinds of iterators of block `{block}`")
S254 = Code("S254", "the start value of block `{block}` depends on a loop of its reduction")
S255 = Code("S255", "block `{block}` is repeated by loop `{loop}`, which it does not use")

_FOLDS: dict[type[tir.Expr], tir.Fold] = {
    tir.Add: tir.Fold.ADD,
    tir.Mul: tir.Fold.MUL,
    tir.Min: tir.Fold.MIN,
    tir.Max: tir.Fold.MAX,
}


@dataclass(frozen=True, slots=True)
class Update:
    """`buffer[indices] = fold(buffer[indices], value)`."""

    buffer: tir.Buffer
    indices: tuple[tir.Expr, ...]
    fold: tir.Fold
    value: tir.Expr


def update_of(block: tir.Block) -> Update | None:
    """The block's body as a fold into one element; None if it is something else."""
    store = block.body
    if type(store) is not tir.Store or type(store.value) not in _FOLDS:
        return None
    combined = store.value
    assert isinstance(combined, tir.Binary)
    own = tir.Load(store.buffer, store.indices)
    for element, value in ((combined.a, combined.b), (combined.b, combined.a)):
        if element == own and not _mentions(value, store.buffer):
            return Update(store.buffer, store.indices, _FOLDS[type(combined)], value)
    return None


def _mentions(value: tir.Expr, buffer: tir.Buffer) -> bool:
    return any(type(part) is tir.Load and part.buffer is buffer for part in walk(value))


def init_nest(func: tir.Func, block: tir.Block, inside: Sequence[tir.For]) -> tuple[tir.Stmt, str]:
    """The start values of `block` as a block of their own, and its name.

    It runs over copies of those loops in `inside` (the loops around the block, from the place where
    the nest will stand) that drive spatial iterators.
    """
    assert block.init is not None
    copied = _spatial_loops(func, block, inside)
    names = names_of(func)
    name = fresh(names, f"{block.name}_init")
    copies, moved = copy_loops(copied, [fresh(names, f"{p.var.name}_init", name) for p in copied])
    iters: list[tir.Iter] = []
    bindings: list[tir.Expr] = []
    renamed: dict[tir.Var, tir.Expr] = {}
    for it, binding in zip(block.iters, block.bindings, strict=True):
        if it.kind is tir.IterKind.SPATIAL:
            var = tir.Var(it.var.name)
            renamed[it.var] = var
            iters.append(tir.Iter(var, it.extent))
            bindings.append(substitute(binding, moved))
    body = substitute(block.init, renamed)
    predicate = substitute(block.predicate, moved)
    start = make_block(name, tuple(iters), tuple(bindings), body, predicate=predicate)
    return wrap(copies, start), name


def _spatial_loops(func: tir.Func, block: tir.Block, inside: Sequence[tir.For]) -> list[tir.For]:
    spatial, reduce = vars_by_kind(block)
    for part in inside:
        marks = {"block": block, "loop": part}
        if part.var in reduce and part.var in spatial:
            hint = "take the start value out before the loops are fused"
            raise ScheduleError(S253, program=func, marks=marks, hint=hint)
        if part.var not in reduce and part.var not in spatial and tir.int_value(part.extent) != 1:
            hint = "choose a loop inside the one that repeats the block"
            raise ScheduleError(S255, program=func, marks=marks, hint=hint)
    copied = [part for part in inside if part.var in spatial]
    left_out = {part.var for part in inside} - {part.var for part in copied}
    for needed in (block.predicate, *(part.extent for part in copied)):
        if not left_out.isdisjoint(free_vars(needed)):
            hint = "keep spatial loops and the predicate free of the loops of the reduction"
            raise ScheduleError(S254, program=func, marks={"block": block}, hint=hint)
    return copied
