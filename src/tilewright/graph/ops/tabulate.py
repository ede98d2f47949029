"""`Tabulate`: a tensor whose elements follow from their places and the sizes alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.dtypes import DType
from tilewright.graph.ir import Array, Shape, TensorType
from tilewright.graph.ops.map import evaluate_expr
from tilewright.graph.ops.movement import axis
from tilewright.graph.ops.op import Op, Role, SizeOf
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute
from tilewright.tensor.visit import substitute

__all__ = ["Tabulate"]


@dataclass(frozen=True)
class Tabulate(Op):
    """`out[o0, o1, …] = value`, an expression over `axis(k)` and sizes; stored as `dtype`."""

    role = Role.MAP
    shape: Shape
    value: tir.Expr
    dtype: DType

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        return [TensorType(self.dtype, self.shape)]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        shape = tuple(size_of(d) for d in self.shape)
        grid = np.ogrid[tuple(slice(0, d) for d in shape)]
        bound: dict[tir.Var, object] = {axis(k): g for k, g in enumerate(grid)}
        result = evaluate_expr(self.value, bound, size_of)
        return [np.array(np.broadcast_to(result, shape), dtype=self.dtype.numpy)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        def element(*indices: tir.Expr) -> tir.Expr:
            values = {axis(k): i for k, i in enumerate(indices)}
            return substitute(self.value, values).to(self.dtype)

        return [compute(names[0], self.shape, element, self.dtype)]
