"""Reshapes move down through maps and reductions: these then have the shape of their producer.

A product over stacked rows is flat; its bias, activation and residual then are flat too, and run in
its registers:

Before:  contract [b·s, n] → reshape [b, s, n] → map(+ bias) → map(gelu)
After:   contract [b·s, n] → map(+ bias) → map(gelu) → reshape [b, s, n]

Of two ways to write the same map one must be preferred, or they would alternate: the shape of heavy
work, then the one with fewer dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.graph.ir import Node, Shape, Value
from tilewright.graph.ops import Map, Reduce, Reshape
from tilewright.graph.ops.op import Role
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.passes.transposes import matching_runs
from tilewright.graph.sizes import dims_equal, fixed, same_shape
from tilewright.tensor import ir as tir

__all__ = ["sink_reshapes"]


def sink_reshapes(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the picture above."""
    match node.op:
        case Reshape():
            return _merge(b, node.op, inputs[0])
        case Map():
            return _through_map(b, node, inputs)
        case Reduce():
            return _through_reduce(b, node.op, inputs[0])
    return None


def _source(b: Rewriter, value: Value) -> Value | None:
    found = b.made_by(value, Reshape)
    return found[1].inputs[0] if found else None


def _merge(b: Rewriter, op: Reshape, x: Value) -> Value | None:
    source = _source(b, x)
    if source is not None:
        return b.reshape(source, op.shape)
    return x if same_shape(x.shape, op.shape) else None


def common_tail(a: Sequence[object], b: Sequence[object]) -> int:
    """How many trailing dimensions two shapes share."""
    shared = 0
    for x, y in zip(reversed(a), reversed(b), strict=False):
        if not dims_equal(x, y):  # type: ignore[arg-type]
            break
        shared += 1
    return shared


def _through_map(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """The map moves to the shape of its most important operand, if that is behind a reshape."""
    shape = node.output.shape
    whole = [v for v in inputs if same_shape(v.shape, shape)]
    if not whole:
        return None
    best = max(whole, key=lambda v: _importance(b, _source(b, v) or v))
    source = _source(b, best)
    stays = [_importance(b, v) for v in whole if _source(b, v) is None]
    if source is None or (stays and max(stays) >= _importance(b, source)):
        return None
    if same_shape(source.shape, shape):
        return None
    moved = [_as_source(b, v, source.shape, shape) for v in inputs]
    if any(m is None for m in moved):
        return None
    return b.reshape(b.add(node.op, *(m for m in moved if m is not None)), shape)


def _importance(b: Rewriter, value: Value) -> tuple[bool, int]:
    """Results of heavy work first, so that maps run in its registers; then fewer dimensions."""
    passed, at = [], value
    while at not in b.heavy:
        passed.append(at)
        node = b.producer(at)
        is_map = node is not None and isinstance(node.op, Map)
        behind = [v for v in node.inputs if same_shape(v.shape, at.shape)] if is_map else []  # type: ignore[union-attr]
        if not behind:
            b.heavy[at] = node is not None and node.op.role is Role.ANCHOR
            break
        at = behind[0]
    b.heavy.update(dict.fromkeys(passed, b.heavy[at]))
    return b.heavy[value], -value.rank


def _as_source(b: Rewriter, x: Value, before: Shape, after: Shape) -> Value | None:
    """An operand of a map over `after` as an operand of the same map over `before`."""
    if same_shape(x.shape, after):
        return b.reshape(x, before)
    tail = common_tail(before, after)
    extra = x.rank - tail
    if extra <= 0:
        return x
    if all(fixed(d) == 1 for d in x.shape[:extra]):
        return b.reshape(x, x.shape[extra:])
    return _run_by_run(b, x, before, after) if x in b.constants else None


def _run_by_run(b: Rewriter, x: Value, before: Shape, after: Shape) -> Value | None:
    """A broadcast operand that has all dimensions of a run, or none of them."""
    runs = matching_runs(after, before)
    if runs is None:
        return None
    own = (*([tir.Const(1)] * (len(after) - x.rank)), *x.shape)
    dims: list[tir.Expr] = []
    for wide, parts in runs:
        if all(fixed(own[d]) == 1 for d in wide):
            dims += [tir.Const(1)] * len(parts)
        elif same_shape([own[d] for d in wide], [after[d] for d in wide]):
            dims += [before[d] for d in parts]
        else:
            return None
    return b.reshape(x, dims)


def _through_reduce(b: Rewriter, op: Reduce, x: Value) -> Value | None:
    source = _source(b, x)
    if source is None or source.rank >= x.rank:
        return None
    tail = common_tail(source.shape, x.shape)
    if any(d < x.rank - tail for d in op.axes):
        return None
    shift = source.rank - x.rank
    reduced = b.add(Reduce(op.fold, tuple(d + shift for d in op.axes)), source)
    kept = [1 if d in op.axes else dim for d, dim in enumerate(x.shape)]
    return b.reshape(reduced, kept)
