"""Tensor instructions in a product: which ones could compute its steps, and the layout they want.

An instruction takes `steps` products of a sum at once. So the elements of a row of the left operand
must lie side by side along the last loop of the reduction, and panels of the right one hold `steps`
elements of each column together:

    for k: sums[i, j] += left[i, k] · right[k, j]
        →  for k0: for lanes of columns: sums[i, lanes] += Σ left[i, k0·4 + r] · panel[k0, lanes, r]
"""

from __future__ import annotations

from tilewright.errors import ScheduleError
from tilewright.intrin.products import ProductInstruction, product_instructions
from tilewright.schedule.primitives.tensorize import S420
from tilewright.schedule.recipes.context import Context, extent_of, iter_loop
from tilewright.schedule.recipes.contraction.roles import Loops, column_dimension
from tilewright.schedule.recipes.contraction.space import ContractionPoint, ContractionShape
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Contraction
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["instruction_of", "instructions_of", "pack_steps"]


def instructions_of(
    context: Context, roles: Contraction, loops: Loops
) -> tuple[ProductInstruction, ...]:
    """Those of the target whose operands the product has, or can have by a layout of a constant."""
    extent = extent_of(context, loops.reduce[-1])
    if (
        extent is None
        or roles.right.buffer.name not in context.constants
        or column_dimension(roles) is None
    ):
        return ()
    fitting = product_instructions(roles.block.body, roles.left, roles.right, context.target)
    return tuple(
        one
        for one in fitting
        if one.rows == 1
        and extent % one.steps == 0
        and _has_steps(context, roles, loops, one.steps)
    )


def instruction_of(
    context: Context, block: str, shape: ContractionShape, point: ContractionPoint
) -> ProductInstruction | None:
    """The instruction of a point, if it has one; S420 for a point of another machine."""
    if not point.instruction:
        return None
    if point.instruction > len(shape.instructions):
        names = [instruction.name for instruction in shape.instructions]
        facts = {"intrinsic": f"number {point.instruction}", "known": names}
        hint = "a point belongs to the machine that it was made for"
        s = context.schedule
        raise ScheduleError(S420, facts, program=s.func, marks={"block": s.block(block)}, hint=hint)
    return shape.instructions[point.instruction - 1]


def _has_steps(context: Context, roles: Contraction, loops: Loops, steps: int) -> bool:
    """Whether so many steps of the walk are neighbours in the left operand, wherever they begin."""
    name = roles.block.name
    last = next(p for p in roles.reduce if iter_loop(context, name, p) == loops.reduce[-1])
    walked = roles.block.iters[last]
    extent = tir.int_value(walked.extent)
    if extent is None:
        return False
    begin, step = tir.Var("begin"), tir.Var("step")
    extents = {it.var: it.extent for it in roles.block.iters if it is not walked}
    extents |= {begin: tir.Const(extent // steps), step: tir.Const(steps)}
    simplify = Analyzer(extents).simplify
    place = {walked.var: begin * steps + step}
    *outer, inner = (simplify(substitute(index, place)) for index in roles.left.indices)
    if any(step in free_vars(index) for index in outer):
        return False
    rest = simplify(inner - step)
    return step not in free_vars(rest)


def pack_steps(context: Context, buffer: str, steps: int) -> None:
    """In panels of a constant, let each column hold its elements of so many steps together.

    The walk is the last dimension but one, before the columns of a panel.
    """
    s = context.schedule
    walk = len(s.buffer(buffer).shape) - 2
    s.layout_split(buffer, dim=walk, factor=steps)
    s.layout_reorder(buffer, order=[*range(walk + 1), walk + 2, walk + 1])
    s.layout_fuse(buffer, dim=walk + 1, count=2)
