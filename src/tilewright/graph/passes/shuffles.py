"""Shuffles: orders of the last dimension move down until constant weights take them in.

A shuffle is a reshape, a transpose and a reshape that only change the order of the elements of the
last dimension: the shuffle of channels between grouped convolutions, or an image that is flattened
channels first although it is stored channels last. It passes through what treats these elements one
by one (maps, depthwise convolutions, pools), and ends in the weights of a product, of which the
same order costs nothing:

Before:  y = shuffle x; z = conv y, w
After:   z = conv x, w[:, inverse order]

A grouped convolution can change the order inside of its groups. If its groups then read equal runs
that lie at equal distances, that is a product over runs:

After:   z = reshape (contract(nhwbgr,gobr->nhwgo) (reshape x [n, h, w, b, g, r]), w′)

A slice of channels, a copy anyhow, takes what it needs of each run, and shuffles that:

After:   z = shuffle′ (slice′ x)

In front of a shuffle, the rows of a dense layer's weights do the same. What none of them takes in
stays a copy: a shuffle that several read, that is one part of a concatenation, or in front of a
larger image moves only if it ends on all ways down (`orders.is_taken`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.graph.ir import Array, Node, Value
from tilewright.graph.ops import Concat, Contract, Map, Reduce, Remap, Reshape, Transpose
from tilewright.graph.ops.window import Conv, ConvTranspose, Pool
from tilewright.graph.passes.movements import keeps_channels
from tilewright.graph.passes.orders import (
    Order,
    Places,
    is_narrow,
    is_taken,
    joined_order,
    order_of,
    runs_of_groups,
    shuffle_at,
    sliced_by,
)
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import count, fixed, same_shape
from tilewright.tensor import ir as tir

__all__ = ["sink_shuffles"]

Shuffled = tuple[Value, Order]
"""What a value is a shuffle of, and in which order."""


def sink_shuffles(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the pictures above."""
    if isinstance(node.op, Reshape):
        return _at_shuffle(b, node, inputs[0])
    found = [order_of(b, value) for value in inputs]
    if not any(found):
        return None
    match node.op:
        case Contract():
            return _into_contract(b, node.op, inputs, found)
        case Map():
            return _through_map(b, node, inputs, found)
        case Concat():
            return _through_concat(b, node, inputs, found)
    first = found[0]
    return None if first is None else _behind(b, node, inputs, *first)


def _behind(
    b: Rewriter, node: Node, inputs: tuple[Value, ...], source: Value, order: Order
) -> Value | None:
    """An operator whose data are shuffled."""
    data = [(inputs[0], node.inputs[0])]
    match node.op:
        case Conv():
            return _into_conv(b, node, inputs, source, order)
        case ConvTranspose(groups=1):
            return _into_weights(b, node.op, inputs[1], source, order, 0)
        case Reduce(axes=axes):
            folded = b.add(node.op, source)
            return folded if inputs[0].rank - 1 in axes else order.of(b, folded)
        case Pool() if _may_pass(b, node, data, order):
            return order.of(b, b.add(node.op, source))
        case Remap() if keeps_channels(node.op, inputs[0]):
            free = _may_pass(b, node, data, order)
            return order.of(b, b.add(node.op, source)) if free else None
        case Remap():
            return _into_slice(b, node, source, order)
    return None


def _may_pass(
    b: Rewriter, node: Node, shuffled: Sequence[tuple[Value, Value]], order: Order
) -> bool:
    """Whether a shuffle behind a node is no more work than that of what it reads.

    `shuffled` are the inputs that are, new and old.
    """
    size = sum(count(new.shape) for new, _ in shuffled)
    grows = count(node.output.shape) > size
    if order.digits and not grows and all(b.is_read_once(new) for new, _ in shuffled):
        return True
    return is_taken(b, node.output, order) or all(is_taken(b, old, order) for _, old in shuffled)


# ---- weights behind a shuffle


def _into_weights(
    b: Rewriter, op: Conv | ConvTranspose, weights: Value, source: Value, order: Order, along: int
) -> Value | None:
    held = b.constants.get(weights)
    return None if held is None else b.add(op, source, _ordered(b, held, order.inverse, along))


def _ordered(b: Rewriter, held: Array, places: Places, along: int) -> Value:
    return b.constant(held.take(places, along), "ordered")


def _into_contract(
    b: Rewriter, op: Contract, inputs: Sequence[Value], found: Sequence[Shuffled | None]
) -> Value | None:
    """The order of what is summed is that of the other operand, if it is constant."""
    letters = (op.left, op.right)
    for side, shuffled in enumerate(found):
        held = b.constants.get(inputs[1 - side])
        summed = letters[side][-1:]
        if shuffled is None or held is None or summed in op.result:
            continue
        source, order = shuffled
        at = letters[1 - side].find(summed)
        if at < 0:
            return b.add(op, *_replaced(inputs, side, source))
        other = _ordered(b, held, order.inverse, at)
        return b.add(op, *_replaced((other, other), side, source))
    return None


def _replaced(values: Sequence[Value], place: int, value: Value) -> list[Value]:
    return [value if k == place else v for k, v in enumerate(values)]


def _into_conv(
    b: Rewriter, node: Node, inputs: Sequence[Value], source: Value, order: Order
) -> Value | None:
    op = node.op
    assert isinstance(op, Conv)
    held = b.constants.get(inputs[1])
    if held is None:
        return None
    if op.groups == 1:
        return _into_weights(b, op, inputs[1], source, order, 1)
    if op.groups == held.shape[0] == order.places.size:
        if not _may_pass(b, node, [(inputs[0], node.inputs[0])], order):
            return None
        made = _into_weights(b, op, inputs[1], source, order, 0)
        return None if made is None else order.of(b, made)
    return _into_groups(b, node, held, source, order)


