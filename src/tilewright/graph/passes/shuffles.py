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

In front of a shuffle, the rows of a dense layer's weights do the same. What none of them takes in
stays a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Array, Node, Shape, Value
from tilewright.graph.ops import Contract, Map, Reduce, Remap, Reshape, Transpose
from tilewright.graph.ops.window import Conv, ConvTranspose, Pool
from tilewright.graph.passes.movements import keeps_channels
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import count, fixed, same_shape, sized

__all__ = ["sink_shuffles"]

Order = NDArray[np.intp]


@dataclass(frozen=True)
class _Shuffle:
    """`y[…, j] = source[…, order[j]]`, written as the transpose of some trailing dimensions."""

    source: Value
    order: Order
    digits: Shape
    moved: tuple[int, ...]

    @property
    def inverse(self) -> Order:
        return np.argsort(self.order)

    def of(self, b: Rewriter, x: Value) -> Value:
        """Another value of as many elements in the last dimension, shuffled alike."""
        lead = x.shape[:-1]
        parts = b.reshape(x, (*lead, *self.digits))
        axes = (*range(len(lead)), *(len(lead) + d for d in self.moved))
        return b.reshape(b.transpose(parts, axes), x.shape)

    def is_like(self, other: _Shuffle | None) -> bool:
        return other is not None and np.array_equal(self.order, other.order)


