"""`Sizes`: a tensor of integers that are known from the sizes of a call alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.dtypes import DType, f64, index
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, SizeOf
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute, select
from tilewright.tensor.node import Node
from tilewright.tensor.visit import rewrite

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
        values = [rewrite(value, _asked).to(self.dtype) for value in self.values]

        def element(*indices: tir.Expr) -> tir.Expr:
            flat: tir.Expr = tir.Const(0)
            for dim, place in zip(self.shape, indices, strict=True):
                flat = flat * dim + place
            return _chosen(flat, 0, values)

        return [compute(names[0], self.shape, element, self.dtype)]


def _asked(part: Node) -> tir.Expr | None:
    """A comparison of sizes that is made when it runs.

    Kernels take sizes to be at least one, and would know the answer; here they may be zero. The
    sign of a difference is that of any float that it becomes.
    """
    if not isinstance(part, tir.Compare) or part.a.dtype != index:
        return None
    return type(part)((part.a - part.b).to(f64), tir.const(0.0, f64))


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
