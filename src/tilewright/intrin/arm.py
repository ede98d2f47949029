"""Instructions of AArch64 that LLVM offers as intrinsics (Arm ARM, C7.2).

Four products of 8 bits are added to each of four sums of 32 bits, exactly.
"""

from __future__ import annotations

from tilewright.dtypes import DType, i8, u8
from tilewright.intrin.dots import dot_product, group_of_four
from tilewright.intrin.intrinsic import Description, Operand, intrinsic, vector_load
from tilewright.intrin.llvm_calls import call_llvm
from tilewright.tensor import ir as tir

__all__ = ["sdot", "udot", "usdot"]

DOTPROD, I8MM = frozenset({"dotprod"}), frozenset({"i8mm"})


def _dot4(name: str, left: DType, right: DType) -> Description:
    def total(sums: tir.Expr, a: Operand, b: Operand) -> tir.Expr:
        weights = tir.Reinterpret(i8.vector(16), vector_load(b, 0, lanes=16))
        return call_llvm(
            f"llvm.aarch64.neon.{name}.v4i32.v16i8", sums, group_of_four(a, 4), weights
        )

    return dot_product(4, 4, left, right, total)


@intrinsic("arm.dotprod.sdot", requires=DOTPROD)
def sdot() -> Description:
    """Four products of i8 and i8 for each of 4 sums (SDOT)."""
    return _dot4("sdot", i8, i8)


@intrinsic("arm.dotprod.udot", requires=DOTPROD)
def udot() -> Description:
    """Four products of u8 and u8 for each of 4 sums (UDOT)."""
    return _dot4("udot", u8, u8)


@intrinsic("arm.i8mm.usdot", requires=I8MM)
def usdot() -> Description:
    """Four products of u8 and i8 for each of 4 sums (USDOT)."""
    return _dot4("usdot", u8, i8)
