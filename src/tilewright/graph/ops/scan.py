"""`Cumulate`: running sums and products along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, SizeOf, computed_as
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, combine, compute, fold_identity, make_block, seq

__all__ = ["Cumulate"]

_NUMPY: Final = {tir.Fold.ADD: np.add, tir.Fold.MUL: np.multiply}


@dataclass(frozen=True)
class Cumulate(Op):
    """`out[…, k, …]` folds the elements up to k; without the k-th itself if `exclusive`.

    `reverse` begins at the end. The fold is a sum or a product.
    """

    linear = True

    fold: tir.Fold
    axis: int
    exclusive: bool = False
    reverse: bool = False

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        if self.axis >= inputs[0].rank:
            raise IndexError(f"axis {self.axis} of a tensor with {inputs[0].rank} dimensions")
        return [inputs[0]]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        (source,) = arrays
        wide = source if source.dtype.kind in "iu" else source.astype(np.float64)
        moved = np.moveaxis(wide, self.axis, -1)
        moved = moved[..., ::-1] if self.reverse else moved
        with np.errstate(all="ignore"):
            folded = _NUMPY[self.fold].accumulate(moved, axis=-1, dtype=wide.dtype)
        if self.exclusive:
            first = np.full_like(folded[..., :1], 0 if self.fold is tir.Fold.ADD else 1)
            folded = np.concatenate([first, folded[..., :-1]], axis=-1)
        folded = folded[..., ::-1] if self.reverse else folded
        return [np.moveaxis(folded, -1, self.axis).astype(source.dtype)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        """A block for each line, which walks along it; lines are independent.

        From the end it reads backwards and writes forwards, and a copy turns the result around.
        """
        (source,) = inputs
        if not self.reverse:
            return [self._lines(source, names[0])]
        turned = self._lines(source, f"{names[0]}_turned")
        last = source.shape[self.axis] - 1

        def element(*indices: tir.Expr) -> tir.Expr:
            return turned[tuple(last - i if k == self.axis else i for k, i in enumerate(indices))]

        return [compute(names[0], source.shape, element, source.dtype)]

    def _lines(self, source: Tensor, name: str) -> Tensor:
        others = [(k, d) for k, d in enumerate(source.shape) if k != self.axis]
        # A block stands in a loop, also if there is one line only.
        outer = others or [(0, tir.Const(1))]
        iters = tuple(tir.Iter(tir.Var(f"vi{k}"), d) for k, d in outer)
        loops = tuple(tir.Var(f"i{k}") for k, _ in outer)
        buffer = tir.Buffer(name, source.shape, source.dtype)
        line = tuple(it.var for it in iters)[: len(others)]
        body = self._walk(source, buffer, (line[: self.axis], line[self.axis :]))
        nest: tir.Stmt = make_block(name, iters, loops, body)
        for loop, it in zip(reversed(loops), reversed(iters), strict=True):
            nest = tir.For(loop, it.extent, nest)
        return Tensor(buffer, nest, (source,))

    def _walk(
        self,
        source: Tensor,
        buffer: tir.Buffer,
        around: tuple[tuple[tir.Expr, ...], tuple[tir.Expr, ...]],
    ) -> tir.Stmt:
        wide, extent, step = computed_as(source.dtype), source.shape[self.axis], tir.Var("k")
        total = tir.Buffer(f"{buffer.name}_total", (tir.Const(1),), wide)
        here = (tir.Const(0),)
        at = extent - 1 - step if self.reverse else step
        element = source[(*around[0], at, *around[1])].to(wide)
        update = tir.Store(total, here, combine(self.fold, tir.Load(total, here), element))
        store = tir.Store(
            buffer, (*around[0], step, *around[1]), tir.Load(total, here).to(buffer.dtype)
        )
        begin = tir.Store(total, here, fold_identity(self.fold, wide))
        both = seq(store, update) if self.exclusive else seq(update, store)
        return tir.Alloc(total, seq(begin, tir.For(step, extent, both)))