def _into_groups(b: Rewriter, node: Node, weights: Array, x: Value, order: Order) -> Value | None:
    """Groups that read runs at equal distances, in an order that they change themselves."""
    op = node.op
    assert isinstance(op, Conv)
    found = runs_of_groups(op, x, weights, order)
    if found is None:
        return None
    filters, per_group = weights.shape[:2]
    shape = (op.groups, filters // op.groups, per_group, *weights.shape[2:])
    places = found.inside.reshape(op.groups, 1, per_group, *([1] * (weights.ndim - 2)))
    changed = np.take_along_axis(weights.reshape(shape), places, axis=2)
    if found.count == 1:
        return b.add(op, x, b.constant(changed.reshape(weights.shape), "ordered"))
    run = per_group // found.count
    space = "xyz"[: x.rank - 2]
    held = b.constant(changed.reshape(*shape[:2], found.count, run), "ordered")
    parts = b.reshape(x, (*x.shape[:-1], found.count, op.groups, run))
    product = Contract(f"n{space}bgr", "gobr", f"n{space}go", op.dtype)
    return b.reshape(b.add(product, parts, held), node.output.shape)


# ---- through what treats elements one by one


def _through_map(
    b: Rewriter, node: Node, inputs: Sequence[Value], found: Sequence[Shuffled | None]
) -> Value | None:
    """map(shuffle x, shuffle y, c) = shuffle map(x, y, c′)."""
    order = next(own[1] for own in found if own is not None)
    width = order.places.size
    moved: list[Value] = []
    for value, own in zip(inputs, found, strict=True):
        held = b.constants.get(value)
        if own is not None and order.is_like(own[1]):
            moved.append(own[0])
        elif is_narrow(value):
            moved.append(value)
        elif held is not None and held.shape[-1] == width:
            moved.append(_ordered(b, held, order.inverse, -1))
        else:
            return None
    pairs = [(v, old) for v, old, own in zip(inputs, node.inputs, found, strict=True) if own]
    if not _may_pass(b, node, pairs, order):
        return None
    made = b.add(node.op, *moved)
    return order.of(b, made) if fixed(made.shape[-1]) == width else None


def _through_concat(
    b: Rewriter, node: Node, inputs: Sequence[Value], found: Sequence[Shuffled | None]
) -> Value | None:
    """concat(shuffle x, y) = order (concat(x, y)), if something takes that order in."""
    op = node.op
    assert isinstance(op, Concat)
    if op.axis != node.output.rank - 1:
        return None
    order = joined_order(inputs, [None if own is None else own[1] for own in found])
    if order is None or not is_taken(b, node.output, order):
        return None
    parts = [v if own is None else own[0] for v, own in zip(inputs, found, strict=True)]
    return order.of(b, b.concat(parts, op.axis))


def _into_slice(b: Rewriter, node: Node, source: Value, order: Order) -> Value | None:
    """Some of each run, shuffled, if no copy of all channels is left that others read."""
    x = node.inputs[0]
    part = sliced_by(b, node, order)
    if part is None or not (b.readers[x] == [node] or is_taken(b, x, order)):
        return None
    at = x.rank - 1 + part.digit
    parts = b.reshape(source, (*x.shape[:-1], *order.digits))
    shape: list[int | tir.Expr] = [*x.shape[:-1], *part.order.digits]
    moved = b.remap(
        parts, shape, lambda *o: [i + part.first if d == at else i for d, i in enumerate(o)]
    )
    return part.order.of(b, b.reshape(moved, node.output.shape))


# ---- weights in front of a shuffle


def _at_shuffle(b: Rewriter, node: Node, x: Value) -> Value | None:
    """The end of a shuffle: of another one, or of what can be computed in that order."""
    moved = b.made_by(x, Transpose)
    if moved is None:
        return None
    op = node.op
    assert isinstance(op, Reshape)
    order = shuffle_at(moved[1].inputs[0].shape, moved[0].order, op.shape)
    if order is None:
        return None
    parts = moved[1].inputs[0]
    source = b.reshape(parts, op.shape)
    before = order_of(b, source)
    if before is not None:
        whole = order.behind(before[1])
        if whole.is_plain:
            return before[0]
        return whole.of(b, before[0]) if is_taken(b, node.output, whole) else None
    behind = b.made_by(parts, Reshape)
    if behind is None or not (b.is_read_once(x) and b.is_read_once(parts)):
        return None
    made = behind[1].inputs[0]
    return _with_rows(b, made, order.places) if same_shape(made.shape, op.shape) else None


def _with_rows(b: Rewriter, value: Value, order: Places) -> Value | None:
    """A value computed in another order of its last dimension; None if that is more work."""
    node = b.producer(value)
    if node is None or not b.is_read_once(value):
        return None
    match node.op:
        case Map():
            moved = [_operand(b, v, order) for v in node.inputs]
            return None if None in moved else b.add(node.op, *(v for v in moved if v is not None))
        case Conv(groups=1):
            held = b.constants.get(node.inputs[1])
            axis = 0
        case ConvTranspose(groups=1):
            held = b.constants.get(node.inputs[1])
            axis = 1
        case Contract(left=left, right=right, result=result) if result[-1] not in left:
            held = b.constants.get(node.inputs[1])
            axis = right.index(result[-1])
        case _:
            return None
    if held is None:
        return None
    return b.add(node.op, node.inputs[0], _ordered(b, held, order, axis))


def _operand(b: Rewriter, value: Value, order: Places) -> Value | None:
    if is_narrow(value):
        return value
    held = b.constants.get(value)
    return _with_rows(b, value, order) if held is None else _ordered(b, held, order, -1)
