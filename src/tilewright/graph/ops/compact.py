"""`Compact`: the places of elements that are not zero. How many there are only data tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.dtypes import i64
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, SizeOf
from tilewright.graph.ops.serial import Row
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, seq

__all__ = ["Compact"]


@dataclass(frozen=True)
class Compact(Op):
    """The places (i64, ascending) of the true elements of a vector of bools.

    Their number `size` is a size variable of its own. Its value is the only element of the second
    input (i64), which is computed before: with it the memory of the result can be placed.
    """

    linear = True

    size: tir.Var

    @property
    def learns(self) -> tuple[tuple[tir.Var, int, int], ...]:
        """The sizes that data tells: (variable, input, element of it)."""
        return ((self.size, 1, 0),)

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        if inputs[0].rank != 1:
            raise ValueError(f"conditions have {inputs[0].rank} dimensions, and must have one")
        return [TensorType(i64, (self.size,))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        return [np.flatnonzero(arrays[0]).astype(np.int64)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        chosen = inputs[0]
        row = Row(())
        result = tir.Buffer(names[0], (self.size,), i64)
        found = row.private(f"{names[0]}_found", 1, i64)

        def kept(p: tir.Var) -> tir.Stmt:
            here = tir.minimum(row.load(found, 0), self.size - 1)
            more = row.store(found, 0, row.load(found, 0) + 1)
            return tir.If(row.load(chosen.buffer, p), seq(row.store(result, here, p), more))

        body = seq(
            row.loop(self.size, lambda p: row.store(result, p, tir.Const(0))),
            row.store(found, 0, tir.Const(0)),
            row.loop(chosen.shape[0], kept),
        )
        return [Tensor(result, row.nest(names[0], body), (chosen,))]
