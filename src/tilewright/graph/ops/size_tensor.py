"""`Sizes`: a tensor of integers that are known from the sizes of a call alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.dtypes import DType
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, SizeOf
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute, select

__all__ = ["Sizes"]


@dataclass(frozen=True)
class Sizes(Op):
    """The elements `values` in row-major order, in an array of `shape`."""

    values: tuple[tir.Expr, ...]
    shape: tuple[int, ...]
    dtype: DType

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        return [TensorType(self.dtype, tuple(tir.Const(d) for d in self.shape))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        numbers = [size_of(value) for value in self.values]
        return [np.array(numbers, dtype=self.dtype.numpy).reshape(self.shape)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        values = [value.to(self.dtype) for value in self.values]  # questions beside sizes

        def element(*indices: tir.Expr) -> tir.Expr:
            flat: tir.Expr = tir.Const(0)
            for dim, index in zip(self.shape, indices, strict=True):
                flat = flat * dim + index
            return _chosen(flat, 0, values)

        return [compute(names[0], self.shape, element, self.dtype)]


FEW: Final = 16
"""Values that are asked for one after the other; of more, halves are."""


def _chosen(place: tir.Expr, first: int, values: Sequence[tir.Expr]) -> tir.Expr:
    """The one of some values, the first of which has the number `first`, that has a number."""
    if len(values) > FEW:
        half = len(values) // 2
        below = _chosen(place, first, values[:half])
        return select(place < first + half, below, _chosen(place, first + half, values[half:]))
    result = values[-1]
    for number, value in reversed(list(enumerate(values[:-1], first))):
        result = select(place.eq(number), value, result)
    return result
