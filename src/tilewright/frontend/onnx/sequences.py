"""Sequences and optionals: lists of values while a model is imported, nothing when it runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.frontend.onnx.node import OnnxNode, normal_axis
from tilewright.frontend.onnx.registry import Unknown, onnx_op
from tilewright.frontend.onnx.scope import Grown, Item, Stacked, Tensors
from tilewright.frontend.onnx.spending import pay_elements, pay_steps
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.sizes import fixed, tidy
from tilewright.tensor import ir as tir

__all__: list[str] = []


def _number(b: Builder, value: Value, what: str) -> int:
    known = b.numbers(value)
    if known is None:
        raise Unknown(f"{what} of a sequence depends on data")
    return known[0]


def _items(sequence: Item) -> tuple[Value, ...]:
    """The elements of an input that a model says is a sequence."""
    if isinstance(sequence, Stacked | Grown):
        raise Unknown("the length of a sequence depends on data")
    if not isinstance(sequence, Tensors):
        raise TypeError("it takes a sequence, and is given something else")
    return sequence.items


def _copied(b: Builder, node: OnnxNode, sequence: Item) -> list[Value]:
    """The elements as a list of its own: many nodes, of which each adds one, make n² copies."""
    items = _items(sequence)
    pay_elements(b, node, len(items), "a sequence")
    return list(items)


@onnx_op("SequenceConstruct")
def construct(b: Builder, node: OnnxNode, *values: Value) -> Tensors:
    """A sequence of the inputs."""
    return Tensors(values)


@onnx_op("SequenceEmpty")
def empty(b: Builder, node: OnnxNode) -> Tensors:
    """A sequence of nothing."""
    return Tensors(())


@onnx_op("SequenceAt", sequences=True)
def at(b: Builder, node: OnnxNode, sequence: Item, place: Value) -> Value:
    """One element."""
    if isinstance(sequence, Stacked):
        return take(b, sequence.stack, b.reshape(place, ()), 0)
    return _items(sequence)[_number(b, place, "a place")]


@onnx_op("SequenceInsert", sequences=True)
def insert(
    b: Builder, node: OnnxNode, sequence: Item, value: Value, place: Value | None = None
) -> Item:
    """One element more, at a place or at the end."""
    if isinstance(sequence, Grown) and place is None:
        pay_elements(b, node, len(sequence.items), "a sequence")
        return Grown((*sequence.items, value))
    items = _copied(b, node, sequence)
    where = len(items) if place is None else _number(b, place, "a place")
    items.insert(where, value)
    return Tensors(tuple(items))


@onnx_op("SequenceErase", sequences=True)
def erase(b: Builder, node: OnnxNode, sequence: Item, place: Value | None = None) -> Tensors:
    """One element less."""
    items = _copied(b, node, sequence)
    items.pop(-1 if place is None else _number(b, place, "a place"))
    return Tensors(tuple(items))


@onnx_op("SequenceLength", sequences=True)
def length(b: Builder, node: OnnxNode, sequence: Item) -> Value:
    """How many elements there are."""
    if isinstance(sequence, Stacked):
        return b.reshape(b.sizes([sequence.stack.shape[0]]), ())
    return b.constant(np.int64(len(_items(sequence))))


@onnx_op("SplitToSequence")
def split(b: Builder, node: OnnxNode, x: Value, sizes: Value | None = None) -> Item:
    """Pieces of a tensor along an axis."""
    axis = normal_axis(node.int("axis"), x.rank)
    keeps = sizes is not None or bool(node.int("keepdims", 1))
    single = sizes is None or (sizes.rank == 0 and b.numbers(sizes) == [1])
    if single and fixed(x.shape[axis]) is None:
        stack = b.transpose(x, [axis, *(k for k in range(x.rank) if k != axis)])
        one: list[int | tir.Expr] = [1] if keeps else []
        return Stacked(b.reshape(stack, [*stack.shape[: axis + 1], *one, *stack.shape[axis + 1 :]]))
    extents = _extents(b, node, x.shape[axis], sizes)
    pieces: list[Value] = []
    start: tir.Expr = tir.Const(0)
    for extent in extents:
        piece = _slice(b, x, axis, start, extent)
        if not keeps:
            piece = b.reshape(piece, [d for k, d in enumerate(piece.shape) if k != axis])
        pieces.append(piece)
        start = start + extent
    return Tensors(tuple(pieces))


def _extents(b: Builder, node: OnnxNode, whole: tir.Expr, sizes: Value | None) -> list[tir.Expr]:
    """The sizes of pieces: given, all alike with a smaller last one, or ones."""
    if sizes is not None and sizes.rank == 1:
        known = b.integers(sizes)
        if known is None:
            raise Unknown("the sizes of pieces depend on data")
        return known
    size, total = 1 if sizes is None else _number(b, sizes, "the size of pieces"), fixed(whole)
    if total is None:
        raise Unknown("the number of pieces depends on sizes")
    starts = range(0, total, size)
    pay_steps(b, node, len(starts), "pieces of a tensor")
    return [tir.Const(min(size, total - start)) for start in starts]


def _slice(b: Builder, x: Value, axis: int, start: tir.Expr, extent: tir.Expr) -> Value:
    shape = [*x.shape[:axis], extent, *x.shape[axis + 1 :]]
    return b.remap(x, shape, lambda *o: [*o[:axis], o[axis] + start, *o[axis + 1 :]])


@onnx_op("ConcatFromSequence", sequences=True)
def concat(b: Builder, node: OnnxNode, sequence: Item) -> Value:
    """All elements, one after another or along a new axis."""
    stacks = bool(node.int("new_axis"))
    if isinstance(sequence, Stacked):
        axis = normal_axis(node.int("axis"), sequence.stack.rank - (not stacks))
        return _joined(b, sequence.stack, axis, stacks=stacks)
    items = list(_items(sequence))
    axis = normal_axis(node.int("axis"), items[0].rank + stacks)
    if stacks:
        items = [b.reshape(v, [*v.shape[:axis], 1, *v.shape[axis:]]) for v in items]
    return b.concat(items, axis)


def _joined(b: Builder, stack: Value, axis: int, *, stacks: bool) -> Value:
    """Elements along the first axis, along another one instead."""
    moved = b.transpose(stack, [*range(1, axis + 1), 0, *range(axis + 1, stack.rank)])
    if stacks:
        return moved
    joined = tidy(moved.shape[axis] * moved.shape[axis + 1])
    return b.reshape(moved, [*moved.shape[:axis], joined, *moved.shape[axis + 2 :]])


@onnx_op("SequenceMap", sequences=True)
def map_(b: Builder, node: OnnxNode, sequence: Item, *others: Item) -> Sequence[Item]:
    """A body for each element; other sequences are walked along, tensors stay."""
    rows: list[Sequence[Item]] = []
    for number, value in enumerate(_items(sequence)):
        beside = [o.items[number] if isinstance(o, Tensors) else o for o in others]
        rows.append(node.build(node.graph("body"), b, lambda v: v, [value, *beside]))
    columns = list(zip(*rows, strict=True)) or [()] * len(node.graph("body").output)
    if any(not isinstance(v, Value) for column in columns for v in column):
        raise Unknown("a body that gives no tensors is mapped over a sequence")
    return [Tensors(tuple(v for v in column if isinstance(v, Value))) for column in columns]


@onnx_op("Optional", "OptionalGetElement", sequences=True)
def optional(b: Builder, node: OnnxNode, item: Item = None) -> Sequence[Item]:
    """What is held stands for itself; of nothing there is no element."""
    if item is None and node.op == "OptionalGetElement":
        raise ValueError("the optional holds nothing")
    return [item]


@onnx_op("OptionalHasElement", sequences=True)
def has_element(b: Builder, node: OnnxNode, item: Item = None) -> Value:
    """Whether there is something."""
    return b.constant(np.bool_(item is not None))
