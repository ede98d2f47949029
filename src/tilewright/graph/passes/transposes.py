"""Transposes move down through the nodes behind them until two meet and cancel.

A convolution runs channels-last between two transposes; after this pass a network of convolutions
has one in front and one at its end:

Before:  conv → T → relu → T⁻¹ → conv → T
After:   conv → relu → conv → T
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.graph.ir import Node, Shape, Value
from tilewright.graph.ops import (
    Concat,
    Contract,
    Gather,
    Map,
    Reduce,
    Remap,
    Reshape,
    Transpose,
    axis,
)
from tilewright.graph.ops.gather import picked
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import count, dims_equal, fixed, product
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["matching_runs", "sink_transposes"]

Order = tuple[int, ...]

# Elements in a row below which a product would not fill its vectors.
_VECTOR: Final = 8


def sink_transposes(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the picture above."""
    match node.op:
        case Transpose():
            return _merge(b, node.op, inputs[0])
        case Map():
            return _through_map(b, node, inputs)
        case Reduce():
            return _through_reduce(b, node.op, inputs[0])
        case Concat():
            return _through_concat(b, node.op, inputs)
        case Remap():
            return _through_remap(b, node.op, inputs[0])
        case Gather():
            return _through_gather(b, node.op, inputs)
        case Reshape():
            return _through_reshape(b, node.op, inputs[0])
        case Contract():
            return _into_contract(b, node.op, inputs)
    return None


def inverse(order: Order) -> Order:
    """The order that undoes one."""
    return tuple(order.index(d) for d in range(len(order)))


def _source(b: Rewriter, value: Value) -> tuple[Order, Value] | None:
    """(order, source) if a value is a transpose."""
    found = b.made_by(value, Transpose)
    return (found[0].order, found[1].inputs[0]) if found else None


def _merge(b: Rewriter, op: Transpose, x: Value) -> Value | None:
    """Two transposes are one; one that moves only dimensions of size one is a reshape."""
    found = _source(b, x)
    order, source = op.order, x
    if found is not None:
        order, source = tuple(found[0][d] for d in order), found[1]
    if order == tuple(range(len(order))):
        return source
    if _keeps_order(order, source):
        return b.reshape(source, [source.shape[d] for d in order])
    absorbed = _out_of_contract(b, order, source)
    if absorbed is not None:
        return absorbed
    return b.transpose(source, order) if found is not None else None


def _keeps_order(order: Order, x: Value) -> bool:
    wide = [d for d in order if fixed(x.shape[d]) != 1]
    return wide == sorted(wide)


def _out_of_contract(b: Rewriter, order: Order, x: Value) -> Value | None:
    """A product that only a transpose reads is written in its order, if vectors stay vectors."""
    found = b.made_by(x, Contract)
    if found is None or not b.is_read_once(x) or order[-1] != len(order) - 1:
        return None
    width = fixed(x.shape[-1])
    if width is not None and width < _VECTOR:  # several dimensions fill one, as they are
        return None
    op, node = found
    letters = "".join(op.result[d] for d in order)
    return b.add(Contract(op.left, op.right, letters, op.dtype), *node.inputs)


