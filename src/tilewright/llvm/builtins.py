"""Functions that LLVM may call although nobody wrote a call: moving memory, and rounding.

Code generation turns large moves into calls, and what the machine has no instruction for (rounding,
before SSE 4.1). An image has nothing to call outside of it, so these functions are compiled along
when an object needs them, from LLVM text of our own and for the least instruction set of the
machine. Kernels move their data with vectors of their own; these are for the rare rest, and simple.
"""

from __future__ import annotations

import functools
from typing import Final

from tilewright.llvm.elf import AARCH64, RISCV64, X86_64
from tilewright.llvm.machine import object_of
from tilewright.target import Target

__all__ = ["BUILTINS", "builtin_object"]

_TARGETS: Final = {X86_64: "x86-64", AARCH64: "aarch64", RISCV64: "riscv64"}

# Attributes keep LLVM from seeing in a loop the very function that it implements.
_ATTRIBUTES = 'nounwind "no-builtins"'

_MEMCPY = """\
define ptr @memcpy(ptr %to, ptr %from, i64 %size) ATTRIBUTES {
entry:
  %whole = and i64 %size, -16
  br label %parts
parts:
  %part = phi i64 [ 0, %entry ], [ %next.part, %copy.part ]
  %has.part = icmp ult i64 %part, %whole
  br i1 %has.part, label %copy.part, label %rest
copy.part:
  %from.part = getelementptr i8, ptr %from, i64 %part
  %to.part = getelementptr i8, ptr %to, i64 %part
  %value.part = load <16 x i8>, ptr %from.part, align 1
  store <16 x i8> %value.part, ptr %to.part, align 1
  %next.part = add i64 %part, 16
  br label %parts
rest:
  %byte = phi i64 [ %whole, %parts ], [ %next.byte, %copy.byte ]
  %has.byte = icmp ult i64 %byte, %size
  br i1 %has.byte, label %copy.byte, label %done
copy.byte:
  %from.byte = getelementptr i8, ptr %from, i64 %byte
  %to.byte = getelementptr i8, ptr %to, i64 %byte
  %value.byte = load i8, ptr %from.byte
  store i8 %value.byte, ptr %to.byte
  %next.byte = add i64 %byte, 1
  br label %rest
done:
  ret ptr %to
}
"""

_MEMSET = """\
define ptr @memset(ptr %to, i32 %value, i64 %size) ATTRIBUTES {
entry:
  %whole = and i64 %size, -16
  %one = trunc i32 %value to i8
  %first = insertelement <16 x i8> poison, i8 %one, i32 0
  %all = shufflevector <16 x i8> %first, <16 x i8> poison, <16 x i32> zeroinitializer
  br label %parts
parts:
  %part = phi i64 [ 0, %entry ], [ %next.part, %fill.part ]
  %has.part = icmp ult i64 %part, %whole
  br i1 %has.part, label %fill.part, label %rest
fill.part:
  %to.part = getelementptr i8, ptr %to, i64 %part
  store <16 x i8> %all, ptr %to.part, align 1
  %next.part = add i64 %part, 16
  br label %parts
rest:
  %byte = phi i64 [ %whole, %parts ], [ %next.byte, %fill.byte ]
  %has.byte = icmp ult i64 %byte, %size
  br i1 %has.byte, label %fill.byte, label %done
fill.byte:
  %to.byte = getelementptr i8, ptr %to, i64 %byte
  store i8 %one, ptr %to.byte
  %next.byte = add i64 %byte, 1
  br label %rest
done:
  ret ptr %to
}
"""

