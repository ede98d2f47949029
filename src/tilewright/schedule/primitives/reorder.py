"""Run nested loops in another order."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import S101, require_blocks, require_independent, require_several
from tilewright.schedule.nests import blocks_under, chain_from, vars_by_kind, wrap
from tilewright.schedule.primitive import Edit, primitive
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, replace_node

__all__ = ["reorder"]

S109 = Code("S109", "loops `{first}` and `{second}` are not in one chain")
S113 = Code("S113", "loop `{loop}` would repeat steps of the reduction of block `{block}`")


@primitive
def reorder(func: tir.Func, *loops: tir.For) -> Edit:
    """Put loops of one chain into the given order; loops between them keep their places.

    Before:  for i in range(m): for j in range(n): S(i, j)
    After:   for j in range(n): for i in range(m): S(i, j)
    Requires: S107 two or more loops; S109 they are in one chain with nothing between them;
        S101 none is parallel or vectorised; S111 they are around blocks; S106 a loop stays inside
        those that its extent depends on; S113 no unrelated loop moves inside a reduction
    Example: s.reorder("i_0", "j_0", "k", "i_1", "j_1")
    """
    require_several(func, "reorder", loops)
    for loop in loops:
        _require_plain(func, loop)
    chain = _chain_of(func, loops)
    wanted = {id(loop) for loop in loops}
    new_order = iter(loops)
    order = [next(new_order) if id(loop) in wanted else loop for loop in chain]
    for place, loop in enumerate(order):
        hint = "keep the loop inside the one that counts its tiles"
        require_independent(func, loop, order[place + 1 :], hint)
    require_blocks(func, chain[-1])
    _require_reductions_run_once(func, chain[-1], order)
    return Edit(replace_node(func, chain[0], wrap(order, chain[-1].body)))


def _require_plain(func: tir.Func, loop: tir.For) -> None:
    if loop.kind in (tir.LoopKind.SERIAL, tir.LoopKind.UNROLLED):
        return
    raise ScheduleError(
        S101,
        {"expected": "a serial or unrolled loop", "found": f"a loop that is {loop.kind.value}"},
        program=func,
        marks={"loop": loop},
        hint="reorder first, then make loops parallel or vectorised",
    )


def _chain_of(func: tir.Func, loops: tuple[tir.For, ...]) -> tuple[tir.For, ...]:
    """The chain from the outermost to the innermost of `loops`."""
    # Of loops in one chain, the outermost has the longest chain, and all others are in it.
    found = max((chain_from(loop).loops for loop in loops), key=len)
    place = {id(loop): n for n, loop in enumerate(found)}
    missing = [loop for loop in loops if id(loop) not in place]
    if not missing:
        return found[: max(place[id(loop)] for loop in loops) + 1]
    raise ScheduleError(
        S109,
        {"expected": "loops directly inside each other, with nothing else between them"},
        program=func,
        marks={"first": found[0], "second": missing[0]},
        hint="move other blocks out of the nest first, for example with `compute_at`",
    )


def _require_reductions_run_once(func: tir.Func, innermost: tir.For, order: list[tir.For]) -> None:
    """A loop that a block ignores repeats the block; inside the reduction it would count twice."""
    for block in blocks_under(innermost):
        spatial, reduce = vars_by_kind(block)
        if not reduce:
            continue
        reducing = False
        used = spatial | reduce | free_vars(block.predicate)
        for loop in order:
            if loop.var in reduce:
                reducing = True
            elif reducing and loop.var not in used and tir.int_value(loop.extent) != 1:
                facts = {"expected": "a loop that the block uses, inside its reduction"}
                hint = f"keep `{loop.var.name}` outside the loops of the reduction"
                marks = {"loop": loop, "block": block}
                raise ScheduleError(S113, facts, program=func, marks=marks, hint=hint)
