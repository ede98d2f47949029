"""Orders of channels, and whether all that reads a value takes one in.

An order is a permutation of the last dimension. Shuffles are transposes of the dimensions that
channels are made of; what becomes of them on their way down (one part of a concatenation shuffled,
say) may be any permutation, which is written as a `Gather` and only where something takes it in.

Whether that is so is found by looking ahead in the graph as it was, along everything that passes an
order on, until weights or sums of channels end it on every way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Array, Node, Value
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
    picked,
)
from tilewright.graph.ops.window import Conv, ConvTranspose, Pool
from tilewright.graph.passes.movements import channel_range, keeps_channels
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import fixed, same_shape, sized
from tilewright.tensor import ir as tir

__all__ = ["Order", "Places", "Runs", "Slice", "is_narrow", "is_taken", "joined_order"]
__all__ += ["order_of", "runs_of_groups", "shuffle_at", "sliced_by"]

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Order:
    """`y[…, j] = x[…, places[j]]`; with `digits`, the transpose `moved` of dimensions so large."""

    places: Places
    digits: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()

    @classmethod
    def transposed(cls, digits: Sequence[int], moved: Sequence[int]) -> Order:
        places = np.arange(prod(digits)).reshape(digits).transpose(moved).ravel()
        return cls(places, tuple(digits), tuple(moved))

    @property
    def inverse(self) -> Places:
        return np.argsort(self.places)

    @property
    def is_plain(self) -> bool:
        return np.array_equal(self.places, np.arange(self.places.size))

    def is_like(self, other: Order) -> bool:
        return np.array_equal(self.places, other.places)

    def behind(self, first: Order) -> Order:
        """This order of what another one has ordered."""
        return Order(first.places[self.places])

    def of(self, b: Rewriter, x: Value) -> Value:
        """A value of as many channels in this order."""
        if not self.digits:
            axes = [axis(k) for k in range(x.rank)]
            op = Gather(x.shape, ((1, (axes[-1],)),), (*axes[:-1], picked(0)))
            return b.add(op, x, b.constant(self.places.astype(np.int64), "order"))
        lead = x.shape[:-1]
        parts = b.reshape(x, (*lead, *self.digits))
        moved = (*range(len(lead)), *(len(lead) + d for d in self.moved))
        return b.reshape(b.transpose(parts, moved), x.shape)

    def sliced(self, start: int, size: int) -> Slice | None:
        """Some channels of a transpose; None if they are not whole in the outermost digit."""
        if not self.digits:
            return None
        digit = self.moved[0]
        inner = self.places.size // self.digits[digit]
        if start % inner or size % inner:
            return None
        first, many = start // inner, size // inner
        digits = [many if d == digit else n for d, n in enumerate(self.digits)]
        return Slice(digit, first, Order.transposed(digits, self.moved))


@dataclass(frozen=True, eq=False)
class Slice:
    """A slice in front of an order: of one digit, from `first` on; `order` is that of the rest."""

    digit: int
    first: int
    order: Order


def order_of(b: Rewriter, value: Value) -> tuple[Value, Order] | None:
    """How the channels of a value of the new graph are ordered, and what they come from."""
    found = b.producer(value)
    match found:
        case Node(op=Reshape(shape=shape)):
            moved = b.made_by(found.inputs[0], Transpose)
            if moved is None:
                return None
            parts = moved[1].inputs[0]
            order = shuffle_at(parts.shape, moved[0].order, shape)
            return None if order is None else (b.reshape(parts, shape), order)
        case Node(op=Gather(reads=reads, places=places), inputs=(x, table)):
            axes = tuple(axis(k) for k in range(x.rank))
            plain = (*axes[:-1], picked(0))
            held = b.constants.get(table)
            if held is None or reads != ((1, axes[-1:]),) or places != plain:
                return None
            whole = np.array_equal(np.sort(held), np.arange(fixed(x.shape[-1]) or 0))
            return (x, Order(held.astype(np.intp))) if whole else None
    return None


def shuffle_at(
    parts: Sequence[tir.Expr], order: Sequence[int], shape: Sequence[tir.Expr]
) -> Order | None:
    """The order that a transpose of parts makes that a reshape joins to channels."""
    lead = len(shape) - 1
    if lead < 1 or len(parts) < lead + 2 or tuple(order[:lead]) != tuple(range(lead)):
        return None
    digits = sized(parts[lead:])
    if digits is None or fixed(shape[-1]) != prod(digits):
        return None
    if not same_shape(parts[:lead], shape[:lead]):
        return None
    return Order.transposed(digits, [d - lead for d in order[lead:]])


def is_narrow(value: Value) -> bool:
    """Whether a value is the same for all channels."""
    return value.rank == 0 or fixed(value.shape[-1]) == 1


def sliced_by(b: Rewriter, node: Node, order: Order) -> Slice | None:
    """What a node of the old graph takes of ordered channels, if all such slices are no more work.

    That is so if they do not overlap: every channel is then put in order once, at most.
    """
    op, x = node.op, node.inputs[0]
    some = channel_range(op, x) if isinstance(op, Remap) else None
    every = [channel_range(r.op, x) for r in b.readers[x] if isinstance(r.op, Remap)]
    if some is None or sum(found[1] for found in every if found) > order.places.size:
        return None
    return order.sliced(*some)


# ---- groups that read what is ordered


@dataclass(frozen=True)
class Runs:
    """Groups read `count` runs of channels each; `inside` sorts the channels of each group."""

    inside: Places
    count: int


def runs_of_groups(op: Conv, x: Value, weights: Array, order: Order) -> Runs | None:
    """How a grouped convolution reads what is ordered as it was before, if it can."""
    per_group = weights.shape[1]
    read = order.places.reshape(op.groups, per_group)
    inside = read.argsort(axis=1)
    read = np.take_along_axis(read, inside, axis=1)
    breaks = np.flatnonzero(np.diff(read[0]) != 1)
    run = int(breaks[0]) + 1 if breaks.size else per_group
    if per_group % run:
        return None
    runs = per_group // run
    regular = np.arange(order.places.size).reshape(-1, op.groups, run).transpose(1, 0, 2)
    if regular.shape[1] != runs or not np.array_equal(read, regular.reshape(read.shape)):
        return None
    plain = all(s == 1 for s in op.strides) and not any(op.pads) and x.dtype == op.dtype
    if runs > 1 and (not plain or any(size != 1 for size in weights.shape[2:])):
        return None
    return Runs(inside, runs)


# ---- looking ahead


def is_taken(b: Rewriter, value: Value, order: Order) -> bool:
    """Whether all that reads a value of the old graph takes in an order of its channels."""
    before = b.before
    ordered = {value: order}
    todo = _places(b, value)
    heapify(todo)
    if value in before.outputs:
        return False
    while todo:
        place = heappop(todo)
        if todo and todo[0] == place:
            continue
        node = before.nodes[place]
        found = _passed_on(b, node, ordered)
        if found is None:
            return False
        for made, its_order in found:
            if made in before.outputs:
                return False
            ordered[made] = its_order
            for reader in _places(b, made):
                heappush(todo, reader)
    return True


def _places(b: Rewriter, value: Value) -> list[int]:
    return [b.place[node] for node in b.readers.get(value, ())]


Passed = Sequence[tuple[Value, Order]]
"""Values that are ordered in turn; none where the order ends."""


def _passed_on(b: Rewriter, node: Node, ordered: Mapping[Value, Order]) -> Passed | None:
    """What a reader makes of an order; None if it cannot take it in."""
    op, x = node.op, node.inputs[0]
    match op:
        case Map():
            return _by_map(b, node, ordered)
        case Contract():
            return _by_contract(b, op, node, ordered)
        case Concat(axis=along):
            joined = joined_order(node.inputs, [ordered.get(v) for v in node.inputs])
            last = along == node.output.rank - 1
            return [(node.output, joined)] if last and joined is not None else None
    order = ordered.get(x)
    if order is None or any(v in ordered for v in node.inputs[1:]):
        return None
    match op:
        case Conv():
            return _by_conv(b, op, node, order)
        case ConvTranspose(groups=1):
            return [] if node.inputs[1] in b.before.constants else None
        case Reduce(axes=axes):
            return [] if x.rank - 1 in axes else [(node.output, order)]
        case Pool():
            return [(node.output, order)]
        case Remap():
            if keeps_channels(op, x):
                return [(node.output, order)]
            return None if sliced_by(b, node, order) is None else []
        case Reshape():
            return _by_shuffle(b, node, order)
    return None


def _by_map(b: Rewriter, node: Node, ordered: Mapping[Value, Order]) -> Passed | None:
    order = next(ordered[v] for v in node.inputs if v in ordered)
    for value in node.inputs:
        own = ordered.get(value)
        if own is None and value in b.new:
            found = order_of(b, b.new[value])
            own = None if found is None else found[1]
        if own is not None:
            if not own.is_like(order):
                return None
        elif not is_narrow(value):
            held = b.before.constants.get(value)
            if held is None or held.shape[-1] != order.places.size:
                return None
    same = fixed(node.output.shape[-1]) == order.places.size
    return [(node.output, order)] if same else None


def _by_contract(
    b: Rewriter, op: Contract, node: Node, ordered: Mapping[Value, Order]
) -> Passed | None:
    sides = [k for k, v in enumerate(node.inputs) if v in ordered]
    summed = (op.left, op.right)[sides[0]][-1:]
    other = node.inputs[1 - sides[0]]
    ends = len(sides) == 1 and summed not in op.result and other in b.before.constants
    return [] if ends else None


def _by_conv(b: Rewriter, op: Conv, node: Node, order: Order) -> Passed | None:
    x, weights = node.inputs
    held = b.before.constants.get(weights)
    if held is None:
        return None
    if op.groups == 1:
        return []
    if op.groups == held.shape[0] == order.places.size:
        return [(node.output, order)]
    return None if runs_of_groups(op, x, held, order) is None else []


def _by_shuffle(b: Rewriter, node: Node, order: Order) -> Passed | None:
    """Another shuffle: the order of an order."""
    chain = [node]
    for kind in (Transpose, Reshape):
        readers = b.readers.get(chain[-1].output, ())
        if len(readers) != 1 or chain[-1].output in b.before.outputs:
            return None
        if not isinstance(readers[0].op, kind):
            return None
        chain += readers
    first, moved, last = chain
    assert isinstance(moved.op, Transpose)
    if not same_shape(first.inputs[0].shape, last.output.shape):
        return None
    second = shuffle_at(first.output.shape, moved.op.order, last.output.shape)
    return None if second is None else [(last.output, second.behind(order))]


def joined_order(values: Sequence[Value], orders: Sequence[Order | None]) -> Order | None:
    """The order of a concatenation whose parts have these; None if sizes are not known."""
    places: list[Places] = []
    start = 0
    for value, order in zip(values, orders, strict=True):
        size = fixed(value.shape[-1])
        if size is None:
            return None
        places.append(start + (np.arange(size) if order is None else order.places))
        start += size
    return Order(np.concatenate(places))
