"""Kernels of linked images, and programs made of them that run without anything else.

A program is an ELF file with two segments: an image, and memory that holds the arguments and the
arrays of one call. Its start runs the kernel, writes the memory to standard output and ends, so
that code for another machine can be tried with an emulator and no C library.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from tilewright.abi import CONTEXT, CONTEXT_SIZE_BYTES
from tilewright.llvm.elf import AARCH64, RISCV64, X86_64
from tilewright.llvm.interface import Interface
from tilewright.llvm.link import Image as Linked
from tilewright.llvm.link import link
from tilewright.llvm.machine import object_of
from tilewright.pipeline import Pipeline, code_of
from tilewright.runtime import Kernel
from tilewright.runtime.image import Image
from tilewright.target import Target
from tilewright.tensor import ir as tir

CODE_AT, DATA_AT, PAGE = 0x10000000, 0x20000000, 0x10000
MACHINES = {"x86_64": X86_64, "aarch64": AARCH64, "riscv64": RISCV64}


def renamed(func: tir.Func, name: str) -> tir.Func:
    return tir.Func(name, func.params, func.body)


def texts_of(
    funcs: Iterable[tir.Func], target: Target, trace: str = "draft", threads: int = 2
) -> list[str]:
    """The LLVM text of each program."""
    return [
        str(Pipeline(target, threads=threads, trace=trace).run(func, until="llvm").value)
        for func in funcs
    ]


def kernel_of(text: str, linked: Linked, image: Image, threads: int = 2) -> Kernel:
    """A kernel of an image as a callable."""
    interface = Interface.of_text(text)
    about = interface.params, interface.size_names, interface.name
    return Kernel.of_code(image, code_of(interface, linked.symbols), *about, threads)


def program_of(
    text: str, arrays: Sequence[np.ndarray], sizes: Sequence[int], target: Target
) -> tuple[bytes, list[int]]:
    """An ELF program that calls a kernel once; where the arrays are in what it writes."""
    interface = Interface.of_text(text)
    pointers_at = CONTEXT_SIZE_BYTES + 24
    sizes_at = pointers_at + 8 * len(arrays)
    places, end = [], sizes_at + 8 * len(sizes)
    for array in arrays:
        places.append(-(-end // 64) * 64)
        end = places[-1] + array.nbytes
    shared_at = -(-end // 64) * 64
    scratch = (interface.shared_bytes or 0, interface.local_bytes or 0)
    local_at = -(-(shared_at + scratch[0]) // 64) * 64
    size_bytes = local_at + scratch[1]
    caller = _caller(interface.symbol, pointers_at, sizes_at, target)
    linked = link([object_of(caller, target), object_of(text, target)])
    code = linked.code + bytes(-len(linked.code) % 16)
    entry = len(code)
    code += _start(target.arch, linked.symbols["run"] - entry, end)
    memory = bytearray(end)
    context = {
        "threads": 1,
        "barrier": CODE_AT + linked.symbols["meet"],
        "shared": DATA_AT + shared_at,
        "local": DATA_AT + local_at,
    }
    for name, value in context.items():
        form = "<i" if CONTEXT[name].type == "i32" else "<Q"
        struct.pack_into(form, memory, CONTEXT[name].offset, value)
    struct.pack_into(f"<{len(arrays)}Q", memory, pointers_at, *(DATA_AT + at for at in places))
    struct.pack_into(f"<{len(sizes)}q", memory, sizes_at, *sizes)
    for at, array in zip(places, arrays, strict=True):
        memory[at : at + array.nbytes] = array.tobytes()
    return _elf(code, entry, memory, size_bytes, MACHINES[target.arch]), places


def _caller(symbol: str, pointers_at: int, sizes_at: int, target: Target) -> str:
    """LLVM text of the call, and of a barrier for one thread."""
    at = [f"ptr inttoptr (i64 {DATA_AT + n} to ptr)" for n in (pointers_at, sizes_at, 0)]
    return f"""\
