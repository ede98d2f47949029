"""Make two iterators of one iterator of a block, and two loops of its loop."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import require_sole_block
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.primitives.fuse_iters import ITERATORS, S430, Tidy, own_loops
from tilewright.tensor import ir as tir
from tilewright.tensor.build import make_block
from tilewright.tensor.visit import replace_node, substitute

__all__ = ["split_iter"]

S433 = Code("S433", "tiles of {size} do not divide iterator `{iterator}` of block `{block}`")


@primitive
def split_iter(func: tir.Func, block: tir.Block, iterator: str, size: int) -> Edit:
    """Let two iterators count through the values of one; indices are simplified with them.

    It brings out a dimension that the indices hide: the group `vo // 8` of a grouped convolution.
    The inverse of `fuse_iters`.

    Before:  for o in range(24): with block(vo = o): C[vo] = … A[vo // 8] …
    After:   for o_0 in range(3): for o_1 in range(8):
                 with block(vo_0 = o_0, vo_1 = o_1): C[vo_0 * 8 + vo_1] = … A[vo_0] …
    Requires: S430 the block has the iterator; S432 it is bound to a loop of its own; S101 the loop
        is serial; S260 no other block is in it; S433 the size divides the extent
    Example: s.split_iter("C", "vo", 8)
    """
    chosen = next((it for it in block.iters if it.var.name == iterator), None)
    marks = {"block": block}
    if chosen is None:
        known = ", ".join(it.var.name for it in block.iters)
        facts = {"expected": f"one of {known}", "found": iterator}
        raise ScheduleError(S430, facts, program=func, marks=marks, hint=ITERATORS)
    extent = tir.int_value(chosen.extent)
    if size < 1 or extent is None or extent % size:
        found = "a symbolic extent" if extent is None else f"an extent of {extent}"
        facts = {"iterator": iterator, "size": str(size), "found": found}
        hint = "choose a divisor, or make the extent a multiple with `pad_einsum` first"
        raise ScheduleError(S433, facts, program=func, marks=marks, hint=hint)
    (loop,) = own_loops(func, block, [chosen])
    require_sole_block(func, loop)
    names = names_of(func)
    outer = tir.Var(fresh(names, f"{loop.var.name}_0"))
    inner = tir.Var(fresh(names, f"{loop.var.name}_1", outer.name))
    parts = (
        tir.Iter(tir.Var(f"v{outer.name}"), tir.Const(extent // size), chosen.kind),
        tir.Iter(tir.Var(f"v{inner.name}"), tir.Const(size), chosen.kind),
    )
    iters: list[tir.Iter] = []
    bindings: list[tir.Expr] = []
    for it, binding in zip(block.iters, block.bindings, strict=True):
        iters += parts if it is chosen else (it,)
        bindings += (outer, inner) if it is chosen else (binding,)
    values = {chosen.var: parts[0].var * size + parts[1].var}
    tidy = Tidy(iters)
    made = make_block(
        block.name,
        tuple(iters),
        tuple(bindings),
        tidy(substitute(block.body, values)),
        None if block.init is None else tidy(substitute(block.init, values)),
        block.predicate,
    ).with_fields(notes=block.notes)
    inside = replace_node(loop.body, block, made)
    nest = tir.For(
        outer, parts[0].extent, tir.For(inner, parts[1].extent, inside), notes=loop.notes
    )
    return Edit(replace_node(func, loop, nest), (outer.name, inner.name))
