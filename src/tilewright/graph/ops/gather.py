"""`Gather`: elements of a tensor at places that other tensors hold.

It is `Remap` with one thing more: an index expression may use elements of integer tensors. Rows of
an embedding, ONNX's `GatherND` and `GatherElements`, reversed sequences and the corners of a
sampled image differ in nothing but these expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.dtypes import index
from tilewright.graph.ir import Array, Shape, TensorType
from tilewright.graph.ops.ends import require_limits
from tilewright.graph.ops.map import evaluate_expr
from tilewright.graph.ops.movement import axis
from tilewright.graph.ops.op import Limit, Op, Role, SizeOf
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute
from tilewright.tensor.same import always_the_same
from tilewright.tensor.visit import substitute, walk

__all__ = ["Gather", "Read", "inside", "limits_of", "picked", "places_in", "values_at"]

Read = tuple[int, tuple[tir.Expr, ...]]
"""An element of an index tensor: the number of the input, and the place in it."""


@always_the_same
def picked(number: int) -> tir.Var:
    """The variable that stands for the element that read `number` gives; always the same one."""
    return tir.Var(f"p{number}")


@dataclass(frozen=True)
class Gather(Op):
    """`out[o0, o1, …] = in0[places]`; `places` are expressions over `axis(k)` and `picked(n)`.

    `picked(n)` is the element of an integer input at the place `reads[n]`, over `axis(k)`. A
    negative place counts from the end. For a place outside of the tensor, that data says, the
    nearest element is taken; what shapes say must be inside, or nothing runs. So nothing else is
    ever read.
    """

    role = Role.MOVE

    shape: Shape
    reads: tuple[Read, ...]
    places: tuple[tir.Expr, ...]

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        result = [TensorType(inputs[0].dtype, self.shape)]
        require_limits(self.limits(inputs, result))
        return result

    def limits(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[Limit]:
        yield from limits_of(inputs[0].shape, self.shape, self.reads, self.places, inputs)

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        data = arrays[0]
        shape = tuple(size_of(d) for d in self.shape)
        if 0 in shape or data.size == 0:
            return [np.zeros(shape, data.dtype)]
        places = places_in(data.shape, shape, self.reads, self.places, arrays, size_of)
        return [np.array(np.broadcast_to(data[places], shape))]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        data = inputs[0]

        def element(*indices: tir.Expr) -> tir.Expr:
            values = values_at(self.reads, inputs, indices)
            places = [inside(p, d, values) for p, d in zip(self.places, data.shape, strict=True)]
            return data[tuple(places)].to(data.dtype)

        return [compute(names[0], self.shape, element, data.dtype)]


def places_in(
    target: Sequence[int],
    shape: Sequence[int],
    reads: Sequence[Read],
    places: Sequence[tir.Expr],
    arrays: Sequence[Array],
    size_of: SizeOf,
) -> tuple[Array, ...]:
    """Where in an array of shape `target` each point of a space of `shape` lies, in NumPy."""
    grid = np.ogrid[tuple(slice(0, d) for d in shape)]
    bound: dict[tir.Var, object] = {axis(k): g for k, g in enumerate(grid)}
    for number, (source, where) in enumerate(reads):
        at = tuple(evaluate_expr(w, bound, size_of) for w in where)
        bound[picked(number)] = arrays[source][at].astype(np.int64)
    found = [evaluate_expr(p, bound, size_of) for p in places]
    return tuple(
        np.clip(np.where(p < 0, p + d, p), 0, d - 1) for p, d in zip(found, target, strict=True)
    )


def values_at(
    reads: Sequence[Read], inputs: Sequence[Tensor], indices: Sequence[tir.Expr]
) -> dict[tir.Var, tir.Expr]:
    """What the variables of places stand for at one point, in a tensor program."""
    values: dict[tir.Var, tir.Expr] = {axis(k): i for k, i in enumerate(indices)}
    for number, (source, where) in enumerate(reads):
        dims = inputs[source].shape
        at = tuple(inside(w, d, values) for w, d in zip(where, dims, strict=True))
        values[picked(number)] = inputs[source][at].to(index)
    return values


def limits_of(
    target: Shape,
    shape: Shape,
    reads: Sequence[Read],
    places: Sequence[tir.Expr],
    types: Sequence[TensorType],
) -> Iterator[Limit]:
    """What keeps reads and places inside, for the points of a space of `shape`."""
    extents: dict[tir.Expr, tir.Expr] = {axis(k): d for k, d in enumerate(shape)}
    pairs = list(zip(places, target, strict=True))
    for source, where in reads:
        pairs += zip(where, types[source].shape, strict=True)
    for place, dim in pairs:
        most = extents.get(place, tir.Const(1))
        yield (place + 1 if isinstance(place, tir.Const) else most), dim, shape


def inside(place: tir.Expr, dim: tir.Expr, values: Mapping[tir.Var, tir.Expr]) -> tir.Expr:
    """A place in a tensor program, brought inside of the dimension unless shapes say that it is."""
    at = substitute(place, values)
    is_plain = isinstance(place, tir.Var | tir.Const)
    if is_plain and not any(isinstance(part, tir.Load) for part in walk(at)):
        return at
    counted = tir.Select(at < 0, at + dim, at)
    return tir.maximum(tir.minimum(counted, dim - 1), 0)
