"""Folding over dimensions: sums, products, extremes, and the places of extremes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.dtypes import i64, u8
from tilewright.graph.ir import Array, Shape, TensorType
from tilewright.graph.ops.op import Op, Role, SizeOf, computed_as
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    Axis,
    Tensor,
    compute,
    max_over,
    min_over,
    product_over,
    reduce_axis,
    select,
    sum_over,
)

__all__ = ["ArgReduce", "Reduce", "reduced_shape"]

_BUILD = {
    tir.Fold.ADD: sum_over,
    tir.Fold.MUL: product_over,
    tir.Fold.MIN: min_over,
    tir.Fold.MAX: max_over,
}
_NUMPY = {
    tir.Fold.ADD: np.add,
    tir.Fold.MUL: np.multiply,
    tir.Fold.MIN: np.minimum,
    tir.Fold.MAX: np.maximum,
}


_OF_BOOLS = {
    tir.Fold.ADD: tir.Fold.MAX,
    tir.Fold.MUL: tir.Fold.MIN,
    tir.Fold.MIN: tir.Fold.MIN,
    tir.Fold.MAX: tir.Fold.MAX,
}


def reduced_shape(shape: Shape, axes: Sequence[int]) -> Shape:
    """The shape with the folded dimensions kept as ones."""
    if any(not 0 <= axis < len(shape) for axis in axes):
        raise ValueError(f"axes {list(axes)} of a tensor with {len(shape)} dimensions")
    return tuple(tir.Const(1) if d in axes else dim for d, dim in enumerate(shape))


@dataclass(frozen=True)
class Reduce(Op):
    """A fold over `axes`, which stay as dimensions of size one. Bools fold as `and` and `or`."""

    role = Role.REDUCE

    fold: tir.Fold
    axes: tuple[int, ...]

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        return [TensorType(inputs[0].dtype, reduced_shape(inputs[0].shape, self.axes))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        (source,) = arrays
        if source.dtype == object:
            result = _NUMPY[self.fold].reduce(source, axis=self.axes, keepdims=True)
            return [result]
        wide = source.astype(np.float64) if source.dtype.kind not in "iub" else source
        fold = _NUMPY[self.fold]
        with np.errstate(all="ignore"):
            if source.size == 0:
                start = _identity(self.fold, source)
                folded = fold.reduce(wide, axis=self.axes, keepdims=True, initial=start)
            else:
                folded = fold.reduce(wide, axis=self.axes, keepdims=True)
            return [np.asarray(folded).astype(source.dtype)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        (source,) = inputs
        shape = reduced_shape(source.shape, self.axes)
        axes: dict[int, Axis] = {d: reduce_axis(source.shape[d], f"k{d}") for d in self.axes}
        wide, fold = computed_as(source.dtype), self.fold
        if source.dtype.is_bool:
            wide, fold = u8, _OF_BOOLS[fold]

        def element(*indices: tir.Expr) -> object:
            where = tuple(axes.get(d, i) for d, i in enumerate(indices))
            return _BUILD[fold](source[where].to(wide), *axes.values())

        folded = compute(names[0], shape, element, wide)  # type: ignore[arg-type]
        if wide == source.dtype:
            return [folded]
        return [
            compute(f"{names[0]}_n", shape, lambda *i: folded[i].to(source.dtype), source.dtype)
        ]

    def attributes(self) -> dict[str, object]:
        return {"fold": self.fold, "axes": self.axes}


def _identity(fold: tir.Fold, source: Array) -> float | int:
    from tilewright.dtypes import dtype_of
    from tilewright.tensor.build import fold_identity

    return fold_identity(fold, dtype_of(source.dtype)).value


@dataclass(frozen=True)
class ArgReduce(Op):
    """Where the least or greatest element along `axis` is; the dimension stays with size one.

    Of several equal ones the first counts, or the last.
    """

    linear = True

    fold: tir.Fold
    axis: int
    last: bool = False

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        return [TensorType(i64, reduced_shape(inputs[0].shape, (self.axis,)))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        (source,) = arrays
        find = np.argmax if self.fold is tir.Fold.MAX else np.argmin
        if self.last:
            flipped = np.flip(source, self.axis)
            place = source.shape[self.axis] - 1 - find(flipped, axis=self.axis, keepdims=True)
        else:
            place = find(source, axis=self.axis, keepdims=True)
        return [np.asarray(place, dtype=np.int64)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        """First the extreme, then the first (last) place where it stands."""
        (source,) = inputs
        (best,) = Reduce(self.fold, (self.axis,)).lower(inputs, [f"{names[0]}_best"])
        shape = reduced_shape(source.shape, (self.axis,))
        extent = source.shape[self.axis]
        k = reduce_axis(extent, "k")

        def element(*indices: tir.Expr) -> object:
            where = tuple(k if d == self.axis else i for d, i in enumerate(indices))
            outside: tir.Expr = tir.Const(-1) if self.last else tir.as_index(extent)
            hit = source[where].eq(best[indices])
            if source.dtype.is_float:  # the extreme is NaN if an element is
                hit = hit | source[where].ne(source[where])
            place = select(hit, k, outside)
            return max_over(place, k) if self.last else min_over(place, k)

        return [compute(names[0], shape, element, i64)]  # type: ignore[arg-type]
