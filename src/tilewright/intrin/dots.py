"""What dot-product instructions have in common: a sum in each lane, which grows by some products.

The left operand is one group of elements, the same for all lanes; the right one holds the groups of
the lanes one after another.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.dtypes import DType, i8, i32
from tilewright.intrin.intrinsic import (
    Description,
    Operand,
    fold_axis,
    operand,
    spatial_axis,
    update,
    vector_load,
    vector_store,
)
from tilewright.tensor import ir as tir

__all__ = ["dot_product", "group_of_four"]

Total = Callable[[tir.Expr, Operand, Operand], tir.Expr]
"""The new sums, of the old ones and both operands."""


def dot_product(lanes: int, steps: int, left: DType, right: DType, total: Total) -> Description:
    """`acc[lane] += Σ a[r] · b[lane·steps + r]`, in sums of i32."""
    a, b = operand("a", (steps,), left, dense=1), operand("b", (lanes * steps,), right, dense=1)
    acc = operand("acc", (lanes,), i32, dense=1)
    lane, r = spatial_axis("lane", lanes), fold_axis("r", steps)
    product = a[r.var].to(i32) * b[lane.var * steps + r.var].to(i32)
    made = total(vector_load(acc, 0, lanes=lanes), a, b)
    return Description(
        (a, b, acc),
        update(acc[lane.var], product, lane, r),
        vector_store(acc, 0, value=made),
    )


def group_of_four(a: Operand, lanes: int) -> tir.Expr:
    """Four elements of 8 bits, repeated for each lane of 32."""
    four = tir.Reinterpret(i32, vector_load(a, 0, lanes=4))
    return tir.Reinterpret(i8.vector(4 * lanes), tir.Broadcast(four, lanes))
