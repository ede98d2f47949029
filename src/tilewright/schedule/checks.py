"""Checks shared by several primitives. Each raises a `ScheduleError` that marks the place."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.nests import blocks_under, is_bounded, loops_around, vars_by_kind
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, walk_stmts

__all__ = [
    "require_around",
    "require_blocks",
    "require_bounded",
    "require_independent",
    "require_several",
    "require_sole_block",
    "require_serial",
    "require_spatial",
]

S101 = Code("S101", "loop `{loop}` is not serial")
S106 = Code("S106", "the extent of loop `{inner}` depends on loop `{outer}`")
S107 = Code("S107", "`{primitive}` needs at least two different loops")
S108 = Code("S108", "loop `{loop}` carries the reduction of block `{block}`")
S110 = Code("S110", "the extent of loop `{loop}` is not known when the program is compiled")
S111 = Code("S111", "loop `{loop}` lies in the body of block `{block}`, not around blocks")
S251 = Code("S251", "loop `{loop}` is not around block `{block}`")
S260 = Code("S260", "block `{block}` is not alone in loop `{loop}`")


def require_serial(func: tir.Func, *loops: tir.For) -> None:
    """The loops must not have been made parallel, vectorised or unrolled before."""
    for loop in loops:
        if loop.kind is tir.LoopKind.SERIAL:
            continue
        raise ScheduleError(
            S101,
            {"expected": "a serial loop", "found": f"a loop that is {loop.kind.value}"},
            program=func,
            marks={"loop": loop},
            hint="apply the other steps before the one that changes how the loop runs",
        )


def require_several(func: tir.Func, primitive: str, loops: Sequence[tir.For]) -> None:
    """At least two loops, none of them twice."""
    if len(loops) >= 2 and len({id(loop) for loop in loops}) == len(loops):
        return
    found = ", ".join(loop.var.name for loop in loops) or "none"
    facts = {"primitive": primitive, "expected": "two or more loops, each once", "found": found}
    raise ScheduleError(S107, facts, program=func, hint="name every loop once, as printed")


def require_independent(
    func: tir.Func, inner: tir.For, outer: Sequence[tir.For], hint: str
) -> None:
    """The extent of `inner` must not mention the variable of any loop in `outer`."""
    if type(inner.extent) is tir.Const:
        return
    used = free_vars(inner.extent)
    for loop in outer:
        if loop.var in used:
            facts = {"found": f"an extent of the tiles that `{loop.var.name}` counts"}
            marks = {"inner": inner, "outer": loop}
            raise ScheduleError(S106, facts, program=func, marks=marks, hint=hint)


def require_bounded(func: tir.Func, loop: tir.For) -> None:
    """The extent must be a constant, or the size of a tile: constant once the cover is cut."""
    if is_bounded(loop.extent):
        return
    raise ScheduleError(
        S110,
        {"expected": "a constant or a tile size", "found": "an extent that depends on a size"},
        program=func,
        marks={"loop": loop},
        hint="split the loop by a constant tile first and use the inner loop",
    )


def require_blocks(func: tir.Func, loop: tir.For) -> None:
    """Everything inside the loop must be blocks: the body of a block is not scheduled."""
    if not _has_bare_store(loop.body):
        return
    owner = next((b for b in walk_stmts(func) if type(b) is tir.Block and _encloses(b, loop)), None)
    raise ScheduleError(
        S111,
        {"expected": "a loop whose leaves are blocks"},
        program=func,
        marks={"loop": loop, "block": owner or loop},
        hint="schedule the loops around the block instead",
    )


def _has_bare_store(stmt: tir.Stmt | None) -> bool:
    match stmt:
        case tir.For() | tir.Alloc():
            return _has_bare_store(stmt.body)
        case tir.Seq():
            return any(_has_bare_store(part) for part in stmt.body)
        case tir.If():
            return _has_bare_store(stmt.then) or _has_bare_store(stmt.otherwise)
    return type(stmt) is tir.Store


def _encloses(block: tir.Block, loop: tir.For) -> bool:
    return any(part is loop for part in walk_stmts(block))


def require_spatial(func: tir.Func, loop: tir.For, hint: str) -> None:
    """No block inside may reduce over the loop."""
    for block in blocks_under(loop):
        if loop.var in vars_by_kind(block)[1]:
            facts = {"expected": "a loop of spatial iterators only"}
            marks = {"loop": loop, "block": block}
            raise ScheduleError(S108, facts, program=func, marks=marks, hint=hint)


def require_around(func: tir.Func, block: tir.Block, loop: tir.For) -> tuple[tir.For, ...]:
    """The loops around `block`, among which `loop` must be."""
    loops = loops_around(func, block)
    if any(part is loop for part in loops):
        return loops
    found = ", ".join(part.var.name for part in loops) or "none"
    facts = {"loops around the block": found}
    marks = {"loop": loop, "block": block}
    raise ScheduleError(S251, facts, program=func, marks=marks, hint="name one of these loops")


def require_sole_block(func: tir.Func, loop: tir.For) -> tir.Block:
    """The one block inside `loop`."""
    found = list(blocks_under(loop))
    if len(found) == 1:
        return found[0]
    facts = {"blocks in the loop": ", ".join(b.name for b in found) or "none"}
    marks = {"loop": loop, "block": found[0] if found else loop}
    hint = "move the other blocks away first, for example with `reverse_compute_at`"
    raise ScheduleError(S260, facts, program=func, marks=marks, hint=hint)
