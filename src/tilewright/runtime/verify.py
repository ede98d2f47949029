"""What every program keeps to; the native side relies on it and looks at nothing twice.

Numbers refer to something that exists, expressions are well formed, a segment depends on earlier
ones only, parts are inside of something that is not a part. What depends on sizes (does a part fit
its parent, are there enough weights) is checked when they are known, by native/frame.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from tilewright.dtypes import DTYPES, DType
from tilewright.errors import ArtefactError, Code
from tilewright.runtime.program import (
    Assign,
    Call,
    Enter,
    Host,
    Jump,
    Operand,
    Place,
    Port,
    Program,
    SizeExpr,
    SizeOp,
    Step,
)
from tilewright.runtime.sizes import taken_by

__all__ = ["MAX_DEPTH", "verify"]

A201 = Code("A201", "the program `{model}` is not well formed: {problem}")

MAX_DEPTH = 32
"""Values that an expression may keep at once: TW_EXPRESSION_DEPTH in native/expression.h."""
MAX_NESTING = 64
MAX_RANK = 64
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
HINT = "compile the model again; a program that the compiler made is a bug of tilewright"


def verify(program: Program) -> None:
    """Raise `ArtefactError` unless the program is well formed."""
    _Verifier(program).run()


class _Verifier:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.checked: set[tuple[SizeExpr, int, int]] = set()

    def run(self) -> None:
        program = self.program
        self.require(1 <= program.segments <= max(1, len(program.steps) + 1), "segments", "a count")
        self.sizes()
        self.buffers()
        self.ports()
        for number, kernel in enumerate(program.kernels):
            at = f"kernels[{number}]"
            self.number(kernel.entry, 0, GREATEST, f"{at}.entry")
            self.number(kernel.scratch, -1, GREATEST, f"{at}.scratch")
            self.number(kernel.shared_bytes, 0, GREATEST, f"{at}.shared_bytes")
            self.number(kernel.local_bytes, 0, GREATEST, f"{at}.local_bytes")
        for number, step in enumerate(program.steps):
            self.step(step, f"steps[{number}]")
        self.told()

    def sizes(self) -> None:
        for number, size in enumerate(self.program.sizes):
            at = f"sizes[{number}]"
            self.segment(size.segment, f"{at}.segment")
            if size.value is not None:
                self.expression(size.value, size.segment, number, f"{at}.value")

    def buffers(self) -> None:
        buffers, steps = self.program.buffers, len(self.program.steps)
        for number, buffer in enumerate(buffers):
            at = f"buffers[{number}]"
            self.segment(buffer.segment, f"{at}.segment")
            self.expression(buffer.bytes, buffer.segment, None, f"{at}.bytes")
            if buffer.place is Place.ARENA:
                self.number(buffer.last, 0, steps - 1, f"{at}.last")
                self.number(buffer.first, 0, buffer.last, f"{at}.first")
            if buffer.place in (Place.WEIGHTS, Place.PART):
                self.expression(buffer.offset, buffer.segment, None, f"{at}.offset")
            if buffer.place is Place.PART:
                self.parents(number, at)
            if buffer.place is Place.INPUT:
                self.require(buffer.segment == 0, f"{at}.segment", "0 for an input")

    def parents(self, number: int, at: str) -> None:
        buffers = self.program.buffers
        segment = buffers[number].segment
        for _ in range(MAX_NESTING):
            number = self.number(buffers[number].parent, 0, len(buffers) - 1, f"{at}.parent")
            is_earlier = buffers[number].segment <= segment
            self.require(is_earlier, f"{at}.parent", "of the same segment or an earlier one")
            if buffers[number].place is not Place.PART:
                return
        self.fail(f"{at}.parent", f"nested less than {MAX_NESTING} times")

    def ports(self) -> None:
        program = self.program
        taken = [port.buffer for port in program.inputs]
        places = [number for number, b in enumerate(program.buffers) if b.place is Place.INPUT]
        self.require(sorted(taken) == places, "inputs", "one for each buffer of an input")
        for kind, ports in (("inputs", program.inputs), ("outputs", program.outputs)):
            names = {port.name for port in ports}
            self.require(len(names) == len(ports), kind, "called by different names")
            for number, port in enumerate(ports):
                self.port(port, kind, f"{kind}[{number}]")

    def port(self, port: Port, kind: str, at: str) -> None:
        self.buffer(port.buffer, f"{at}.buffer")
        self.array(port.dtype, port.dims, at)
        self.require(len(port.shown) == len(port.dims), f"{at}.shown", "a word for each dimension")
        if kind == "inputs":
            segments = [self.program.sizes[-1 - d].segment for d in port.dims if d < 0]
            self.require(not any(segments), f"{at}.dims", "known when the program starts")

    def step(self, step: Step, at: str) -> None:
        match step:
            case Call():
                self.number(step.kernel, 0, len(self.program.kernels) - 1, f"{at}.kernel")
                for buffer in step.buffers:
                    self.buffer(buffer, f"{at}.buffers")
                for size in step.sizes:
                    self.size(size, f"{at}.sizes")
                for work, name in ((step.flops, "flops"), (step.moved_bytes, "moved_bytes")):
                    if work:
                        self.expression(work, self.program.segments, None, f"{at}.{name}")
            case Jump():
                self.number(step.to, 0, len(self.program.steps), f"{at}.to")
                self.number(step.unless, -1, len(self.program.buffers) - 1, f"{at}.unless")
                if step.condition:
                    self.require(step.unless < 0, f"{at}.unless", "-1 beside another condition")
                    self.expression(step.condition, self.program.segments, None, f"{at}.condition")
            case Assign():
                self.fact(step.size, f"{at}.size")
                self.expression(step.value, self.program.segments, None, f"{at}.value")
            case Enter():
                self.number(step.segment, 1, self.program.segments - 1, f"{at}.segment")
                for size, buffer, element in step.read:
                    self.fact(size, f"{at}.read")
                    is_own = self.program.sizes[size].segment == step.segment
                    self.require(is_own, f"{at}.read", "a size of the segment that is entered")
                    self.buffer(buffer, f"{at}.read")
                    self.number(element, 0, GREATEST // 8 - 1, f"{at}.read")
            case Host():
                self.host(step, at)

    def host(self, step: Host, at: str) -> None:
        self.number(step.function, 0, GREATEST, f"{at}.function")
        for operand in step.inputs:
            self.operand(operand, f"{at}.inputs")
        for operand in step.outputs:
            self.operand(operand, f"{at}.outputs")
            is_host = self.program.buffers[operand.buffer].place is Place.HOST
            self.require(is_host, f"{at}.outputs", "buffers of the host")
        for size, result, axis in step.defines:
            self.fact(size, f"{at}.defines")
            self.number(result, 0, len(step.outputs) - 1, f"{at}.defines")
            self.number(axis, 0, len(step.outputs[result].dims) - 1, f"{at}.defines")

    def operand(self, operand: Operand, at: str) -> None:
        self.buffer(operand.buffer, at)
        self.array(operand.dtype, operand.dims, at)

    def array(self, dtype: DType, dims: tuple[int, ...], at: str) -> None:
        self.require(DTYPES.get(dtype.name) == dtype, f"{at}.dtype", "an element type")
        self.require(len(dims) <= MAX_RANK, f"{at}.dims", f"{MAX_RANK} dimensions at most")
        for dim in dims:
            self.number(dim, -len(self.program.sizes), GREATEST, f"{at}.dims")

    def told(self) -> None:
        """Every size that is not computed is told by an input, or by a step."""
        known = {-1 - dim for port in self.program.inputs for dim in port.dims if dim < 0}
        known |= set(_told_by_steps(self.program.steps))
        for number, size in enumerate(self.program.sizes):
            if size.value is None:
                self.require(number in known, f"sizes[{number}]", "told by something")

    def expression(self, value: SizeExpr, segment: int, below: int | None, at: str) -> None:
        """Well formed, of sizes with numbers below `below` and of segments up to `segment`."""
        count = len(self.program.sizes) if below is None else below
        if (value, segment, count) in self.checked:
            return
        depth = 0
        for op, operand in value:
            self.number(operand, LEAST, GREATEST, at)
            if op is SizeOp.SIZE:
                self.number(operand, 0, count - 1, at)
                is_known = self.program.sizes[operand].segment <= segment
                self.require(is_known, at, "made of sizes that are known by then")
            popped = taken_by(op)
            self.require(popped <= depth, at, "an expression in postfix order")
            depth += 1 - popped
            self.require(depth <= MAX_DEPTH, at, f"an expression of depth {MAX_DEPTH} at most")
        self.require(depth == 1, at, "an expression with one value")
        self.checked.add((value, segment, count))

    def fact(self, number: int, at: str) -> None:
        self.size(number, at)
        size = self.program.sizes[number]
        self.require(size.value is None and size.segment > 0, at, "a size that steps tell")

    def size(self, number: int, at: str) -> None:
        self.number(number, 0, len(self.program.sizes) - 1, at)

    def buffer(self, number: int, at: str) -> None:
        self.number(number, 0, len(self.program.buffers) - 1, at)

    def segment(self, number: int, at: str) -> None:
        self.number(number, 0, self.program.segments - 1, at)

    def number(self, value: int, least: int, greatest: int, at: str) -> int:
        if not least <= value <= greatest:
            self.fail(at, f"between {least} and {greatest}")
        return value

    def require(self, condition: object, at: str, what: str) -> None:
        if not condition:
            self.fail(at, what)

    def fail(self, at: str, what: str) -> NoReturn:
        facts = {"model": self.program.name, "problem": f"{at} must be {what}"}
        raise ArtefactError(A201, facts, hint=HINT)


def _told_by_steps(steps: Sequence[Step]) -> Iterator[int]:
    for step in steps:
        match step:
            case Enter():
                yield from (size for size, _, _ in step.read)
            case Assign():
                yield step.size
            case Host():
                yield from (size for size, _, _ in step.defines)
