"""Instructions of AArch64 that LLVM offers as intrinsics (Arm ARM, C7.2).

Four products of 8 bits are added to each of four sums of 32 bits, exactly. The left operand is one
group of four, the same for all lanes.
"""

from __future__ import annotations

from tilewright.dtypes import DType, i8, i32, u8
from tilewright.intrin.intrinsic import (
    Description,
    fold_axis,
    intrinsic,
    operand,
    spatial_axis,
    update,
    vector_load,
    vector_store,
)
from tilewright.intrin.llvm_calls import call_llvm
from tilewright.tensor import ir as tir

__all__ = ["sdot", "udot", "usdot"]

DOTPROD, I8MM = frozenset({"dotprod"}), frozenset({"i8mm"})


def _dot4(name: str, left: DType, right: DType) -> Description:
    a, b = operand("a", (4,), left, dense=1), operand("b", (16,), right, dense=1)
    acc = operand("acc", (4,), i32, dense=1)
    lane, r = spatial_axis("lane", 4), fold_axis("r", 4)
    group = tir.Reinterpret(i32, vector_load(a, 0, lanes=4))
    groups = tir.Reinterpret(i8.vector(16), tir.Broadcast(group, 4))
    weights = tir.Reinterpret(i8.vector(16), vector_load(b, 0, lanes=16))
    total = call_llvm(name, vector_load(acc, 0, lanes=4), groups, weights)
    product = a[r.var].to(i32) * b[lane.var * 4 + r.var].to(i32)
    return Description(
        (a, b, acc),
        update(acc[lane.var], product, lane, r),
        vector_store(acc, 0, value=total),
    )


@intrinsic("arm.dotprod.sdot", requires=DOTPROD)
def sdot() -> Description:
    """Four products of i8 and i8 for each of 4 sums (SDOT)."""
    return _dot4("llvm.aarch64.neon.sdot.v4i32.v16i8", i8, i8)


@intrinsic("arm.dotprod.udot", requires=DOTPROD)
def udot() -> Description:
    """Four products of u8 and u8 for each of 4 sums (UDOT)."""
    return _dot4("llvm.aarch64.neon.udot.v4i32.v16i8", u8, u8)


@intrinsic("arm.i8mm.usdot", requires=I8MM)
def usdot() -> Description:
    """Four products of u8 and i8 for each of 4 sums (USDOT)."""
    return _dot4("llvm.aarch64.neon.usdot.v4i32.v16i8", u8, i8)
