"""Shapes as data, and tensors with another shape: nothing here computes on elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.frontend.onnx.limits import MAX_RANK
from tilewright.frontend.onnx.node import OnnxNode, normal_axis, normal_border
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.told import elements, expanded, reshaped
from tilewright.graph import Builder, Value
from tilewright.graph.guards import decided, holds, is_one
from tilewright.graph.ir import Shape
from tilewright.graph.sizes import dims_equal, fixed, product, tidy
from tilewright.graph.spread import broadcast_shape
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__ = ["MANY_DIMS", "aligned", "known_axes", "known_integers", "known_numbers"]

MANY_DIMS: Final = 8
"""Dimensions of tensors of networks: what has more is worked on a few at a time."""


def known_integers(
    b: Builder, node: OnnxNode, name: str, given: Value | None
) -> list[tir.Expr] | None:
    """Integers that are an attribute in old opsets and an input in new ones; None if left out.

    The node is declined if they are computed from data.
    """
    if given is None:
        numbers = node.ints(name)
        return None if numbers is None else [tir.Const(n) for n in numbers]
    found = b.integers(given)
    return node.decline(f"{name} depend on data") if found is None else found


def known_numbers(b: Builder, node: OnnxNode, name: str, given: Value | None) -> list[int] | None:
    """The same, for what must be known as numbers (axes)."""
    found = known_integers(b, node, name, given)
    if found is None:
        return None
    numbers = decided(b, found, name)
    return node.decline(f"{name} depend on sizes") if numbers is None else numbers


def known_axes(
    b: Builder, node: OnnxNode, rank: int, given: Value | None = None
) -> list[int] | None:
    """The attribute or input `axes`, counted from the front; None if left out."""
    found = known_numbers(b, node, "axes", given)
    return None if found is None else [normal_axis(a, rank) for a in found]


def aligned(b: Builder, node: OnnxNode, x: Value, y: Value) -> Value:
    """The second operand as broadcasting takes it: before opset 7 it may begin at an `axis`."""
    if node.opset >= 7 or not node.has("axis"):
        return y
    behind = x.rank - normal_border(node.int("axis"), x.rank) - y.rank
    return b.reshape(y, [*y.shape, *(1 for _ in range(behind))])


@onnx_op("Shape")
def shape(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The dimensions, or some of them."""
    end = node.int("end", x.rank)
    return b.sizes(x.shape[slice(node.int("start"), end)])


@onnx_op("Size")
def size(b: Builder, node: OnnxNode, x: Value) -> Value:
    """How many elements."""
    return b.reshape(b.sizes([product(x.shape)]), ())


@onnx_op("Reshape")
def reshape(b: Builder, node: OnnxNode, x: Value, wanted: Value | None = None) -> Value:
    """The same elements in another shape: 0 keeps a dimension, -1 takes what is left."""
    allow_zero = bool(node.int("allowzero"))
    if wanted is not None and b.integers(wanted) is None:
        return reshaped(b, x, elements(b, node, "sizes", wanted), allow_zero=allow_zero)
    dims = known_integers(b, node, "shape", wanted)
    if dims is None:
        node.decline("no shape is given")
    meant = _meant(b, x.shape, dims, allow_zero=allow_zero)
    return b.reshape(x, resolved(x.shape, meant, allow_zero=allow_zero))


def _meant(
    b: Builder, shape: Shape, wanted: Sequence[tir.Expr], *, allow_zero: bool
) -> list[tir.Expr]:
    """What sizes among the numbers of a shape mean in a run that makes them 0 or -1.

    A size of zero has another meaning only beside a -1: without that there are either as many
    elements as the size says, or not as many as the result has.
    """
    meant = list(wanted)
    for k, dim in enumerate(wanted):
        if fixed(dim) is None and holds(b, dim.eq(-1), f"size {k} = -1"):
            meant[k] = tir.Const(-1)
    if allow_zero or not any(fixed(d) == -1 for d in meant):
        return meant
    for k, (dim, own) in enumerate(zip(meant, shape, strict=False)):
        if fixed(dim) is None and not dims_equal(dim, own):
            keeps = dim.eq(0) & own.ne(0)
            meant[k] = own if holds(b, keeps, f"size {k} = 0") else dim
    return meant


