"""`Count`: 0, 1, 2, … as far as data says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.dtypes import i64
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, SizeOf
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute

__all__ = ["Count"]


@dataclass(frozen=True)
class Count(Op):
    """The numbers (i64) below the only element of the input (i64), which is `size`.

    It is a size variable of its own: whatever is computed from the result has a shape that only
    data tells.
    """

    size: tir.Var

    @property
    def learns(self) -> tuple[tuple[tir.Var, int, int], ...]:
        """The sizes that data tells: (variable, input, element of it)."""
        return ((self.size, 0, 0),)

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        if any(tir.int_value(dim) != 1 for dim in inputs[0].shape):
            raise ValueError(f"a tensor of shape {inputs[0]} tells a length, and must be a scalar")
        return [TensorType(i64, (self.size,))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        return [np.arange(int(arrays[0].item()), dtype=np.int64)]

    def unforeseen(self, arrays: Sequence[Array]) -> int:
        return int(arrays[0].item())

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        return [compute(names[0], (self.size,), lambda i: i, i64)]
