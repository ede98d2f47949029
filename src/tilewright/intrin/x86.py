"""Instructions of x86 that LLVM offers as intrinsics."""

from __future__ import annotations

from tilewright.dtypes import i8, i16, i32, i64, u8
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

__all__ = ["dot2", "dot4"]

AVX2 = frozenset({"avx2"})


def _dot2(lanes: int, call: str) -> Description:
    """Each of some sums of i32 grows by two products of u8 and i8, exactly (VPMADDWD on i16).

    B holds the pairs of the lanes one after another.
    """
    wide_type = i16.vector(2 * lanes)
    a, b = operand("a", (2,), u8, dense=1), operand("b", (2 * lanes,), i8, dense=1)
    acc = operand("acc", (lanes,), i32, dense=1)
    lane, r = spatial_axis("lane", lanes), fold_axis("r", 2)
    pair = tir.Reinterpret(i32, tir.Cast(i16.vector(2), vector_load(a, 0, lanes=2)))
    pairs = tir.Reinterpret(wide_type, tir.Broadcast(pair, lanes))
    wide = tir.Cast(wide_type, vector_load(b, 0, lanes=2 * lanes))
    total = vector_load(acc, 0, lanes=lanes) + call_llvm(call, pairs, wide)
    product = a[r.var].to(i32) * b[lane.var * 2 + r.var].to(i32)
    return Description(
        (a, b, acc),
        update(acc[lane.var], product, lane, r),
        vector_store(acc, 0, value=total),
    )


@intrinsic("x86.avx2.dot2", requires=AVX2)
def dot2() -> Description:
    """Two products of u8 and i8 for each of 8 sums."""
    return _dot2(8, "llvm.x86.avx2.pmadd.wd")


@intrinsic("x86.avx512bw.dot2", requires=frozenset({"avx512bw"}))
def wide_dot2() -> Description:
    """Two products of u8 and i8 for each of 16 sums."""
    return _dot2(16, "llvm.x86.avx512.pmaddw.d.512")


@intrinsic("x86.avx2.dot4", requires=AVX2)
def dot4() -> Description:
    """Each of 8 sums of i32 grows by four products of u8 and i8, exactly (two VPMADDWD).

    B holds the quadruples of the 8 lanes one after another.
    """
    a, b = operand("a", (4,), u8, dense=1), operand("b", (32,), i8, dense=1)
    acc = operand("acc", (8,), i32, dense=1)
    lane, r = spatial_axis("lane", 8), fold_axis("r", 4)
    four = tir.Reinterpret(i64, tir.Cast(i16.vector(4), vector_load(a, 0, lanes=4)))
    fours = tir.Reinterpret(i16.vector(16), tir.Broadcast(four, 4))

    def half(start: int) -> tir.Expr:
        wide = tir.Cast(i16.vector(16), vector_load(b, start, lanes=16))
        return call_llvm("llvm.x86.avx2.pmadd.wd", fours, wide)

    sums = call_llvm("llvm.x86.avx2.phadd.d", half(0), half(16))  # lanes 0 1 4 5 | 2 3 6 7
    sums = call_llvm("llvm.x86.avx2.permd", sums, _swapped_middle())
    product = a[r.var].to(i32) * b[lane.var * 4 + r.var].to(i32)
    return Description(
        (a, b, acc),
        update(acc[lane.var], product, lane, r),
        vector_store(acc, 0, value=vector_load(acc, 0, lanes=8) + sums),
    )


@intrinsic("x86.avx512vnni.dot4", requires=frozenset({"avx512vnni"}))
def vnni_dot4() -> Description:
    """Each of 16 sums of i32 grows by four products of u8 and i8, exactly (VPDPBUSD).

    B holds the quadruples of the lanes one after another.
    """
    a, b = operand("a", (4,), u8, dense=1), operand("b", (64,), i8, dense=1)
    acc = operand("acc", (16,), i32, dense=1)
    lane, r = spatial_axis("lane", 16), fold_axis("r", 4)
    four = tir.Reinterpret(i32, vector_load(a, 0, lanes=4))
    fours = tir.Reinterpret(i8.vector(64), tir.Broadcast(four, 16))
    own = vector_load(acc, 0, lanes=16)
    total = call_llvm("llvm.x86.avx512.vpdpbusd.512", own, fours, vector_load(b, 0, lanes=64))
    product = a[r.var].to(i32) * b[lane.var * 4 + r.var].to(i32)
    return Description(
        (a, b, acc),
        update(acc[lane.var], product, lane, r),
        vector_store(acc, 0, value=total),
    )


def _swapped_middle() -> tir.Expr:
    """The constant vector 0 1 4 5 2 3 6 7: bits 1 and 2 of the lane number exchanged."""
    lane = tir.Cast(i32.vector(8), tir.Ramp(tir.Const(0), tir.Const(1), 8))
    middle = ((lane & 2) << 1) | ((lane & 4) >> 1)
    return (lane & 1) | middle
