"""LLVM intrinsics that implementations may call: `Call("llvm.x86.avx2.pmadd.wd", …)`.

The table states the signature as LLVM 22 declares it, so that a wrong use fails here with the
names in hand and not in LLVM. The dtypes of the arguments and of the result stand in the `Call`
itself, so the emitter needs no table to declare the function.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.dtypes import DType, i8, i16, i32
from tilewright.errors import Code, TargetError
from tilewright.tensor import ir as tir

__all__ = ["LLVM_CALLS", "Signature", "call_llvm"]

T201 = Code("T201", "the LLVM intrinsic `{name}` is not known with these operands")


@dataclass(frozen=True, slots=True)
class Signature:
    """Types of the arguments and the result, and the features that the instruction needs."""

    args: tuple[DType, ...]
    result: DType
    requires: frozenset[str]


def _signature(result: DType, *args: DType, requires: str) -> Signature:
    return Signature(args, result, frozenset({requires}))


_I32X8, _I32X16 = i32.vector(8), i32.vector(16)
_I16X16 = i16.vector(16)
_I8X64, _I16X32 = i8.vector(64), i16.vector(32)
_I32X4, _I8X16 = i32.vector(4), i8.vector(16)

LLVM_CALLS: dict[str, Signature] = {
    # Pairs of products of i16, added: VPMADDWD.
    "llvm.x86.avx2.pmadd.wd": _signature(_I32X8, _I16X16, _I16X16, requires="avx2"),
    "llvm.x86.avx512.pmaddw.d.512": _signature(_I32X16, _I16X32, _I16X32, requires="avx512bw"),
    # Pairs of products of u8 and i8, added with saturation to i16: VPMADDUBSW.
    "llvm.x86.avx2.pmadd.ub.sw": _signature(_I16X16, i8.vector(32), i8.vector(32), requires="avx2"),
    # Neighbours added within each half: VPHADDD.
    "llvm.x86.avx2.phadd.d": _signature(_I32X8, _I32X8, _I32X8, requires="avx2"),
    # Quadruples of products of u8 and i8, added to i32: VPDPBUSD.
    "llvm.x86.avx512.vpdpbusd.512": _signature(
        _I32X16, _I32X16, _I8X64, _I8X64, requires="avx512vnni"
    ),
    # The same of 128 bits, signed, unsigned and mixed: SDOT, UDOT, USDOT.
    "llvm.aarch64.neon.sdot.v4i32.v16i8": _signature(
        _I32X4, _I32X4, _I8X16, _I8X16, requires="dotprod"
    ),
    "llvm.aarch64.neon.udot.v4i32.v16i8": _signature(
        _I32X4, _I32X4, _I8X16, _I8X16, requires="dotprod"
    ),
    "llvm.aarch64.neon.usdot.v4i32.v16i8": _signature(
        _I32X4, _I32X4, _I8X16, _I8X16, requires="i8mm"
    ),
    # Lanes in any order: VPERMD.
    "llvm.x86.avx2.permd": _signature(_I32X8, _I32X8, _I32X8, requires="avx2"),
}
"""All known LLVM intrinsics by name."""


def call_llvm(name: str, *args: tir.Expr) -> tir.Expr:
    """A call of an LLVM intrinsic; refuses unknown names and operands of other types (T201)."""
    known = LLVM_CALLS.get(name)
    found = tuple(a.dtype for a in args)
    if known is not None and known.args == found:
        return tir.Call(name, args, known.result)
    expected = known.args if known is not None else ", ".join(LLVM_CALLS)
    facts = {"name": name, "expected": expected, "found": found}
    raise TargetError(T201, facts, hint="add its signature to `intrin/llvm_calls.py`")
