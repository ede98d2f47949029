"""Pointwise convolutions move in front of upsampling: there are fewer places there.

Interpolation adds up places of one channel, a convolution with windows of one element adds up
channels of one place, so either may be first:

Before:  y = conv (resize x [n, 16, 16, c] → [n, 128, 128, c]), weights [o, c, 1, 1]
After:   y = resize (conv x, weights)

What is joined with other data along the channels is multiplied with its own part of the weights:

Before:  y = conv (concat (resize x) z), weights
After:   y = resize (conv x, weights of x) + conv z, weights of z

Heads of segmentation and detection networks join maps of several scales in this way. Sums are
added up in another order; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np

from tilewright.graph.ir import Array, Node, Value
from tilewright.graph.ops import Concat, Gather, Map, Remap, axis
from tilewright.graph.ops.map import argument
from tilewright.graph.ops.window import Conv
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import fixed, product
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars

__all__ = ["multiply_before_upsampling"]

_FEWER: Final = 2
"""How many times fewer places there must be in front of it: sums go through memory once more."""


@dataclass(frozen=True)
class _Upsampled:
    """A value that is a sum of `moved` places of `source`; `op` weights them, None for one place.

    `inputs` are those of `op`: None stands for the next of `moved`.
    """

    source: Value
    moved: tuple[Node, ...]
    op: Map | None = None
    inputs: tuple[Value | None, ...] = ()

    def of(self, b: Rewriter, source: Value) -> Value:
        """The same for another source, which may have another number of channels."""
        parts = [b.add(_with_channels(n.op, source), source, *n.inputs[1:]) for n in self.moved]
        if self.op is None:
            return parts[0]
        rest = iter(parts)
        return b.add(self.op, *(next(rest) if v is None else v for v in self.inputs))


def multiply_before_upsampling(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the pictures above."""
    op = node.op
    if not isinstance(op, Conv) or op.groups != 1 or any(op.pads) or set(op.strides) != {1}:
        return None
    x, held = inputs
    weights = b.contents(held)
    if weights is None or set(weights.shape[2:]) != {1} or x.dtype != op.dtype:
        return None
    found = b.made_by(x, Concat)
    if found is None:
        return _multiplied_first(b, op, x, weights)
    concat, joined = found
    if concat.axis != x.rank - 1 or not b.is_read_once(x):
        return None
    return _part_by_part(b, op, joined.inputs, weights)


def _part_by_part(b: Rewriter, op: Conv, parts: Sequence[Value], weights: Array) -> Value | None:
    """The sum over parts; those that are not upsampled stay together."""
    sums: list[Value] = []
    rest: list[tuple[Value, Array]] = []
    start = 0
    for part in parts:
        channels = fixed(part.shape[-1])
        if channels is None:
            return None
        own = weights[:, start : start + channels]
        start += channels
        made = _multiplied_first(b, op, part, own)
        if made is None:
            rest.append((part, own))
        else:
            sums.append(made)
    if not sums:
        return None
    if rest:
        together = b.concat([part for part, _ in rest], rest[0][0].rank - 1)
        own = np.concatenate([w for _, w in rest], axis=1)
        sums.append(b.add(op, together, b.constant(own, "weights")))
    return reduce(lambda total, more: b.map(lambda p, q: p + q, total, more), sums)


def _multiplied_first(b: Rewriter, op: Conv, x: Value, weights: Array) -> Value | None:
    """conv(resize x) as resize(conv x), if that is less work."""
    found = _upsampled(b, x)
    if found is None or not b.is_read_once(x):
        return None
    # Resizing goes dimension by dimension: all of them must be found before places are counted.
    levels = [found]
    while (inner := _upsampled(b, levels[-1].source)) is not None:
        levels.append(inner)
    many, few = (fixed(product(v.shape[:-1])) for v in (x, levels[-1].source))
    if many is None or few is None or many < _FEWER * few or weights.shape[0] > weights.shape[1]:
        return None
    made = b.add(op, levels[-1].source, b.constant(weights, "weights"))
    for level in reversed(levels):
        made = level.of(b, made)
    return made


def _upsampled(b: Rewriter, x: Value) -> _Upsampled | None:
    node = b.producer(x)
    if node is None:
        return None
    if _moves_places(node):
        return _Upsampled(node.inputs[0], (node,))
    if not isinstance(node.op, Map) or node.op.dtype != x.dtype:
        return None
    makers = [b.producer(value) for value in node.inputs]
    moved = [m is not None and _moves_places(m) and m.output.dtype == x.dtype for m in makers]
    sources = {m.inputs[0] for m, is_moved in zip(makers, moved, strict=True) if m and is_moved}
    if len(sources) != 1:
        return None
    others = [v for v, is_moved in zip(node.inputs, moved, strict=True) if not is_moved]
    if any(v.rank and fixed(v.shape[-1]) != 1 for v in others):
        return None  # a weight for each channel does not go through a sum of channels
    places = {argument(k, v.dtype) for k, v in enumerate(node.inputs) if moved[k]}
    if _degree(node.op.body, places) != 1:
        return None
    (source,) = sources
    inputs = [None if is_moved else v for v, is_moved in zip(node.inputs, moved, strict=True)]
    return _Upsampled(
        source,
        tuple(m for m, is_moved in zip(makers, moved, strict=True) if m and is_moved),
        node.op,
        tuple(inputs),
    )


def _moves_places(node: Node) -> bool:
    """Whether all channels of a place come from one place, whole and in order."""
    op, x = node.op, node.inputs[0] if node.inputs else None
    if x is None or x.rank < 3:
        return False
    channel = axis(x.rank - 1)
    match op:
        case Gather():
            places, beside = op.places, [at for _, where in op.reads for at in where]
        case Remap() if op.inside == tir.TRUE:
            places, beside = op.indices, []
        case _:
            return False
    if len(op.shape) != x.rank or op.shape[-1] != x.shape[-1] or places[-1] is not channel:
        return False
    return not any(channel in free_vars(at) for at in (*places[:-1], *beside))


def _with_channels(op: object, source: Value) -> Gather | Remap:
    """The same places of a source with another number of channels."""
    assert isinstance(op, Gather | Remap)
    return replace(op, shape=(*op.shape[:-1], source.shape[-1]))


def _degree(expr: tir.Expr, places: set[tir.Var]) -> int | None:
    """1 for sums of places with weights, 0 where there is none in it, None for anything else."""
    if not free_vars(expr) & places:
        return 0
    match expr:
        case tir.Var():
            return 1
        case tir.Add() | tir.Sub():
            degrees = {_degree(expr.a, places), _degree(expr.b, places)}
            return 1 if degrees == {1} else None
        case tir.Mul():
            degrees = {_degree(expr.a, places), _degree(expr.b, places)}
            return 1 if degrees == {0, 1} else None
        case tir.Div():
            parts = _degree(expr.a, places), _degree(expr.b, places)
            return 1 if parts == (1, 0) else None
    return None
