"""`Map`: any elementwise function of any number of tensors, with NumPy's broadcasting.

The function is a scalar expression of the tensor IR over the variables `argument(0)`,
`argument(1)`, …: relu is `max(arg0, 0)`. An argument of a storage type is what is stored, without
being widened: bits are reinterpreted that way. All activations, arithmetic, comparisons, casts and
selections are maps, and a chain of maps is a map again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.dtypes import DType
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, Role, SizeOf, computed_as
from tilewright.graph.sizes import broadcast, variables
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute
from tilewright.tensor.evaluate import Evaluator
from tilewright.tensor.same import always_the_same
from tilewright.tensor.visit import substitute, walk

__all__ = ["Map", "argument", "broadcast_meetings", "broadcast_index", "evaluate_expr"]


@always_the_same
def argument(position: int, dtype: DType) -> tir.Var:
    """The variable that stands for an element of input `position`; always the same one."""
    return tir.Var(f"arg{position}", dtype)


@dataclass(frozen=True)
class Map(Op):
    """`out[i] = body(in0[i], in1[i], …)`, stored as `dtype`."""

    role = Role.MAP

    body: tir.Expr
    arity: int
    dtype: DType

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        return [TensorType(self.dtype, broadcast(*(t.shape for t in inputs)))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        shape = np.broadcast_shapes(*(np.shape(a) for a in arrays))
        if any(a.dtype == object for a in arrays):
            return [self._evaluate_symbols(arrays, shape)]
        bound: dict[tir.Var, object] = {}
        for position, array in enumerate(arrays):
            var = self._argument(position)
            if var is not None:
                bound[var] = array.astype(var.dtype.numpy)
        result = evaluate_expr(self.body, bound, size_of)
        with np.errstate(all="ignore"):  # narrow floats overflow when they are stored
            return [np.array(np.broadcast_to(result, shape), dtype=self.dtype.numpy)]

    def _argument(self, position: int) -> tir.Var | None:
        """The variable of an input, None if the body does not use it."""
        name = f"arg{position}"
        return next((v for v in walk(self.body) if isinstance(v, tir.Var) and v.name == name), None)

    def _evaluate_symbols(self, arrays: Sequence[Array], shape: tuple[int, ...]) -> Array:
        """On arrays of expressions: the contents of tensors that hold sizes."""
        grids = [np.broadcast_to(a, shape) for a in arrays]
        result = np.empty(shape, dtype=object)
        found = [self._argument(position) for position in range(len(arrays))]
        for place in np.ndindex(*shape):
            values = {
                var: tir.as_expr(grid.item(place), var.dtype).to(var.dtype)
                for var, grid in zip(found, grids, strict=True)
                if var is not None
            }
            result[place] = substitute(self.body, values)
        return result

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        shape = broadcast(*(t.shape for t in inputs))

        def element(*indices: tir.Expr) -> tir.Expr:
            values: dict[tir.Var, tir.Expr] = {}
            for position, tensor in enumerate(inputs):
                var = argument(position, computed_as(tensor.dtype))
                where = broadcast_index(tensor.shape, indices)
                values[var] = tensor[where]
                if tensor.dtype.is_stored:
                    values[argument(position, tensor.dtype)] = tensor.stored(where)
            return substitute(self.body, values).to(self.dtype)

        return [compute(names[0], shape, element, self.dtype)]

    def meetings(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[tuple[tir.Expr, tir.Expr]]:
        for source in inputs:
            yield from broadcast_meetings(source.shape, outputs[0].shape)

    def attributes(self) -> dict[str, object]:
        return {"body": self.body, "dtype": self.dtype}


def broadcast_meetings(
    shape: Sequence[tir.Expr], result: Sequence[tir.Expr]
) -> Iterator[tuple[tir.Expr, tir.Expr]]:
    """What must hold for a tensor to be broadcast to a result: its dimensions are ones or equal."""
    own = result[len(result) - len(shape) :]
    for dim, wide in zip(shape, own, strict=True):
        if tir.int_value(dim) != 1:
            yield dim, wide


def broadcast_index(shape: Sequence[tir.Expr], indices: Sequence[tir.Expr]) -> tuple[tir.Expr, ...]:
    """Where an element of a larger index space is found in a tensor that is broadcast."""
    own = indices[len(indices) - len(shape) :]
    return tuple(
        tir.Const(0) if tir.int_value(dim) == 1 else index
        for dim, index in zip(shape, own, strict=True)
    )


def evaluate_expr(expr: tir.Expr, bound: dict[tir.Var, object], size_of: SizeOf) -> Array:
    """An expression on arrays; size variables have the values of this run."""
    evaluator = Evaluator(tir.Func("map", (), tir.Seq(())))
    evaluator.values.update(bound)
    for var in variables([expr]):
        if var not in bound:
            evaluator.values[var] = np.int64(size_of(var))
    with np.errstate(all="ignore"):
        return np.asarray(evaluator.value(expr))