# Upwards if the target lies before the source, else downwards; byte by byte, as they may overlap.
_MEMMOVE = """\
define ptr @memmove(ptr %to, ptr %from, i64 %size) ATTRIBUTES {
entry:
  %is.before = icmp ult ptr %to, %from
  br i1 %is.before, label %upwards, label %downwards
upwards:
  %up = phi i64 [ 0, %entry ], [ %next.up, %copy.up ]
  %has.up = icmp ult i64 %up, %size
  br i1 %has.up, label %copy.up, label %done
copy.up:
  %from.up = getelementptr i8, ptr %from, i64 %up
  %to.up = getelementptr i8, ptr %to, i64 %up
  %value.up = load i8, ptr %from.up
  store i8 %value.up, ptr %to.up
  %next.up = add i64 %up, 1
  br label %upwards
downwards:
  %down = phi i64 [ %size, %entry ], [ %next.down, %copy.down ]
  %has.down = icmp ne i64 %down, 0
  br i1 %has.down, label %copy.down, label %done
copy.down:
  %next.down = sub i64 %down, 1
  %from.down = getelementptr i8, ptr %from, i64 %next.down
  %to.down = getelementptr i8, ptr %to, i64 %next.down
  %value.down = load i8, ptr %from.down
  store i8 %value.down, ptr %to.down
  br label %downwards
done:
  ret ptr %to
}
"""

# Numbers from `LIMIT` on have no fraction, and NaN is not below it. The sign of a zero is kept.
_ROUND = """\
declare FLOAT @llvm.fabs.FLOAT_NAME(FLOAT)
declare FLOAT @llvm.copysign.FLOAT_NAME(FLOAT, FLOAT)
define FLOAT @NAME(FLOAT %x) ATTRIBUTES {
  %size = call FLOAT @llvm.fabs.FLOAT_NAME(FLOAT %x)
  %has.fraction = fcmp olt FLOAT %size, LIMIT
  BODY
  %signed = call FLOAT @llvm.copysign.FLOAT_NAME(FLOAT %rounded, FLOAT %x)
  %result = select i1 %has.fraction, FLOAT %signed, FLOAT %x
  ret FLOAT %result
}
"""

_TRUNC = """\
%whole = fptosi FLOAT %x to INTEGER
  %trunc = sitofp INTEGER %whole to FLOAT
"""
_BODIES: Final = {
    "trunc": _TRUNC + "  %rounded = fadd FLOAT %trunc, 0.0",
    "floor": _TRUNC
    + """\
  %is.above = fcmp ogt FLOAT %trunc, %x
  %less = fsub FLOAT %trunc, 1.0
  %rounded = select i1 %is.above, FLOAT %less, FLOAT %trunc""",
    "ceil": _TRUNC
    + """\
  %is.below = fcmp olt FLOAT %trunc, %x
  %more = fadd FLOAT %trunc, 1.0
  %rounded = select i1 %is.below, FLOAT %more, FLOAT %trunc""",
    # The sum has no room for a fraction: adding rounds it, to even.
    "roundeven": """\
%sum = fadd FLOAT %size, LIMIT
  %rounded = fsub FLOAT %sum, LIMIT""",
}
_KINDS: Final = {
    "": {"FLOAT_NAME": "f64", "FLOAT": "double", "INTEGER": "i64", "LIMIT": "4503599627370496.0"},
    "f": {"FLOAT_NAME": "f32", "FLOAT": "float", "INTEGER": "i32", "LIMIT": "8388608.0"},
}


def _rounding(name: str, suffix: str) -> str:
    text = _ROUND.replace("BODY", _BODIES[name]).replace("@NAME", f"@{name}{suffix}")
    for word, meaning in _KINDS[suffix].items():
        text = text.replace(word, meaning)
    return text


BUILTINS: Final = {
    "memcpy": _MEMCPY,
    "memmove": _MEMMOVE,
    "memset": _MEMSET,
    **{f"{name}{suffix}": _rounding(name, suffix) for name in _BODIES for suffix in _KINDS},
}
"""LLVM text of each function, with C's meaning."""


@functools.cache
def builtin_object(name: str, machine: int) -> bytes:
    """The object code of one function for a machine."""
    target = Target.named(_TARGETS[machine])
    head = f'source_filename = "{name}"\ntarget triple = "{target.triple}"\n'
    return object_of(head + BUILTINS[name].replace("ATTRIBUTES", _ATTRIBUTES), target)
