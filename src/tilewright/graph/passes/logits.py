"""From the argument of a softmax back to a product: what is done to scores on the way.

Scaling, masks that are added or selected, a cap by tanh, conversions and reshapes are taken off
one by one, from the outside in:

    softmax(select(m, tanh(q·k · 0.01) · 50 + n, -∞))   →   q·k, scale 0.5, cap 50, masks n and m
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

from tilewright.graph.ir import Node, Shape, Value
from tilewright.graph.ops import Contract, Map, Reshape, argument, computed_as
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import dims_equal, fixed, same_shape
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["Logits", "find_logits", "literal_body", "unscaled"]

NEVER = -1e30
"""A score below which nothing is left after a softmax, whatever was added to it."""


@dataclass
class Logits:
    """Scores, scaled, capped, masked; each mask with the shape of the scores where it is added."""

    scores: Node
    scale: float = 1.0
    softcap: float | None = None
    masks: list[tuple[Value, Shape]] = field(default_factory=list)


def find_logits(b: Rewriter, value: Value, depth: int = 10) -> Logits | None:
    """The product that a value comes from; None if anything else is done to it."""
    node = b.producer(value)
    if node is None or depth == 0:
        return None
    match node.op:
        case Contract():
            return Logits(node)
        case Reshape():
            return find_logits(b, node.inputs[0], depth - 1)
        case Map():
            for number, source in enumerate(node.inputs):
                if not same_shape(source.shape, value.shape):
                    continue
                found = find_logits(b, source, depth - 1)
                main = argument(number, computed_as(source.dtype))
                if found is not None and _apply(b, found, node, main, value.shape):
                    return found
    return None


def _apply(b: Rewriter, logits: Logits, node: Node, main: tir.Var, shape: Shape) -> bool:
    """Add to `logits` what a map does to them; False if that has no place there."""
    steps = _steps(literal_body(b, node, keep=main), main)
    if steps is None:
        return False
    for step in steps:
        match step:
            case float():
                if not _scale(b, logits, step):
                    return False
            case None:
                if logits.softcap is not None or logits.masks:
                    return False
                logits.softcap = 1.0
            case _:
                logits.masks.append((_as_value(b, node, step), shape))
    return True


def _scale(b: Rewriter, logits: Logits, factor: float) -> bool:
    """Before the cap it is the scale; behind it, the cap itself. Masks are scaled too."""
    if factor <= 0:
        return False
    if logits.softcap is None:
        logits.scale *= factor
    else:
        logits.scale *= factor
        logits.softcap *= factor
    logits.masks = [(_scaled(b, m, factor), s) for m, s in logits.masks]
    return True


def _scaled(b: Rewriter, mask: Value, factor: float) -> Value:
    return mask if mask.dtype.is_bool else b.map(lambda v: v * factor, mask)


Step = float | tir.Expr | None
"""A factor, what is added, or (None) a tanh."""


def _steps(expr: tir.Expr, main: tir.Var) -> list[Step] | None:
    """What an expression does to its main argument, from the inside out; None if something else."""
    if expr is main:
        return []
    if main not in free_vars(expr):
        return None
    inner, step = _outermost(expr, main)
    if inner is None:
        return None
    before = _steps(inner, main)
    return None if before is None else before + step


def _outermost(expr: tir.Expr, main: tir.Var) -> tuple[tir.Expr | None, list[Step]]:
    """The operand that leads to the main argument, and what is done to it."""
    match expr:
        case tir.Cast(value=inner):
            return (inner, []) if expr.dtype.is_float and inner.dtype.is_float else (None, [])
        case tir.Call(name="tanh", args=(inner,)):
            return inner, [None]
        case tir.Mul(a=a, b=tir.Const(value=c)) | tir.Mul(a=tir.Const(value=c), b=a):
            return a, [float(c)]
        case tir.Div(a=a, b=tir.Const(value=c)):
            return (a, [1 / float(c)]) if c else (None, [])
        case tir.Add(a=a, b=other) | tir.Add(a=other, b=a) if main not in free_vars(other):
            return a, [other]
        case tir.Sub(a=a, b=other) if main not in free_vars(other):
            return a, [-other]
        case tir.Select(cond=cond, if_true=a, if_false=tir.Const(value=low)) if low <= NEVER:
            zero = tir.const(0, a.dtype)
            return a, [tir.Select(cond, zero, tir.const(low, a.dtype))]
        case tir.Select(cond=cond, if_true=tir.Const(value=low), if_false=a) if low <= NEVER:
            zero = tir.const(0, a.dtype)
            return a, [tir.Select(cond, tir.const(low, a.dtype), zero)]
    return None, []


def literal_body(b: Rewriter, node: Node, keep: tir.Var | None = None) -> tir.Expr:
    """The body of a map with its constants of one element written out."""
    assert isinstance(node.op, Map)
    values: dict[tir.Var, tir.Expr] = {}
    for number, value in enumerate(node.inputs):
        known = b.constants.get(value)
        var = argument(number, computed_as(value.dtype))
        if known is not None and known.size == 1 and var is not keep:
            values[var] = tir.const(known.item(), var.dtype)
    return substitute(node.op.body, values)


def _as_value(b: Rewriter, node: Node, expr: tir.Expr) -> Value:
    """An expression over the operands of a map as a value of its own."""
    args = [argument(k, computed_as(v.dtype)) for k, v in enumerate(node.inputs)]
    used = [k for k, arg in enumerate(args) if arg in free_vars(expr)]
    if len(used) == 1 and expr is args[used[0]]:
        return node.inputs[used[0]]
    names = {args[k]: argument(n, args[k].dtype) for n, k in enumerate(used)}
    made = Map(substitute(expr, names), len(used), expr.dtype)
    return b.add(made, *(node.inputs[k] for k in used))


def unscaled(b: Rewriter, value: Value) -> tuple[Value, float]:
    """A value without the factors that scale all of it, and their product."""
    node = b.producer(value)
    if node is None:
        return value, 1.0
    if isinstance(node.op, Map):
        return _without_factor(b, node, value)
    rebuild = _rebuilder(b, node)
    if rebuild is None:
        return value, 1.0
    inner, factor = unscaled(b, node.inputs[0])
    return (value, 1.0) if factor == 1.0 else (rebuild(inner), factor)


def _without_factor(b: Rewriter, node: Node, value: Value) -> tuple[Value, float]:
    for number, source in enumerate(node.inputs):
        main = argument(number, computed_as(source.dtype))
        if source.dtype != value.dtype or not same_shape(source.shape, value.shape):
            continue
        steps = _steps(literal_body(b, node, keep=main), main)
        factors = [step for step in steps or () if isinstance(step, float)]
        if factors and len(factors) == len(steps or ()):
            inner, factor = unscaled(b, source)
            return inner, factor * prod(factors)
    return value, 1.0


def _rebuilder(b: Rewriter, node: Node) -> Callable[[Value], Value] | None:
    from tilewright.graph.ops import Expand, Transpose

    if isinstance(node.op, Reshape | Transpose | Expand):
        return lambda inner: b.add(node.op, inner)
    return None


def fitted(b: Rewriter, mask: Value, space: Shape, scores: Shape) -> Value | None:
    """A mask that is added in the shape `space`, for scores whose leading dimensions are joined."""
    if same_shape(space, scores):
        return mask
    extra = len(space) - len(scores)
    if extra < 1 or not same_shape(space[extra + 1 :], scores[1:]) or mask.rank <= len(scores):
        return mask if mask.rank < len(scores) and extra >= 0 else None
    lead = len(space) - mask.rank
    split = space[lead : extra + 1]
    own, rest = mask.shape[: len(split)], mask.shape[len(split) :]
    if all(fixed(d) == 1 for d in own):
        return b.reshape(mask, (1, *rest))
    return b.remap(mask, (scores[0], *rest), lambda o, *i: [*_digits(o, split, own), *i])


def _digits(flat: tir.Expr, split: Sequence[tir.Expr], own: Sequence[tir.Expr]) -> list[tir.Expr]:
    """The places along split dimensions of a place along all of them; 0 where there is only one."""
    result: list[tir.Expr] = []
    for dim, have in zip(reversed(split), reversed(own), strict=True):
        result.append(tir.Const(0) if fixed(have) == 1 or not dims_equal(dim, have) else flat % dim)
        flat = flat // dim
    return result[::-1]
