"""Writing loops that carry a state from step to step, which no tensor expression says.

Such a computation is one opaque block for each row of a tensor, with memory of its own; within the
block statements run in order. The first ones give a value to every element that the block writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.dtypes import DType
from tilewright.tensor import ir as tir
from tilewright.tensor.build import make_block

__all__ = ["Row"]


class Row:
    """Statements on buffers with the dimensions of `rows` and one more, and on private ones."""

    def __init__(self, rows: Sequence[tir.Expr]) -> None:
        self.iters = tuple(tir.Iter(tir.Var(f"vr{k}"), d) for k, d in enumerate(rows))
        self._made = 0
        self._private: list[tir.Buffer] = []

    def private(self, name: str, size: int | tir.Expr, dtype: DType) -> tir.Buffer:
        """Memory of one row."""
        buffer = tir.Buffer(name, (tir.as_index(size),), dtype)
        self._private.append(buffer)
        return buffer

    def load(self, buffer: tir.Buffer, at: int | tir.Expr) -> tir.Expr:
        """An element of this row."""
        return tir.Load(buffer, self._place(buffer, at))

    def store(self, buffer: tir.Buffer, at: int | tir.Expr, value: tir.Expr) -> tir.Stmt:
        """A new value for an element of this row."""
        return tir.Store(buffer, self._place(buffer, at), value.to(buffer.dtype))

    def loop(self, extent: int | tir.Expr, body: Callable[[tir.Var], tir.Stmt]) -> tir.Stmt:
        """Steps from zero on."""
        self._made += 1
        var = tir.Var(f"s{self._made}")
        return tir.For(var, tir.as_index(extent), body(var))

    def nest(self, name: str, body: tir.Stmt, *, parallel: bool = False) -> tir.Stmt:
        """Loops over all rows around the block."""
        for buffer in reversed(self._private):
            body = tir.Alloc(buffer, body)
        loops = [tir.Var(f"r{k}") for k in range(len(self.iters))]
        result: tir.Stmt = make_block(name, self.iters, tuple(loops), body)
        for loop, it in zip(reversed(loops), reversed(self.iters), strict=True):
            outermost = parallel and loop is loops[0]
            kind = tir.LoopKind.PARALLEL if outermost else tir.LoopKind.SERIAL
            result = tir.For(loop, it.extent, result, kind)
        return result

    def _place(self, buffer: tir.Buffer, at: int | tir.Expr) -> tuple[tir.Expr, ...]:
        row = () if buffer in self._private else tuple(it.var for it in self.iters)
        return (*row, tir.as_index(at))
