"""`Sizes`: a tensor of integers that are known from the sizes of a call alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
        def element(*indices: tir.Expr) -> tir.Expr:
            flat: tir.Expr = tir.Const(0)
            for dim, index in zip(self.shape, indices, strict=True):
                flat = flat * dim + index
            result = self.values[-1]
            for number, value in reversed(list(enumerate(self.values[:-1]))):
                result = select(flat.eq(number), value, result)
            return result.to(self.dtype)

        return [compute(names[0], self.shape, element, self.dtype)]
