"""`Contract`: the sum over products of two tensors, with dimensions named by letters as in einsum.

Matrix products of every rank, outer products and dot products are contractions; a transpose in
front of one is only other letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.dtypes import DType
from tilewright.errors import Code, GraphError
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, Role, SizeOf, computed_as
from tilewright.graph.sizes import dims_equal, fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute, reduce_axis, sum_over
from tilewright.tensor.printer import print_node

__all__ = ["Contract"]

G020 = Code("G020", "`{letters}` names dimensions of different sizes: {first} and {second}")


@dataclass(frozen=True)
class Contract(Op):
    """`out[result] = Σ left[…] · right[…]` over the letters that `result` lacks.

    A letter stands once in each operand; accumulated and stored as `dtype`.
    """

    role = Role.ANCHOR

    left: str
    right: str
    result: str
    dtype: DType

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        dims = self._dims(inputs[0].shape, inputs[1].shape)
        return [TensorType(self.dtype, tuple(dims[c] for c in self.result))]

    def _dims(self, left: Sequence[tir.Expr], right: Sequence[tir.Expr]) -> dict[str, tir.Expr]:
        dims: dict[str, tir.Expr] = {}
        for letters, shape in ((self.left, left), (self.right, right)):
            for letter, dim in zip(letters, shape, strict=True):
                known = dims.setdefault(letter, dim)
                if fixed(dim) is not None and fixed(known) is None:
                    dims[letter] = dim
                elif fixed(dim) is not None and not dims_equal(known, dim):
                    sizes = {"first": print_node(known), "second": print_node(dim)}
                    hint = "name them by two letters, or make them equal"
                    raise GraphError(G020, {"letters": letter, **sizes}, hint=hint)
        return dims

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        wide = np.float64 if self.dtype.is_float else self.dtype.numpy
        a, b = (x.astype(wide) for x in arrays)
        product = np.einsum(f"{self.left},{self.right}->{self.result}", a, b, optimize=True)
        return [np.asarray(product).astype(self.dtype.numpy)]

    def meetings(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[tuple[tir.Expr, tir.Expr]]:
        dims = self._dims(inputs[0].shape, inputs[1].shape)
        for letters, source in zip((self.left, self.right), inputs, strict=True):
            yield from ((dims[c], d) for c, d in zip(letters, source.shape, strict=True))

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        a, b = inputs
        dims = self._dims(a.shape, b.shape)
        summed = [c for c in dict.fromkeys(self.left + self.right) if c not in self.result]
        axes = {c: reduce_axis(dims[c], f"r{c}") for c in summed}
        wide = computed_as(self.dtype)

        def element(*indices: tir.Expr) -> object:
            where = dict(zip(self.result, indices, strict=True)) | axes
            x = a[tuple(where[c] for c in self.left)].to(wide)
            y = b[tuple(where[c] for c in self.right)].to(wide)
            return sum_over(x * y, *axes.values()) if axes else x * y

        shape = tuple(dims[c] for c in self.result)
        product = compute(names[0], shape, element, wide)  # type: ignore[arg-type]
        if wide == self.dtype:
            return [product]
        return [compute(f"{names[0]}_n", shape, lambda *i: product[i].to(self.dtype), self.dtype)]

    def attributes(self) -> dict[str, object]:
        return {"letters": f"{self.left},{self.right}->{self.result}", "dtype": self.dtype}
