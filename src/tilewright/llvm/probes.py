"""Measuring kernels as LLVM IR: a loop of nothing but multiply-adds, and streams over memory.

They are written straight in LLVM IR because they must be exactly what they claim: every value is a
full vector in a register, nothing is unrolled, vectorised or simplified behind their back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from llvmlite import ir

from tilewright.abi import CONTEXT
from tilewright.llvm.jit import Function, MachineCode, load
from tilewright.target import Target

__all__ = [
    "STREAMS",
    "Probes",
    "Stream",
    "Walk",
    "close_loop",
    "compile_probes",
    "compile_walks",
    "declare_fma",
    "fma_accumulators",
    "open_loop",
]

I64: Final = ir.IntType(64)
PTR: Final = ir.PointerType()
FMA_STEPS: Final = 8
"""Multiply-adds on each accumulator in one turn of the loop, so that the loop itself is free."""
UNROLL: Final = 8
"""Vectors that a stream moves in one turn of its loop."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A walk over memory: how many arrays it uses, and how many of them it moves per element."""

    name: str
    arrays: int


STREAMS: Final = (Stream("read", 1), Stream("copy", 2), Stream("triad", 3))


@dataclass(frozen=True, slots=True)
class Probes:
    """The compiled kernels. They hold no Python lock while they run, and keep their code alive.

    `fma(turns, data)` does `fma_flops` operations per turn on the vectors at `data`;
    `streams[name](repeats, bytes, a, b, c)` walks `bytes` of each array, `repeats` times; `bytes`
    is a multiple of `step_bytes`, and the arrays are aligned to vectors.
    """

    fma: Callable[[int, int], None]
    fma_flops: int
    streams: dict[str, Callable[[int, int, int, int, int], None]]
    step_bytes: int


def fma_accumulators(target: Target) -> int:
    """Twice what the ports need in flight, as far as the registers reach."""
    spare = 3 if target.fma else 4  # two operands, and room for a product without FMA
    return min(target.vector_registers - spare, 2 * target.accumulators)


def compile_probes(target: Target) -> Probes:
    """Compile the kernels for `target`, which must be able to run here."""
    target.require_runs_on(Target.host())
    module = ir.Module("tilewright_probes")
    module.triple = target.triple
    _emit_fma(module, target)
    for stream in STREAMS:
        _emit_stream(module, target, stream)
    code = load(str(module), target)
    walk = [ctypes.c_int64] * 2 + [ctypes.c_void_p] * 3
    return Probes(
        fma=Function(code, "fma", ctypes.c_int64, ctypes.c_void_p),
        fma_flops=2 * target.lanes(4) * fma_accumulators(target) * FMA_STEPS,
        streams={s.name: Function(code, s.name, *walk) for s in STREAMS},
        step_bytes=UNROLL * target.vector_bytes,
    )


@dataclass(frozen=True, slots=True)
class Walk:
    """Reading `bytes` so many times, each thread in a part of its own, `span` bytes apart."""

    bytes: int
    span: int
    repeats: int


def compile_walks(target: Target, walks: Mapping[str, Walk]) -> MachineCode:
    """Kernels of the runtime's kind by the names of walks, on one array for all threads."""
    module = ir.Module("tilewright_walks")
    module.triple = target.triple
    _emit_stream(module, target, next(s for s in STREAMS if s.name == "read"))
    for name, walk in walks.items():
        _emit_walk(module, name, walk)
    return load(str(module), target)


def _emit_walk(module: ir.Module, name: str, walk: Walk) -> None:
    kind = ir.FunctionType(ir.IntType(32), [PTR] * 3)
    function = ir.Function(module, kind, name)
    buffers, _, context = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    byte = ir.IntType(8)
    place = builder.gep(context, [I64(CONTEXT["thread"].offset)], source_etype=byte)
    thread = builder.zext(builder.load(place, typ=ir.IntType(32)), I64)
    base = builder.load(buffers, typ=PTR)
    start = builder.gep(base, [builder.mul(thread, I64(walk.span))], source_etype=byte)
    end = builder.gep(start, [I64(walk.bytes)], source_etype=byte)
    read = module.get_global("read")
    builder.call(read, [I64(walk.repeats), I64(walk.bytes), start, end, end])
    builder.ret(ir.IntType(32)(0))