def _through_map(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """map(T x, T y, c) = T map(x, y, c′)."""
    found = [_source(b, v) for v in inputs]
    ranks = max((v.rank for v in inputs), default=0)
    orders = {f[0]: count(f[1].shape) for f in found if f is not None and len(f[0]) == ranks}
    if not orders:
        return None
    order = max(orders, key=lambda o: orders[o])
    fits = [f is not None and f[0] == order for f in found]
    saved = sum(count(v.shape) for v, fit in zip(inputs, fits, strict=True) if fit)
    paid = sum(
        count(v.shape)
        for v, fit in zip(inputs, fits, strict=True)
        if not fit and b.contents(v) is None and not _is_small(v, order)
    )
    if paid >= saved:
        return None
    moved = [
        f[1] if fit and f is not None else _permuted(b, v, inverse(order))
        for v, f, fit in zip(inputs, found, fits, strict=True)
    ]
    return b.transpose(b.add(node.op, *moved), order)


def _is_small(x: Value, order: Order) -> bool:
    """Whether permuting a broadcast operand costs nothing: at most one dimension is not one."""
    padded = [tir.Const(1)] * (len(order) - x.rank) + list(x.shape)
    return sum(fixed(d) != 1 for d in padded) <= 1


def _permuted(b: Rewriter, x: Value, order: Order) -> Value:
    """A broadcast operand with its dimensions in another order."""
    if x.rank == 0 or count(x.shape) == 1:
        return x
    full = b.reshape(x, [*([1] * (len(order) - x.rank)), *x.shape])
    if _keeps_order(order, full):
        return b.reshape(full, [full.shape[d] for d in order])
    return b.transpose(full, order)


def _through_reduce(b: Rewriter, op: Reduce, x: Value) -> Value | None:
    found = _source(b, x)
    if found is None:
        return None
    order, source = found
    axes = tuple(sorted(order[d] for d in op.axes))
    return b.transpose(b.add(Reduce(op.fold, axes), source), order)


def _through_concat(b: Rewriter, op: Concat, inputs: Sequence[Value]) -> Value | None:
    found = [_source(b, v) for v in inputs]
    orders = {f[0] for f in found if f is not None}
    if len(orders) != 1 or op.is_copied([v.shape for v in inputs]):
        return None
    (order,) = orders
    paid = sum(count(v.shape) for v, f in zip(inputs, found, strict=True) if f is None)
    saved = sum(count(v.shape) for v, f in zip(inputs, found, strict=True) if f is not None)
    if paid >= saved:
        return None
    moved = [
        f[1] if f is not None else b.transpose(v, inverse(order))
        for v, f in zip(inputs, found, strict=True)
    ]
    return b.transpose(b.add(Concat(order[op.axis]), *moved), order)


def _through_remap(b: Rewriter, op: Remap, x: Value) -> Value | None:
    """Only if each output dimension moves along with its own dimension of the source."""
    found = _source(b, x)
    if found is None or len(op.shape) != x.rank:
        return None
    order, source = found
    if any(not _only_own(index, d) for d, index in enumerate(op.indices)):
        return None
    # Output dimension d of the remap becomes dimension order[d] of the new one.
    back = inverse(order)
    names = {axis(d): axis(order[d]) for d in range(len(order))}
    indices = tuple(substitute(op.indices[back[k]], names) for k in range(len(order)))
    shape = tuple(op.shape[back[k]] for k in range(len(order)))
    inside = substitute(op.inside, names)
    return b.transpose(b.add(Remap(shape, indices, inside, op.fill, op.spread), source), order)


def _through_gather(b: Rewriter, op: Gather, inputs: Sequence[Value]) -> Value | None:
    """As `_through_remap`; what is picked from another tensor may move along one dimension."""
    found = _source(b, inputs[0])
    if found is None or len(op.shape) != inputs[0].rank:
        return None
    order, source = found
    for d, place in enumerate(op.places):
        own = [where for n, (_, where) in enumerate(op.reads) if picked(n) in free_vars(place)]
        used = [place, *(at for where in own for at in where)]
        if any(not _only_own(index, d) for index in used):
            return None
    back = inverse(order)
    names = {axis(d): axis(order[d]) for d in range(len(order))}
    places = tuple(substitute(op.places[back[k]], names) for k in range(len(order)))
    shape = tuple(op.shape[back[k]] for k in range(len(order)))
    reads = tuple((n, tuple(substitute(at, names) for at in where)) for n, where in op.reads)
    return b.transpose(b.add(Gather(shape, reads, places), source, *inputs[1:]), order)


def _through_reshape(b: Rewriter, op: Reshape, x: Value) -> Value | None:
    """A reshape that splits and joins dimensions in runs that the transpose keeps together.

    [n, h·w, c] → T [n, c, h·w] → reshape [n, c, h, w]  is  reshape [n, h, w, c] → T.
    """
    found = _source(b, x)
    if found is None:
        return None
    order, source = found
    runs = matching_runs(x.shape, op.shape)
    if runs is None:
        return None
    apart = _runs_together(order, [before for before, _ in runs])
    if apart != tuple(range(len(order))):
        if not _may_shuffle(order, runs):
            return None
        # What happens inside of runs happens first, and the rest keeps them together.
        source = b.transpose(source, apart)
        order = tuple(apart.index(d) for d in order)
    # The runs in the order in which the source has them; those without dimensions go first.
    placed = sorted(runs, key=lambda run: order[run[0][0]] if run[0] else -1)
    axes = [d for _, after in placed for d in after]
    if axes == list(range(len(axes))):
        return b.reshape(source, op.shape)
    moved = b.reshape(source, [op.shape[d] for d in axes])
    return b.transpose(moved, [axes.index(d) for d in range(len(axes))])


def _runs_together(order: Order, runs: Sequence[Sequence[int]]) -> Order:
    """The dimensions of a source with those of each run side by side and in order.

    A run stands where its first dimension was.
    """
    run_of = {order[d]: [order[e] for e in run] for run in runs for d in run}
    placed: list[int] = []
    for d in range(len(order)):
        run = run_of.get(d, [d])
        if d == min(run):
            placed += run
    return tuple(placed)


def _may_shuffle(order: Order, runs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> bool:
    """Whether runs that are out of order are so within the source's trailing dimensions alone.

    That is a shuffle of channels; anything else would only add a transpose.
    """
    moved = [[order[d] for d in before] for before, _ in runs]
    wild = [run for run in moved if run and run != list(range(run[0], run[0] + len(run)))]
    tail = list(range(len(order) - len(wild[0]), len(order)))
    return len(wild) == 1 and sorted(wild[0]) == tail


def matching_runs(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]] | None:
    """Shortest runs of dimensions of two shapes with equal products, in order."""
    runs: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        left, right = [i] if i < len(before) else [], [j] if j < len(after) else []
        i, j = i + len(left), j + len(right)
        while not _same_product(before, left, after, right):
            small = fixed(product(before[d] for d in left)), fixed(product(after[d] for d in right))
            grow_left = small[0] is not None and (small[1] is None or small[0] < small[1])
            if grow_left and i < len(before):
                left.append(i)
                i += 1
            elif j < len(after):
                right.append(j)
                j += 1
            elif i < len(before):
                left.append(i)
                i += 1
            else:
                return None
        runs.append((left, right))
    return runs


def _same_product(before: Shape, left: list[int], after: Shape, right: list[int]) -> bool:
    a, b = product(before[d] for d in left), product(after[d] for d in right)
    return dims_equal(a, b)


def _only_own(index: tir.Expr, position: int) -> bool:
    axes = {axis(k): k for k in range(12)}
    return all(axes.get(v, position) == position for v in free_vars(index) if v in axes)


def _into_contract(b: Rewriter, op: Contract, inputs: Sequence[Value]) -> Value | None:
    """A transposed operand is the same operand with its letters in another order."""
    letters, values = [op.left, op.right], list(inputs)
    changed = False
    for side in range(2):
        found = _source(b, values[side])
        if found is not None:
            order, source = found
            letters[side] = "".join(letters[side][order.index(d)] for d in range(len(order)))
            values[side], changed = source, True
    return (
        b.add(Contract(letters[0], letters[1], op.result, op.dtype), *values) if changed else None
    )
