"""Size expressions, evaluated in Python: what `native/expression.c` does, without limits of width.

Used where a message or a table needs a size; the native code computes its own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from tilewright.runtime.program import SizeExpr, SizeOp

__all__ = ["BINARY", "compared", "constant", "depth_of", "evaluate", "extents", "taken_by"]

BINARY: dict[SizeOp, Callable[[int, int], int]] = {
    SizeOp.ADD: operator.add,
    SizeOp.SUB: operator.sub,
    SizeOp.MUL: operator.mul,
    SizeOp.FLOORDIV: operator.floordiv,
    SizeOp.MOD: operator.mod,
    SizeOp.MIN: min,
    SizeOp.MAX: max,
    SizeOp.EQ: operator.eq,
    SizeOp.NE: operator.ne,
    SizeOp.LT: operator.lt,
    SizeOp.LE: operator.le,
    SizeOp.AND: lambda a, b: a != 0 and b != 0,
    SizeOp.OR: lambda a, b: a != 0 or b != 0,
}


def taken_by(op: SizeOp) -> int:
    """How many values an operation takes from the stack; it leaves one."""
    if op in (SizeOp.CONST, SizeOp.SIZE):
        return 0
    return 1 if op is SizeOp.NOT else 3 if op is SizeOp.SELECT else 2


def depth_of(expression: SizeExpr) -> int:
    """How many values an expression keeps at once."""
    depth = deepest = 0
    for op, _ in expression:
        depth += 1 - taken_by(op)
        deepest = max(deepest, depth)
    return deepest


def constant(value: int) -> SizeExpr:
    """The expression of a number."""
    return ((SizeOp.CONST, value),)


def evaluate(expression: SizeExpr, sizes: Sequence[int]) -> int:
    """The value for these sizes; raises `ZeroDivisionError`."""
    stack: list[int] = []
    for op, operand in expression:
        if op is SizeOp.CONST:
            stack.append(operand)
        elif op is SizeOp.SIZE:
            stack.append(sizes[operand])
        elif op is SizeOp.NOT:
            stack.append(int(stack.pop() == 0))
        elif op is SizeOp.SELECT:
            otherwise, then, condition = stack.pop(), stack.pop(), stack.pop()
            stack.append(then if condition else otherwise)
        else:
            right = stack.pop()
            stack.append(int(BINARY[op](stack.pop(), right)))
    return stack[-1]


def compared(expression: SizeExpr | None) -> tuple[SizeExpr, SizeExpr] | None:
    """Both sides of a check that they are equal, one divided by that; None for other sizes."""
    if not expression or [op for op, _ in expression[-2:]] != [SizeOp.EQ, SizeOp.FLOORDIV]:
        return None
    sides, start, wanted = expression[1:-2], len(expression) - 3, 1
    while wanted and start:  # the second side ends here; back to where it begins
        start -= 1
        wanted += taken_by(sides[start][0]) - 1
    return sides[:start], sides[start:]


def extents(dims: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape of a port: a dimension is a number, or that of a size as -1 - k."""
    return tuple(d if d >= 0 else sizes[-1 - d] for d in dims)