def sink_shuffles(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the pictures above."""
    if isinstance(node.op, Reshape):
        return _into_producer(b, node.op, inputs[0])
    found = [_shuffled(b, value) for value in inputs]
    if not any(found):
        return None
    match node.op:
        case Contract():
            return _into_contract(b, node.op, inputs, found)
        case Map():
            return _through_map(b, node, inputs, found)
    shuffle = found[0]
    return None if shuffle is None else _behind(b, node, inputs, shuffle)


def _behind(b: Rewriter, node: Node, inputs: tuple[Value, ...], shuffle: _Shuffle) -> Value | None:
    """An operator whose data are shuffled."""
    match node.op:
        case Conv():
            return _into_conv(b, node, inputs, shuffle)
        case ConvTranspose(groups=1):
            return _into_weights(b, node.op, inputs[1], shuffle, 0)
        case Reduce(axes=axes):
            folded = b.add(node.op, shuffle.source)
            return folded if inputs[0].rank - 1 in axes else shuffle.of(b, folded)
        case Pool() if b.is_read_once(inputs[0]):
            return shuffle.of(b, b.add(node.op, shuffle.source))
        case Remap() if b.is_read_once(inputs[0]) and keeps_channels(node.op, inputs[0]):
            grows = count(node.op.shape) > count(inputs[0].shape)
            return None if grows else shuffle.of(b, b.add(node.op, shuffle.source))
    return None


def _shuffled(b: Rewriter, value: Value) -> _Shuffle | None:
    """How a value is shuffled, if it is."""
    found = b.made_by(value, Reshape)
    return None if found is None else _of_reshape(b, found[0], found[1].inputs[0])


def _of_reshape(b: Rewriter, op: Reshape, x: Value) -> _Shuffle | None:
    """The shuffle that ends with a reshape of a value."""
    found = b.made_by(x, Transpose)
    lead = len(op.shape) - 1
    if found is None or lead < 1 or x.rank < lead + 2:
        return None
    order, parts = found[0].order, found[1].inputs[0]
    digits = parts.shape[lead:]
    sizes = sized(digits)
    if order[:lead] != tuple(range(lead)) or sizes is None or fixed(op.shape[-1]) != prod(sizes):
        return None
    if not same_shape(parts.shape[:lead], op.shape[:lead]):
        return None
    moved = tuple(d - lead for d in order[lead:])
    places = np.arange(prod(sizes)).reshape(sizes).transpose(moved).ravel()
    return _Shuffle(b.reshape(parts, op.shape), places, digits, moved)


# ---- weights behind a shuffle


def _into_weights(
    b: Rewriter, op: Conv | ConvTranspose, weights: Value, shuffle: _Shuffle, axis: int
) -> Value | None:
    held = b.constants.get(weights)
    if held is None:
        return None
    return b.add(op, shuffle.source, _ordered(b, held, shuffle.inverse, axis))


def _ordered(b: Rewriter, held: Array, order: Order, axis: int) -> Value:
    return b.constant(held.take(order, axis), "ordered")


def _into_contract(
    b: Rewriter, op: Contract, inputs: Sequence[Value], found: Sequence[_Shuffle | None]
) -> Value | None:
    """The order of what is summed is that of the other operand, if it is constant."""
    letters = (op.left, op.right)
    for side, shuffle in enumerate(found):
        held = b.constants.get(inputs[1 - side])
        summed = letters[side][-1:]
        if shuffle is None or held is None or summed in op.result:
            continue
        at = letters[1 - side].find(summed)
        if at < 0:
            return b.add(op, *_replaced(inputs, side, shuffle.source))
        other = _ordered(b, held, shuffle.inverse, at)
        return b.add(op, *_replaced((other, other), side, shuffle.source))
    return None


def _replaced(values: Sequence[Value], place: int, value: Value) -> list[Value]:
    return [value if k == place else v for k, v in enumerate(values)]


def _into_conv(b: Rewriter, node: Node, inputs: Sequence[Value], shuffle: _Shuffle) -> Value | None:
    op = node.op
    assert isinstance(op, Conv)
    held = b.constants.get(inputs[1])
    if held is None:
        return None
    if op.groups == 1:
        return _into_weights(b, op, inputs[1], shuffle, 1)
    if op.groups == held.shape[0] == shuffle.order.size:
        if not b.is_read_once(inputs[0]):
            return None
        made = _into_weights(b, op, inputs[1], shuffle, 0)
        return None if made is None else shuffle.of(b, made)
    return _into_groups(b, node, held, shuffle)


def _into_groups(b: Rewriter, node: Node, weights: Array, shuffle: _Shuffle) -> Value | None:
    """Groups that read runs at equal distances, in an order that they change themselves."""
    op, x = node.op, shuffle.source
    assert isinstance(op, Conv)
    filters, per_group = weights.shape[:2]
    read = shuffle.order.reshape(op.groups, per_group)
    inside = read.argsort(axis=1)
    read = np.take_along_axis(read, inside, axis=1)
    breaks = np.flatnonzero(np.diff(read[0]) != 1)
    run = int(breaks[0]) + 1 if breaks.size else per_group
    runs = per_group // run
    if per_group % run:
        return None
    regular = np.arange(shuffle.order.size).reshape(-1, op.groups, run).transpose(1, 0, 2)
    if regular.shape[1] != runs or not np.array_equal(read, regular.reshape(read.shape)):
        return None
    shape = (op.groups, filters // op.groups, per_group, *weights.shape[2:])
    places = inside.reshape(op.groups, 1, per_group, *([1] * (weights.ndim - 2)))
    changed = np.take_along_axis(weights.reshape(shape), places, axis=2)
    if runs == 1:
        return b.add(op, x, b.constant(changed.reshape(weights.shape), "ordered"))
    plain = all(s == 1 for s in op.strides) and not any(op.pads) and x.dtype == op.dtype
    if not plain or any(size != 1 for size in weights.shape[2:]):
        return None
    space = "xyz"[: x.rank - 2]
    held = b.constant(changed.reshape(*shape[:2], runs, run), "ordered")
    parts = b.reshape(x, (*x.shape[:-1], runs, op.groups, run))
    product = Contract(f"n{space}bgr", "gobr", f"n{space}go", op.dtype)
    return b.reshape(b.add(product, parts, held), node.output.shape)


# ---- through what treats elements one by one


def _through_map(
    b: Rewriter, node: Node, inputs: Sequence[Value], found: Sequence[_Shuffle | None]
) -> Value | None:
    """map(shuffle x, shuffle y, c) = shuffle map(x, y, c′)."""
    shuffle = next(s for s in found if s is not None)
    width = shuffle.order.size
    moved: list[Value] = []
    for value, own in zip(inputs, found, strict=True):
        held = b.constants.get(value)
        if own is not None and shuffle.is_like(own):
            if not b.is_read_once(value):
                return None
            moved.append(own.source)
        elif value.rank == 0 or fixed(value.shape[-1]) == 1:
            moved.append(value)
        elif held is not None and held.shape[-1] == width:
            moved.append(_ordered(b, held, shuffle.inverse, -1))
        else:
            return None
    made = b.add(node.op, *moved)
    return shuffle.of(b, made) if fixed(made.shape[-1]) == width else None


# ---- weights in front of a shuffle


def _into_producer(b: Rewriter, op: Reshape, x: Value) -> Value | None:
    shuffle = _of_reshape(b, op, x)
    if shuffle is None or not b.is_read_once(x):
        return None
    found = b.made_by(x, Transpose)
    assert found is not None
    parts = found[1].inputs[0]
    behind = b.made_by(parts, Reshape)
    if behind is None or not b.is_read_once(parts):
        return None
    source = behind[1].inputs[0]
    return _with_rows(b, source, shuffle.order) if same_shape(source.shape, op.shape) else None


def _with_rows(b: Rewriter, value: Value, order: Order) -> Value | None:
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


def _operand(b: Rewriter, value: Value, order: Order) -> Value | None:
    if value.rank == 0 or fixed(value.shape[-1]) == 1:
        return value
    held = b.constants.get(value)
    return _with_rows(b, value, order) if held is None else _ordered(b, held, order, -1)
