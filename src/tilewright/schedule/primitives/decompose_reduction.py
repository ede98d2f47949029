"""Make the start value of a reduction a block of its own."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import require_around
from tilewright.schedule.nests import splice, vars_by_kind
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.reductions import init_nest
from tilewright.tensor import ir as tir
from tilewright.tensor.regions import block_regions
from tilewright.tensor.visit import replace_node

__all__ = ["decompose_reduction"]

S250 = Code("S250", "block `{block}` has no start value to take out")
S252 = Code("S252", "block `{block}` also reduces over loop `{outer}`, outside of loop `{loop}`")


@primitive
def decompose_reduction(func: tir.Func, block: tir.Block, loop: tir.For) -> Edit:
    """Put the start values into a block `C_init` before `loop`, over the spatial loops inside it.

    Before:  for i in range(m): for k in range(n): with init: C[i] = 0;  C[i] += A[i, k]
    After:   for i_init in range(m): C[i_init] = 0
             for i in range(m): for k in range(n): C[i] += A[i, k]              (loop = i)
    Requires: S250 the block has a start value; S251 the loop is around it; S252 no loop outside of
        it takes part in the reduction; S253 no loop inside drives spatial and reduce iterators;
        S254 spatial loops and the predicate do not depend on the reduction; S255 the block uses
        every loop inside
    Example: s.decompose_reduction("C", "k_0")
    """
    if block.init is None:
        hint = "it was taken out before, or the block does not reduce"
        raise ScheduleError(S250, program=func, marks={"block": block}, hint=hint)
    loops = require_around(func, block, loop)
    place = next(n for n, part in enumerate(loops) if part is loop)
    _, reduce = vars_by_kind(block)
    for outer in loops[:place]:
        if outer.var in reduce:
            marks = {"block": block, "loop": loop, "outer": outer}
            hint = f"take the start value out at `{outer.var.name}` or further out"
            raise ScheduleError(S252, program=func, marks=marks, hint=hint)
    start, name = init_nest(func, block, loops[place:])
    reads, writes = block_regions(block.iters, block.body)
    update = block.with_fields(init=None, reads=reads, writes=writes)
    return Edit(splice(func, loop, start, replace_node(loop, block, update)), (name,))
