"""Loops of one kind of instruction, as LLVM IR: how long each takes says what a core can do.

A chain of additions, each of which takes one cycle on every processor there is, so that it tells
the frequency; loads of single elements; stores. Arithmetic is in `vector_loops`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from llvmlite import binding, ir

from tilewright.llvm.jit import Function, load
from tilewright.llvm.probes import I64, PTR, close_loop, open_loop
from tilewright.target import Target

__all__ = ["InstructionLoop", "compile_loops"]

STEPS: Final = 64
"""Instructions of the kind in question in one turn of a loop."""

_ADD_ONE: Final = {
    "x86_64": "add $$1, $0",
    "aarch64": "add $0, $0, #1",
    "riscv64": "addi $0, $0, 1",
}


@dataclass(frozen=True)
class InstructionLoop:
    """`run(turns, memory)` executes `STEPS` instructions in each turn on 4 KiB of memory."""

    name: str
    run: Callable[[int, int], None]
    per_turn: int = STEPS


def compile_loops(target: Target) -> dict[str, InstructionLoop]:
    """All loops for a target, which must be able to run here."""
    binding.initialize_native_asmparser()  # one loop is written as assembly
    module = ir.Module("tilewright_loops")
    module.triple = target.triple
    bodies = {
        "addition chain": _additions,
        "element loads": _element_loads,
        "vector stores": _vector_stores,
    }
    symbols = {name: name.replace(" ", "_").replace("-", "_") for name in bodies}
    for name, body in bodies.items():
        body(module, symbols[name], target)
    code = load(str(module), target)
    types = ctypes.c_int64, ctypes.c_void_p
    return {n: InstructionLoop(n, Function(code, symbol, *types)) for n, symbol in symbols.items()}


def _begin(module: ir.Module, name: str) -> tuple[ir.IRBuilder, ir.Value, ir.Value]:
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, PTR]), name)
    turns, memory = function.args
    return ir.IRBuilder(function.append_basic_block("entry")), turns, memory


def _additions(module: ir.Module, name: str, target: Target) -> None:
    """Written as assembly: a compiler would make one addition of all of them."""
    builder, turns, memory = _begin(module, name)
    start = builder.load(memory, typ=I64)
    before = builder.block
    body, index = open_loop(builder)
    value = first = builder.phi(I64)
    kind = ir.FunctionType(I64, [I64])
    for _ in range(STEPS):
        value = builder.asm(kind, _ADD_ONE[target.arch], "=r,0", [value], side_effect=True)
    first.add_incoming(start, before)
    first.add_incoming(value, body)
    close_loop(builder, body, index, turns)
    builder.store(value, memory)
    builder.ret_void()


def _element_loads(module: ir.Module, name: str, target: Target) -> None:
    """Elements that fill vectors of 16 bytes, which every unit handles in one go."""
    del target
    builder, turns, memory = _begin(module, name)
    lanes = ir.VectorType(ir.IntType(32), 4)
    before = builder.block
    body, index = open_loop(builder)
    folds = [builder.phi(lanes) for _ in range(8)]
    values: list[ir.Value] = list(folds)
    zeros = ir.Constant(lanes, [0] * 4)
    for j in range(STEPS):
        address = builder.gep(memory, [I64(j)], source_etype=ir.IntType(32))
        element = builder.load(address, typ=ir.IntType(32))
        one = builder.insert_element(ir.Constant(lanes, ir.Undefined), element, ir.IntType(32)(0))
        spread = builder.shuffle_vector(one, one, zeros)
        values[j % 8] = builder.xor(values[j % 8], spread)
    for fold, value in zip(folds, values, strict=True):
        fold.add_incoming(zeros, before)
        fold.add_incoming(value, body)
    close_loop(builder, body, index, turns)
    for j, value in enumerate(values):
        builder.store(value, builder.gep(memory, [I64(j + 64)], source_etype=lanes), align=4)
    builder.ret_void()


def _vector_stores(module: ir.Module, name: str, target: Target) -> None:
    builder, turns, memory = _begin(module, name)
    vector = ir.VectorType(ir.FloatType(), target.lanes(4))
    value = builder.load(memory, typ=vector, align=4)
    body, index = open_loop(builder)
    for j in range(STEPS):
        place = j % (4096 // target.vector_bytes)
        store = builder.store(value, builder.gep(memory, [I64(place)], source_etype=vector))
        store.align = target.vector_bytes
    close_loop(builder, body, index, turns)
    builder.ret_void()
