"""A program as `native/program.h` takes it: tables whose rows are 64-bit numbers.

Expressions and lists of numbers are kept in one table each; a row refers to them by where they
begin and how many they are. The order of members here is that of the structures in C.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilewright.runtime.program import (
    Assign,
    Buffer,
    Call,
    Enter,
    Host,
    Jump,
    KernelCode,
    Place,
    Program,
    Size,
    SizeExpr,
    SizeOp,
    Step,
)
from tilewright.runtime.sizes import depth_of
from tilewright.runtime.verify import MAX_DEPTH

__all__ = ["encode"]

PLACES = {place: number for number, place in enumerate(Place)}
CALL, JUMP, ENTER, HOST, ASSIGN = range(5)

Row = tuple[int, ...]
Table = NDArray[np.int64]


def encode(program: Program, image_address: int) -> tuple[Table, ...]:
    """Operations, sizes, buffers, kernels, steps, numbers."""
    shared = _Shared()
    rows: list[list[Row]] = [
        [_size(size, shared) for size in program.sizes],
        [_buffer(buffer, shared) for buffer in program.buffers],
        [_kernel(kernel, image_address) for kernel in program.kernels],
        [_step(step, shared) for step in program.steps],
    ]
    return (_table(shared.operations), *map(_table, rows), _table([shared.numbers]))


@dataclass(slots=True)
class _Shared:
    """The tables that rows refer to; equal expressions are kept once."""

    operations: list[Row] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    known: dict[SizeExpr, Row] = field(default_factory=dict)

    def expression(self, value: SizeExpr | None) -> Row:
        if not value:
            return 0, 0
        found = self.known.get(value)
        if found is None:
            found = self.known[value] = len(self.operations), len(value)
            self.operations += [(int(op), operand) for op, operand in value]
        return found

    def span(self, values: Iterable[int]) -> Row:
        start = len(self.numbers)
        self.numbers += values
        return start, len(self.numbers) - start


def _size(size: Size, shared: _Shared) -> Row:
    return *shared.expression(size.value), size.segment


def _buffer(buffer: Buffer, shared: _Shared) -> Row:
    head = PLACES[buffer.place], *shared.expression(buffer.bytes)
    life = buffer.segment, buffer.first, buffer.last
    return *head, *life, buffer.parent, *shared.expression(buffer.offset)


def _kernel(kernel: KernelCode, base: int) -> Row:
    scratch = base + kernel.scratch if kernel.scratch >= 0 else 0
    entry = base + kernel.entry
    return entry, scratch, int(kernel.parallel), kernel.shared_bytes, kernel.local_bytes


def _step(step: Step, shared: _Shared) -> Row:
    match step:
        case Call():
            head: Row = (CALL, step.kernel, int(step.wait))
            spans: Sequence[Iterable[int]] = (step.buffers, step.sizes)
            numbers = [number for values in spans for number in shared.span(values)]
            return *head, *numbers, *shared.expression(_work(step))
        case Jump():
            return JUMP, step.to, step.unless, *shared.expression(step.condition), 0, 0, 0, 0
        case Assign():
            return ASSIGN, step.size, 0, *shared.expression(step.value), 0, 0, 0, 0
        case Enter():
            read = [number for triple in step.read for number in triple]
            head, spans = (ENTER, step.segment, 0), (read, (), ())
        case Host():
            inputs, outputs = ([o.buffer for o in side] for side in (step.inputs, step.outputs))
            defined = [size for size, _, _ in step.defines]
            head, spans = (HOST, step.function, 0), (inputs, outputs, defined)
    return *head, *(number for values in spans for number in shared.span(values))


def _table(rows: Sequence[Sequence[int]]) -> Table:
    return np.array([number for row in rows for number in row], np.int64)


def _work(call: Call) -> SizeExpr:
    """One number for how much a call has to do: a byte counts as much as four operations."""
    if not call.flops or not call.moved_bytes:
        return ()
    work = (*call.flops, *call.moved_bytes, (SizeOp.CONST, 4), (SizeOp.MUL, 0), (SizeOp.ADD, 0))
    return work if depth_of(work) <= MAX_DEPTH else ()
