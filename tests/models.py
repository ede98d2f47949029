"""Whole programs for tests: written by hand, and run slowly in Python.

`interpret` is what the contract in `runtime/program.py` means: one thread, every buffer in memory
of its own that is filled with noise, kernels called one by one. The executor must agree with it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.abi import CONTEXT_SIZE_BYTES
from tilewright.dtypes import DType, f32
from tilewright.runtime.program import (
    Assign,
    Buffer,
    Call,
    Enter,
    Host,
    Jump,
    KernelCode,
    Place,
    Port,
    Program,
    Size,
    SizeExpr,
    SizeOp,
    Step,
)
from tilewright.runtime.sizes import constant, evaluate, extents

Dim = int | str
KERNEL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
SCRATCH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
BARRIER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
NOISE = 0xA5


class Code:
    """An image whose offsets are addresses."""

    address = 0


def product(*factors: int | SizeExpr) -> SizeExpr:
    """The expression of a product; a factor is a number or an expression."""
    found = constant(factors[0]) if isinstance(factors[0], int) else factors[0]
    for factor in factors[1:]:
        right = constant(factor) if isinstance(factor, int) else factor
        found = (*found, *right, (SizeOp.MUL, 0))
    return found


@dataclass
class Draft:
    """A program under construction; things are referred to by name."""

    name: str = "model"
    sizes: list[Size] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    kernels: list[KernelCode] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    segments: int = 1

    def size(self, name: str, value: SizeExpr | None = None, segment: int = 0) -> SizeExpr:
        self.sizes.append(Size(name, value, segment))
        return ((SizeOp.SIZE, len(self.sizes) - 1),)

    def of(self, name: str) -> SizeExpr:
        return ((SizeOp.SIZE, self.number(name)),)

    def number(self, name: str) -> int:
        return [size.name for size in self.sizes].index(name)

    def at(self, name: str) -> int:
        return [buffer.name for buffer in self.buffers].index(name)

    def dims(self, shape: Sequence[Dim]) -> tuple[int, ...]:
        return tuple(d if isinstance(d, int) else -1 - self.number(d) for d in shape)

    def bytes(self, shape: Sequence[Dim], dtype: DType) -> SizeExpr:
        factors = [d if isinstance(d, int) else self.of(d) for d in shape]
        return product(dtype.size_bytes, *factors)

    def buffer(
        self, name: str, place: Place, shape: Sequence[Dim], dtype: DType = f32, **more: Any
    ) -> None:
        self.buffers.append(Buffer(name, place, self.bytes(shape, dtype), **more))

    def input(self, name: str, shape: Sequence[Dim], dtype: DType = f32) -> None:
        for size in shape:
            if isinstance(size, str) and all(known.name != size for known in self.sizes):
                self.size(size)
        self.buffer(name, Place.INPUT, shape, dtype)
        self.inputs.append(Port(name, dtype, self.dims(shape), tuple(shape), self.at(name)))

    def output(
        self, name: str, shape: Sequence[Dim], dtype: DType = f32, *, of: str = "", segment: int = 0
    ) -> None:
        if not of:
            self.buffer(name, Place.OUTPUT, shape, dtype, segment=segment)
        port = Port(name, dtype, self.dims(shape), tuple(shape), self.at(of or name))
        self.outputs.append(port)

    def temporary(
        self,
        name: str,
        shape: Sequence[Dim],
        first: int,
        last: int,
        dtype: DType = f32,
        **more: Any,
    ) -> None:
        self.buffer(name, Place.ARENA, shape, dtype, first=first, last=last, **more)

    def kernel(self, name: str, address: int, *, parallel: bool = True, **more: Any) -> None:
        self.kernels.append(KernelCode(name, address, parallel, **more))

    def call(self, kernel: str, buffers: str, sizes: str = "", *, wait: bool = True) -> None:
        number = [code.name for code in self.kernels].index(kernel)
        places = tuple(map(self.at, buffers.split()))
        numbers = tuple(map(self.number, sizes.split()))
        self.steps.append(Call(number, places, numbers, wait))

    def program(self) -> Program:
        return Program(
            self.name,
            tuple(self.inputs),
            tuple(self.outputs),
            tuple(self.sizes),
            tuple(self.buffers),
            tuple(self.kernels),
            tuple(self.steps),
            self.segments,
        )


def interpret(
    program: Program,
    feeds: Mapping[str, np.ndarray],
    weights: bytes = b"",
    functions: Sequence[Any] = (),
) -> list[np.ndarray]:
    """The outputs, by the book."""
    return _Run(program, weights, functions).run(feeds)


class _Run:
    def __init__(self, program: Program, weights: bytes, functions: Sequence[Any]) -> None:
        self.program, self.weights, self.functions = program, weights, functions
        self.sizes = [0] * len(program.sizes)
        self.memory: dict[int, np.ndarray] = {}

    def run(self, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        for port in self.program.inputs:
            array = np.asarray(feeds[port.name], order="C")
            self.memory[port.buffer] = array.reshape(-1).view(np.uint8).copy()
            for dim, extent in zip(port.dims, array.shape, strict=True):
                if dim < 0:
                    self.sizes[-1 - dim] = extent
        self.enter(0)
        at = 0
        while at < len(self.program.steps):
            at = self.step(self.program.steps[at], at)
        return [
            self.array(port.buffer, port.dtype, port.dims).copy() for port in self.program.outputs
        ]

    def array(self, buffer: int, dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
        shape = extents(dims, self.sizes)
        count = int(np.prod(shape, dtype=np.int64)) * dtype.size_bytes
        return self.bytes_of(buffer)[:count].view(dtype.numpy).reshape(shape)

    def bytes_of(self, number: int) -> np.ndarray:
        buffer = self.program.buffers[number]
        if buffer.place is not Place.PART:
            return self.memory[number]
        offset, count = evaluate(buffer.offset, self.sizes), evaluate(buffer.bytes, self.sizes)
        return self.bytes_of(buffer.parent)[offset : offset + count]

    def enter(self, segment: int) -> None:
        for number, size in enumerate(self.program.sizes):
            if size.segment == segment and size.value is not None:
                self.sizes[number] = evaluate(size.value, self.sizes)
        for number, buffer in enumerate(self.program.buffers):
            count = evaluate(buffer.bytes, self.sizes) if buffer.segment == segment else 0
            if buffer.segment != segment:
                continue
            if buffer.place in (Place.ARENA, Place.OUTPUT):
                self.memory[number] = np.full(count, NOISE, np.uint8)
            if buffer.place is Place.WEIGHTS:
                offset = evaluate(buffer.offset, self.sizes)
                part = self.weights[offset : offset + count]
                self.memory[number] = np.frombuffer(part, np.uint8).copy()

    def step(self, step: Step, at: int) -> int:
        match step:
            case Call():
                self.call(step)
            case Jump():
                if not self.holds(step):
                    return step.to
            case Assign():
                self.sizes[step.size] = evaluate(step.value, self.sizes)
            case Enter():
                for size, buffer, element in step.read:
                    self.sizes[size] = int(self.bytes_of(buffer).view(np.int64)[element])
                self.enter(step.segment)
            case Host():
                arrays = [self.array(o.buffer, o.dtype, o.dims) for o in step.inputs]
                results = [np.ascontiguousarray(a) for a in self.functions[step.function](*arrays)]
                for operand, result in zip(step.outputs, results, strict=True):
                    self.memory[operand.buffer] = result.reshape(-1).view(np.uint8)
                for size, result_number, axis in step.defines:
                    self.sizes[size] = results[result_number].shape[axis]
        return at + 1

    def holds(self, step: Jump) -> bool:
        if step.condition:
            return evaluate(step.condition, self.sizes) != 0
        return step.unless >= 0 and self.bytes_of(step.unless)[0] != 0

    def call(self, step: Call) -> None:
        sizes = [self.sizes[number] for number in step.sizes]
        is_empty = bool(step.buffers) and self.bytes_of(step.buffers[-1]).size == 0
        if is_empty:
            return
        assert min(sizes, default=0) >= 0
        code = self.program.kernels[step.kernel]
        pointers = [self.bytes_of(number).ctypes.data for number in step.buffers]
        buffers = (ctypes.c_void_p * max(1, len(pointers)))(*pointers)
        numbers = (ctypes.c_int64 * max(1, len(sizes)))(*sizes)
        scratch = (ctypes.c_int64 * 2)(code.shared_bytes, code.local_bytes)
        if code.scratch >= 0:
            SCRATCH(code.scratch)(ctypes.addressof(numbers), ctypes.addressof(scratch))
        areas = [np.full(int(count) + 64, NOISE, np.uint8) for count in scratch]
        barrier = BARRIER(lambda _: None)
        context = np.zeros(CONTEXT_SIZE_BYTES // 8, np.int64)
        context[0] = 1 << 32  # thread 0 of 1
        context[1] = ctypes.cast(barrier, ctypes.c_void_p).value
        context[2:4] = [-(-area.ctypes.data // 64) * 64 for area in areas]
        result = KERNEL(code.entry)(
            ctypes.addressof(buffers), ctypes.addressof(numbers), context.ctypes.data
        )
        assert result == 0
