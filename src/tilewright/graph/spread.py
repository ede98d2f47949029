"""Broadcasting: what is done to tensors whose sizes meet.

    x[n] + z[m]  is  x'[w] + z'[w],  w = m if n = 1 else n

A graph takes two sizes that meet for equal, which is what they are, and what kernels can rely on:
its checks refuse a run in which one of them is one. Such a run takes another version of the model
(`model/spreading.py`), with that size known. Where no input has it (`x[1:]` of two rows, a number
of places that data tell), the version is built with what is here: every element is looked up by a
place that is brought inside of a dimension of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tilewright.graph.ir import Shape, Value
from tilewright.graph.ops import Remap, Spread, axis
from tilewright.graph.sizes import (
    as_shape,
    broadcast,
    dims_equal,
    fixed,
    is_one_or_none,
    never_exceeds,
)
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

if TYPE_CHECKING:
    from tilewright.graph.builder import Builder

__all__ = [
    "broadcast_shape",
    "met",
    "onto",
    "spread_shape",
    "stretched",
    "stretched_batches",
    "widened",
]

ZERO: Final = tir.Const(0)
ONE: Final = tir.Const(1)


def met(b: Builder, values: Sequence[Value]) -> list[Value]:
    """Tensors that are broadcast together, such that only numbers of one are left to repeat."""
    shapes = [value.shape for value in values]
    wide = [stretched(b, value, shapes) for value in values]
    shape = broadcast(*(value.shape for value in wide))
    return [widened(b, value, shape) for value in wide]


def stretched_batches(b: Builder, left: Value, right: Value) -> tuple[Value, Value]:
    """The same for the dimensions along which products are stacked."""
    shapes = [(*x.shape[:-2], ONE, ONE) for x in (left, right)]
    return stretched(b, left, shapes), stretched(b, right, shapes)


def widened(b: Builder, x: Value, shape: Shape) -> Value:
    """A tensor repeated where it has one element or none, and a result has any number."""
    own = shape[len(shape) - x.rank :]
    one = [k for k, d in enumerate(x.shape) if is_one_or_none(d) and not dims_equal(d, own[k])]
    if not one:
        return x
    dims = as_shape(own[k] if k in one else d for k, d in enumerate(x.shape))
    places = tuple(ZERO if k in one else axis(k) for k in range(x.rank))
    unsure = (k for k in one if not never_exceeds(ONE, x.shape[k], (dims[k],)))
    spread = Spread(tuple((x.shape[k], dims[k]) for k in unsure))
    return b.add(Remap(dims, places, spread=spread), x)


def broadcast_shape(b: Builder, *shapes: Sequence[tir.Expr]) -> Shape:
    """The shape of what these are broadcast to."""
    plain = broadcast(*shapes)
    return spread_shape(*shapes) if b.spreads else plain


def spread_shape(*shapes: Sequence[tir.Expr]) -> Shape:
    """The shape of an elementwise result, whatever sizes are one."""
    rank = max((len(shape) for shape in shapes), default=0)
    return as_shape(_widest(_at(shapes, axis)) for axis in range(-rank, 0))


def stretched(b: Builder, x: Value, others: Iterable[Sequence[tir.Expr]]) -> Value:
    """A tensor repeated where it has one element, and others that it is broadcast with have more.

    Sizes that differ in another way are left as they are: it is for others to refuse them. Mostly
    sizes that meet are equal, and nothing is done.
    """
    if not b.spreads or b.strict:
        return x
    known = list(others)
    wide = [_stretched(d, _at(known, k - x.rank)) for k, d in enumerate(x.shape)]
    changed = [not dims_equal(d, w) for d, w in zip(x.shape, wide, strict=True)]
    if not any(changed):
        return x

    def places(*o: tir.Expr) -> list[tir.Expr]:
        found = zip(o, x.shape, changed, strict=True)
        return [tir.minimum(at, size - 1) if moves else at for at, size, moves in found]

    return b.remap(x, wide, places)


def onto(b: Builder, x: Value, shape: Shape) -> Value:
    """A tensor that is broadcast to a shape in one direction: what has one there has one here."""
    own = (*[ONE] * (x.rank - len(shape)), *shape[max(len(shape) - x.rank, 0) :])
    ones = [fixed(wide) == 1 and fixed(dim) != 1 for dim, wide in zip(x.shape, own, strict=True)]
    for dim, is_one in zip(x.shape, ones, strict=True):
        if is_one and fixed(dim) is not None:
            raise ValueError(f"{fixed(dim)} elements cannot be broadcast to one")
    if not any(ones):
        return x
    return b.expand(x, [1 if o else d for d, o in zip(x.shape, ones, strict=True)])


def _at(shapes: Iterable[Sequence[tir.Expr]], axis: int) -> list[tir.Expr]:
    """The dimensions at a place that counts from the end."""
    return [shape[axis] for shape in shapes if len(shape) >= -axis]


def _stretched(dim: tir.Expr, others: Sequence[tir.Expr]) -> tir.Expr:
    unlike = [d for d in others if fixed(d) != 1 and not dims_equal(d, dim)]
    if fixed(dim) is not None or not unlike:
        return dim
    return select(dim.eq(1), _widest(unlike), dim)


def _widest(dims: Sequence[tir.Expr]) -> tir.Expr:
    """The first of some dimensions that is not one; a number if there is any other than one."""
    several = [d for d in dims if fixed(d) != 1]
    number = next((d for d in several if fixed(d) is not None), None)
    if number is not None:
        return number
    return _stretched(several[0], several[1:]) if several else ONE