source_filename = "caller"
target triple = "{target.triple}"
declare i32 @{symbol}(ptr, ptr, ptr)
define void @meet(ptr %context) nounwind {{
  ret void
}}
define i32 @run() nounwind {{
  %result = call i32 @{symbol}({", ".join(at)})
  ret i32 %result
}}
"""


def _start(arch: str, run: int, written: int) -> bytes:
    """Machine code: call what is `run` bytes away, write the memory, end with the result."""
    if arch == "x86_64":
        code = b"\x48\x83\xe4\xc0"  # and rsp, -64
        code += b"\xe8" + struct.pack("<i", run - 9) + b"\x89\xc3"  # call run; mov ebx, eax
        code += b"\xb8\x01\0\0\0\xbf\x01\0\0\0"  # mov eax, 1 (write); mov edi, 1
        code += b"\xbe" + struct.pack("<I", DATA_AT) + b"\xba" + struct.pack("<I", written)
        code += b"\x0f\x05\x89\xdf\xb8\x3c\0\0\0\x0f\x05"  # syscall; exit(ebx)
        return code
    words = _riscv_start(run, written) if arch == "riscv64" else _arm_start(run, written)
    return struct.pack(f"<{len(words)}I", *words)


def _arm_start(run: int, written: int) -> list[int]:
    return [
        0x94000000 | (run >> 2 & 0x3FFFFFF),  # bl run
        0x2A0003F3,  # mov w19, w0
        _movz(0, 1),
        _movz(1, DATA_AT >> 16, 1),
        _movz(2, written & 0xFFFF),
        _movz(2, written >> 16, 1) | 0x20000000,  # movk
        _movz(8, 64),  # write
        0xD4000001,  # svc #0
        0x2A1303E0,  # mov w0, w19
        _movz(8, 93),  # exit
        0xD4000001,
    ]


def _riscv_start(run: int, written: int) -> list[int]:
    result, first, second, third, call = 9, 10, 11, 12, 17  # s1, a0, a1, a2, a7
    jump = (run >> 20 & 1) << 31 | (run >> 1 & 0x3FF) << 21 | (run >> 11 & 1) << 20
    upper = written + 0x800 >> 12
    return [
        jump | (run >> 12 & 0xFF) << 12 | 0xEF,  # jal ra, run
        _addi(result, first, 0),
        _addi(first, 0, 1),
        DATA_AT & ~0xFFF | second << 7 | 0x37,  # lui
        upper << 12 | third << 7 | 0x37,
        _addi(third, third, written - (upper << 12)),
        _addi(call, 0, 64),  # write
        0x73,  # ecall
        _addi(first, result, 0),
        _addi(call, 0, 93),  # exit
        0x73,
    ]


def _addi(register: int, source: int, value: int) -> int:
    return (value & 0xFFF) << 20 | source << 15 | register << 7 | 0x13


def _movz(register: int, value: int, half: int = 0) -> int:
    return 0xD2800000 | half << 21 | value << 5 | register


def _elf(code: bytes, entry: int, memory: bytes, size_bytes: int, machine: int) -> bytes:
    entry += CODE_AT
    filled = code + bytes(-len(code) % PAGE)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH",
        *(b"\x7fELF\x02\x01\x01", 2, machine, 1, entry, 64, 0, 0, 64, 56, 2, 0, 0, 0),
    )
    for flags, offset, at, file_bytes, memory_bytes in (
        (5, PAGE, CODE_AT, len(code), len(code)),
        (6, PAGE + len(filled), DATA_AT, len(memory), size_bytes),
    ):
        head += struct.pack("<IIQQQQQQ", 1, flags, offset, at, at, file_bytes, memory_bytes, PAGE)
    return head.ljust(PAGE, b"\0") + filled + memory


def write_program(path: Path, program: bytes) -> Path:
    path.write_bytes(program)
    path.chmod(0o700)
    return path
