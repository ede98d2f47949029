"""Loops of multiply-adds by type and width, of shuffles, and of tensor instructions.

Each kind has two loops: side by side on as many registers as there are, for the rate, and one after
the other on a single one, for the latency. What LLVM might combine or spell in another way is
written as assembly.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from llvmlite import binding, ir

from tilewright.llvm.instruction_loops import STEPS, InstructionLoop
from tilewright.llvm.jit import Function, load
from tilewright.llvm.probes import I64, PTR, close_loop, open_loop
from tilewright.target import Target
from tilewright.target.machine import nominal
from tilewright.target.rates import TYPE_BYTES, VectorRate

__all__ = ["CHAIN", "SHUFFLES", "compile_vector_loops", "vector_loops"]

CHAIN: Final = " chain"
"""At the end of the name of a loop whose instructions wait for each other."""
SHUFFLES: Final = "shuffles"

Step = Callable[[ir.IRBuilder, ir.Value], ir.Value]
"""One step of the kind on one register."""


@dataclass(frozen=True)
class _Assembly:
    """A sequence of instructions on a sum `$0` and an operand `$2`, in registers of a kind."""

    text: str
    kind: str
    """The constraint of a register: `v` and `x` of x86, `w` of AArch64."""
    vector_bytes: int
    scratch: int = 0
    """Further registers, `$1` first, that the sequence overwrites."""


_TENSOR: Final = {
    "x86.avx2.dot2": _Assembly("vpmaddwd $2, $2, $1\nvpaddd $1, $0, $0", "x", 32, 1),
    "x86.avx2.dot2_i16": _Assembly("vpmaddubsw $2, $2, $1\nvpaddw $1, $0, $0", "x", 32, 1),
    "x86.avx2.dot4": _Assembly(
        "vpmaddwd $3, $3, $1\nvpmaddwd $3, $3, $2\nvphaddd $2, $1, $1\n"
        "vpermd $1, $3, $1\nvpaddd $1, $0, $0",
        "x",
        32,
        2,
    ),
    "x86.avx512bw.dot2": _Assembly("vpmaddwd $2, $2, $1\nvpaddd $1, $0, $0", "v", 64, 1),
    "x86.avxvnni.dot4": _Assembly("{vex} vpdpbusd $1, $1, $0", "x", 32),
    "x86.avx512vnni.dot4": _Assembly("vpdpbusd $1, $1, $0", "v", 64),
    "x86.avx512bf16.dot2": _Assembly("vdpbf16ps $1, $1, $0", "v", 64),
    "arm.dotprod.sdot": _Assembly("sdot $0.4s, $1.16b, $1.16b", "w", 16),
    "arm.dotprod.udot": _Assembly("udot $0.4s, $1.16b, $1.16b", "w", 16),
    "arm.i8mm.usdot": _Assembly("usdot $0.4s, $1.16b, $1.16b", "w", 16),
    "arm.i8mm.mmla": _Assembly("smmla $0.4s, $1.16b, $1.16b", "w", 16),
    "arm.bf16.dot2": _Assembly("bfdot $0.4s, $1.8h, $1.8h", "w", 16),
    "arm.bf16.mmla": _Assembly("bfmmla $0.4s, $1.8h, $1.8h", "w", 16),
}
"""By the names of `target.rates`; the operand comes after the scratch registers."""


def compile_vector_loops(target: Target) -> dict[str, InstructionLoop]:
    """All loops that a target has, by the name of what they measure; it must be able to run here.

    A unit is one vector, or one tensor instruction.
    """
    binding.initialize_native_asmparser()
    text, symbols = vector_loops(target)
    code = load(text, target)
    types = ctypes.c_int64, ctypes.c_void_p
    return {
        name: InstructionLoop(name, Function(code, symbol, *types))
        for name, symbol in symbols.items()
    }


def vector_loops(target: Target) -> tuple[str, dict[str, str]]:
    """LLVM text of all loops that a target has, and the symbol of each."""
    module = ir.Module("tilewright_vectors")
    module.triple = target.triple
    symbols = {}
    for number, (name, vector, step, registers) in enumerate(_kinds(module, target)):
        # Some are for operands and for what the longest sequence overwrites.
        for suffix, accumulators in (("", registers - 4), (CHAIN, 1)):
            symbol = f"loop_{number}_{accumulators}"
            symbols[name + suffix] = symbol
            _emit(module, symbol, vector, step, accumulators)
    return str(module), symbols


def _kinds(module: ir.Module, target: Target) -> Iterator[tuple[str, ir.VectorType, Step, int]]:
    """Name, vector, step, and registers that it can use."""
    model, registers = nominal(target), target.vector_registers
    for rate in model.vectors:
        # Without vectors, each lane has a register of its own.
        pieces = (
            max(1, rate.vector_bytes // TYPE_BYTES[rate.dtype]) if rate.vector_bytes < 16 else 1
        )
        yield rate.name, *_multiply_adds(module, rate, fused=target.fma), registers // pieces
    sequences = {i.name: _TENSOR.get(i.name) for i in model.instructions}
    for name, assembly in {**sequences, SHUFFLES: _shuffle(target)}.items():
        if assembly is not None:
            few = 16 if assembly.kind == "x" else registers
            yield name, *_assembled(assembly), few


def _multiply_adds(
    module: ir.Module, rate: VectorRate, *, fused: bool
) -> tuple[ir.VectorType, Step]:
    kinds = {"f16": ir.HalfType(), "f32": ir.FloatType(), "f64": ir.DoubleType()}
    vector = ir.VectorType(kinds[rate.dtype], rate.vector_bytes // TYPE_BYTES[rate.dtype])
    half = ir.Constant(vector, [0.5] * vector.count)
    if not fused:
        return vector, lambda b, v: b.fadd(b.fmul(v, half), half)
    bits = 8 * TYPE_BYTES[rate.dtype]
    name = f"llvm.fma.v{vector.count}f{bits}"
    fma = ir.Function(module, ir.FunctionType(vector, [vector] * 3), name)
    return vector, lambda b, v: b.call(fma, [v, half, half])


def _shuffle(target: Target) -> _Assembly | None:
    """Lanes of two vectors, interleaved; None where it is not known how to write that."""
    if target.arch == "aarch64":
        return _Assembly("zip1 $0.4s, $0.4s, $1.4s", "w", 16)
    if target.arch != "x86_64":
        return None
    size = target.vector_bytes
    if size == 16:
        return _Assembly("unpcklps $1, $0", "x", 16)
    return _Assembly("vunpcklps $1, $0, $0", "v" if size == 64 else "x", size)


def _assembled(assembly: _Assembly) -> tuple[ir.VectorType, Step]:
    vector = ir.VectorType(ir.IntType(32), assembly.vector_bytes // 4)
    kind, count = assembly.kind, assembly.scratch
    results: ir.Type = ir.LiteralStructType([vector] * (1 + count)) if count else vector
    wanted = ",".join([f"={kind}", *[f"=&{kind}"] * count, kind, "0"])
    operand = ir.Constant(vector, [0] * vector.count)
    # The operand follows the results, and the sum comes back last: it is `$0` on both sides.
    form = ir.FunctionType(results, [vector, vector])

    def step(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        made = builder.asm(form, assembly.text, wanted, [operand, value], side_effect=True)
        return builder.extract_value(made, 0) if count else made

    return vector, step


def _emit(
    module: ir.Module, symbol: str, vector: ir.VectorType, step: Step, accumulators: int
) -> None:
    """`STEPS` steps in each turn, on the accumulators by turns."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, PTR]), symbol)
    turns, memory = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    zero = ir.Constant(vector, [0] * vector.count)
    before = builder.block
    body, index = open_loop(builder)
    phis = [builder.phi(vector) for _ in range(accumulators)]
    values: list[ir.Value] = list(phis)
    for number in range(STEPS):
        place = number % accumulators
        values[place] = step(builder, values[place])
    for phi, value in zip(phis, values, strict=True):
        phi.add_incoming(zero, before)
        phi.add_incoming(value, body)
    close_loop(builder, body, index, turns)
    for number, value in enumerate(values):  # used, so that it is computed
        builder.store(value, builder.gep(memory, [I64(number)], source_etype=vector), align=4)
    builder.ret_void()