def open_loop(builder: ir.IRBuilder) -> tuple[ir.Block, ir.PhiInstr]:
    """Open a loop; `close_loop` ends it after `count` ≥ 1 turns."""
    before, body = builder.block, builder.append_basic_block("loop")
    builder.branch(body)
    builder.position_at_end(body)
    index = builder.phi(I64, "i")
    index.add_incoming(I64(0), before)
    return body, index


def close_loop(builder: ir.IRBuilder, body: ir.Block, index: ir.PhiInstr, count: ir.Value) -> None:
    """End a loop after `count` turns, and go on behind it."""
    following = builder.add(index, I64(1))
    index.add_incoming(following, builder.block)
    after = builder.append_basic_block("after")
    builder.cbranch(builder.icmp_signed("<", following, count), body, after)
    builder.position_at_end(after)


def _emit_fma(module: ir.Module, target: Target) -> None:
    """acc[j] ← acc[j]·x + y for many j at once, with x and y taken from memory."""
    vector = ir.VectorType(ir.FloatType(), target.lanes(4))
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, PTR]), "fma")
    turns, data = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    count = fma_accumulators(target)
    addresses = [builder.gep(data, [I64(j)], source_etype=vector) for j in range(count + 2)]
    *starts, x, y = (builder.load(address, typ=vector, align=4) for address in addresses)
    before = builder.block
    body, index = open_loop(builder)
    phis = [builder.phi(vector) for _ in starts]
    values: list[ir.Value] = list(phis)
    fuse = declare_fma(module, vector) if target.fma else None
    for _ in range(FMA_STEPS):
        values = [
            builder.call(fuse, [v, x, y]) if fuse else builder.fadd(builder.fmul(v, x), y)
            for v in values
        ]
    for phi, start, value in zip(phis, starts, values, strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(value, body)
    close_loop(builder, body, index, turns)
    for value, address in zip(values, addresses, strict=False):
        builder.store(value, address, align=4)
    builder.ret_void()


def declare_fma(module: ir.Module, vector: ir.VectorType) -> ir.Function:
    """LLVM's fused multiply-add of such vectors."""
    kind = ir.FunctionType(vector, [vector] * 3)
    return ir.Function(module, kind, f"llvm.fma.v{vector.count}f32")


def _emit_stream(module: ir.Module, target: Target, stream: Stream) -> None:
    """read: fold a; copy: a ← b; triad: a ← b + s·c."""
    vector = ir.VectorType(ir.FloatType(), target.lanes(4))
    step_bytes = UNROLL * target.vector_bytes
    kind = ir.FunctionType(ir.VoidType(), [I64, I64, PTR, PTR, PTR])
    function = ir.Function(module, kind, stream.name)
    repeats, size, *arrays = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    turns = builder.udiv(size, I64(step_bytes))
    outer, repeat = open_loop(builder)
    before = builder.block
    body, index = open_loop(builder)
    bits = ir.VectorType(I64, target.vector_bytes // 8)
    folds = [builder.phi(bits) for _ in range(UNROLL if stream.name == "read" else 0)]
    offset = builder.mul(index, I64(step_bytes))
    bases = [builder.gep(a, [offset], source_etype=ir.IntType(8)) for a in arrays[: stream.arrays]]

    def load(array: int, j: int) -> ir.Value:
        address = builder.gep(bases[array], [I64(j)], source_etype=vector)
        return builder.load(address, typ=vector, align=target.vector_bytes)

    def store(value: ir.Value, j: int) -> None:
        address = builder.gep(bases[0], [I64(j)], source_etype=vector)
        builder.store(value, address, align=target.vector_bytes)

    sums: list[ir.Value] = []
    match stream.name:
        case "read":
            words = (builder.bitcast(load(0, j), bits) for j in range(UNROLL))
            sums = [builder.xor(fold, word) for fold, word in zip(folds, words, strict=True)]
            for fold, value in zip(folds, sums, strict=True):
                fold.add_incoming(ir.Constant(bits, None), before)
                fold.add_incoming(value, body)
        case "copy":
            for j in range(UNROLL):
                store(load(1, j), j)
        case "triad":
            half = ir.Constant(vector, [0.5] * vector.count)
            for j in range(UNROLL):
                store(builder.fadd(load(1, j), builder.fmul(load(2, j), half)), j)
    close_loop(builder, body, index, turns)
    for j, value in enumerate(sums):  # used, so that it is computed
        builder.store(value, builder.gep(arrays[1], [I64(j)], source_etype=vector))
    close_loop(builder, outer, repeat, repeats)
    builder.ret_void()
