"""Instructions of x86 that LLVM offers as intrinsics; products of u8 and i8, all of them exact."""

from __future__ import annotations

from typing import Final

from tilewright.dtypes import i8, i16, i32, i64, u8
from tilewright.intrin.dots import dot_product, group_of_four
from tilewright.intrin.intrinsic import Description, Operand, intrinsic, vector_load
from tilewright.intrin.llvm_calls import call_llvm
from tilewright.tensor import ir as tir

__all__ = ["dot2", "dot4", "vnni_dot4", "wide_dot2"]

AVX2: Final = frozenset({"avx2"})


def _dot2(lanes: int, call: str) -> Description:
    """Pairs of i16, which both operands are widened to (VPMADDWD)."""
    wide = i16.vector(2 * lanes)

    def total(sums: tir.Expr, a: Operand, b: Operand) -> tir.Expr:
        pair = tir.Reinterpret(i32, tir.Cast(i16.vector(2), vector_load(a, 0, lanes=2)))
        pairs = tir.Reinterpret(wide, tir.Broadcast(pair, lanes))
        return sums + call_llvm(call, pairs, tir.Cast(wide, vector_load(b, 0, lanes=2 * lanes)))

    return dot_product(lanes, 2, u8, i8, total)


@intrinsic("x86.avx2.dot2", requires=AVX2)
def dot2() -> Description:
    """Each of 8 sums of i32 grows by two products of u8 and i8 (VPMADDWD on i16)."""
    return _dot2(8, "llvm.x86.avx2.pmadd.wd")


@intrinsic("x86.avx512bw.dot2", requires=frozenset({"avx512bw"}))
def wide_dot2() -> Description:
    """Each of 16 sums of i32 grows by two products of u8 and i8 (VPMADDWD on i16)."""
    return _dot2(16, "llvm.x86.avx512.pmaddw.d.512")


@intrinsic("x86.avx2.dot4", requires=AVX2)
def dot4() -> Description:
    """Each of 8 sums of i32 grows by four products of u8 and i8 (two VPMADDWD)."""

    def total(sums: tir.Expr, a: Operand, b: Operand) -> tir.Expr:
        four = tir.Reinterpret(i64, tir.Cast(i16.vector(4), vector_load(a, 0, lanes=4)))
        fours = tir.Reinterpret(i16.vector(16), tir.Broadcast(four, 4))

        def half(start: int) -> tir.Expr:
            wide = tir.Cast(i16.vector(16), vector_load(b, start, lanes=16))
            return call_llvm("llvm.x86.avx2.pmadd.wd", fours, wide)

        pairs = call_llvm("llvm.x86.avx2.phadd.d", half(0), half(16))  # lanes 0 1 4 5 | 2 3 6 7
        return sums + call_llvm("llvm.x86.avx2.permd", pairs, _swapped_middle())

    return dot_product(8, 4, u8, i8, total)


@intrinsic("x86.avx512vnni.dot4", requires=frozenset({"avx512vnni"}))
def vnni_dot4() -> Description:
    """Each of 16 sums of i32 grows by four products of u8 and i8 (VPDPBUSD)."""

    def total(sums: tir.Expr, a: Operand, b: Operand) -> tir.Expr:
        weights = vector_load(b, 0, lanes=64)
        return call_llvm("llvm.x86.avx512.vpdpbusd.512", sums, group_of_four(a, 16), weights)

    return dot_product(16, 4, u8, i8, total)


def _swapped_middle() -> tir.Expr:
    """The constant vector 0 1 4 5 2 3 6 7: bits 1 and 2 of the lane number exchanged."""
    lane = tir.Cast(i32.vector(8), tir.Ramp(tir.Const(0), tir.Const(1), 8))
    middle = ((lane & 2) << 1) | ((lane & 4) >> 1)
    return (lane & 1) | middle
