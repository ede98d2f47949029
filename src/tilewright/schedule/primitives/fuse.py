"""Make one loop of several that are directly nested."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import require_independent, require_serial, require_several
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.nests import loops_around
from tilewright.schedule.primitive import Edit, primitive
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import replace_node, substitute

__all__ = ["digits", "fuse"]

S105 = Code("S105", "loop `{inner}` is not the whole body of loop `{outer}`")


@primitive
def fuse(func: tir.Func, *loops: tir.For) -> Edit:
    """Run directly nested loops, given from the outside in, as one loop called `i_j`.

    Before:  for i in range(m): for j in range(n): S(i, j)
    After:   for f in range(m * n): S(f // n, f % n)
    Requires: S107 two or more loops; S101 all are serial; S105 each is the whole body of the one
        before; S106 no extent but the first depends on another loop
    Example: s.fuse("i", "j")
    """
    require_several(func, "fuse", loops)
    require_serial(func, *loops)
    for outer, inner in pairwise(loops):
        _require_whole_body(func, outer, inner)
    around = (*loops_around(func, loops[0]), *loops)
    for inner in loops[1:]:
        hint = "tiles of several sizes cannot be fused; fuse before the loop is split"
        require_independent(func, inner, around, hint)
    var = tir.Var(fresh(names_of(func), "_".join(loop.var.name for loop in loops)))
    extent, values = digits([(loop.var, loop.extent) for loop in loops], var)
    body = substitute(loops[-1].body, values)
    return Edit(replace_node(func, loops[0], tir.For(var, extent, body)), (var.name,))


def _require_whole_body(func: tir.Func, outer: tir.For, inner: tir.For) -> None:
    if outer.body is inner:
        return
    found = "a block"
    if type(outer.body) is tir.For:
        found = f"loop `{outer.body.var.name}`"
    elif type(outer.body) is tir.Seq:
        found = f"{len(outer.body.body)} parts"
    raise ScheduleError(
        S105,
        {
            "expected": "loops directly inside each other, outermost first",
            "found": f"{found} directly inside `{outer.var.name}`",
        },
        program=func,
        marks={"outer": outer, "inner": inner},
        hint="give the loops from the outside in, with `reorder` first where they lie apart",
    )


def digits(
    parts: Sequence[tuple[tir.Var, tir.Expr]], var: tir.Var
) -> tuple[tir.Expr, dict[tir.Var, tir.Expr]]:
    """The product of the extents, and each variable (outermost first) as a digit of `var`."""
    values: dict[tir.Var, tir.Expr] = {
        part: tir.Const(0) for part, extent in parts if tir.int_value(extent) == 1
    }
    real = [pair for pair in parts if pair[0] not in values] or [parts[0]]
    weight: tir.Expr = tir.Const(1)
    for part, extent in reversed(real):
        digit = var // weight
        values[part] = digit if part is real[0][0] else digit % extent
        weight = extent * weight if weight != tir.Const(1) else extent
    return weight, values