def resolved(shape: Shape, wanted: Sequence[tir.Expr], *, allow_zero: bool = False) -> Shape:
    """The shape that `Reshape` means."""
    dims = [shape[k] if fixed(d) == 0 and not allow_zero else d for k, d in enumerate(wanted)]
    open_places = [k for k, d in enumerate(dims) if fixed(d) == -1]
    for k in open_places:
        # Dimensions that stand on both sides cancel, also if one of them is zero.
        left, right = list(shape), [d for d in dims if fixed(d) != -1]
        for dim in [*right]:
            if dim in left:
                left.remove(dim)
                right.remove(dim)
        dims[k] = tidy(product(left) // product(right))
    return tuple(dims)


@onnx_op("Flatten")
def flatten(b: Builder, node: OnnxNode, x: Value) -> Value:
    """A matrix: the dimensions before `axis`, and those from it on."""
    axis = normal_border(node.int("axis", 1), x.rank)
    return b.reshape(x, (product(x.shape[:axis]), product(x.shape[axis:])))


@onnx_op("Squeeze")
def squeeze(b: Builder, node: OnnxNode, x: Value, axes: Value | None = None) -> Value:
    """Without some dimensions of size one; without all of them if none are named."""
    dropped = known_axes(b, node, x.rank, axes)
    if dropped is None or (not dropped and axes is None):  # an attribute without any names none
        dropped = [k for k, d in enumerate(x.shape) if is_one(b, d, f"dimension {k}")]
    return b.reshape(x, [d for k, d in enumerate(x.shape) if k not in dropped])


@onnx_op("Unsqueeze")
def unsqueeze(b: Builder, node: OnnxNode, x: Value, axes: Value | None = None) -> Value:
    """With dimensions of size one at places of the result."""
    count = len(known_numbers(b, node, "axes", axes) or ())
    added = known_axes(b, node, x.rank + count, axes) or []
    if len(set(added)) != count:
        raise ValueError("an axis is named twice")
    dims = iter(x.shape)
    result = [tir.Const(1) if k in added else next(dims) for k in range(x.rank + count)]
    return b.reshape(x, result)


@onnx_op("Expand")
def expand(b: Builder, node: OnnxNode, x: Value, wanted: Value) -> Value:
    """Broadcast with a shape; dimensions of both may be one."""
    x, dims = expanded(b, x, elements(b, node, "sizes", wanted))
    x = _repeated(b, x, dims)
    return b.expand(x, broadcast_shape(b, dims, x.shape))


def _repeated(b: Builder, x: Value, dims: Sequence[tir.Expr]) -> Value:
    """With sizes that must become a number as that number where a run has one element there."""
    wanted = [None] * (x.rank - len(dims)) + [fixed(d) for d in dims]
    pairs = list(zip(x.shape, wanted[len(wanted) - x.rank :], strict=True))
    maybe = [fixed(have) is None and want is not None and want > 1 for have, want in pairs]
    if not any(maybe):
        return x
    shape = [
        select(have.eq(1), want or 0, have) if may else have
        for (have, want), may in zip(pairs, maybe, strict=True)
    ]

    def places(*o: tir.Expr) -> list[tir.Expr]:
        ends = zip(o, x.shape, maybe, strict=True)
        return [tir.minimum(at, size - 1) if may else at for at, size, may in ends]

    return b.remap(x, shape, places)


@onnx_op("Transpose")
def transpose(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Dimensions in another order, reversed by default."""
    order = node.ints("perm") or list(reversed(range(x.rank)))
    if sorted(order) != list(range(x.rank)):
        raise ValueError(f"{order[:MAX_RANK]} is no order of {x.rank} dimensions")
    return b.transpose(x, order)
