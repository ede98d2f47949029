"""What went wrong in a run of a program, said with the names of its sizes, buffers and steps."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from tilewright.errors import ArtefactError, CallError, Code, UserError
from tilewright.runtime.checks import C005
from tilewright.runtime.kernel import C013, C014, C015, Status
from tilewright.runtime.program import Call, Place, Program
from tilewright.shown import quoted, shown

__all__ = ["ALIKE", "FALSE_HERE", "OR_ONE", "TRUE_HERE", "Outcome", "failure", "guarded"]

C025 = Code("C025", "`{model}` cannot run with these sizes: {problem}")
C026 = Code("C026", "`{model}` cannot get its memory")
A204 = Code("A204", "the program `{model}` contradicts itself: {problem}")

ALIKE = " in every iteration"
"""How the name of a size ends that exists if all iterations of a loop agree about it."""
OR_ONE = ", or 1"
"""How the name of a size ends that exists if two are equal, which would be broadcast otherwise."""
TRUE_HERE = ", taken to hold"
FALSE_HERE = ", taken not to hold"
"""How the names of guards end, sizes that exist if a condition is what a version takes it for."""
MAX = (1 << 63) - 1
TOO_MANY = "more bytes than there are addresses"
WRONGLY = "compile the model again; if that does not help, it is a bug of tilewright"


class Outcome(enum.IntEnum):
    """How a run ended: `tw_outcome` in native/frame.h, which explains `which` and `value`."""

    DONE = 0
    AT_HOST = 1
    BAD_SIZE = 2
    BAD_READ = 3
    BAD_BYTES = 4
    BAD_BOUNDS = 5
    OUT_OF_MEMORY = 6
    NO_BUFFER = 7
    FAILED_CALL = 8
    BAD_OUTPUT = 9
    FAILED_RUN = 10
    BAD_STEP = 11


def guarded(name: str) -> str | None:
    """The key of the guard that a size of this name is; None for other sizes."""
    for end in (TRUE_HERE, FALSE_HERE):
        if name.endswith(end):
            return name.removesuffix(end)
    return None


def failure(
    program: Program, threads: int, outcome: int, which: int, value: int, sizes: Sequence[int] = ()
) -> UserError:
    """The error for an outcome; `sizes` are those of the run, as far as they were computed."""
    match Outcome(outcome):
        case Outcome.BAD_SIZE | Outcome.BAD_READ | Outcome.BAD_BYTES as bad:
            problem = _bad_dimension(program, which, sizes) if bad is Outcome.BAD_BYTES else ""
            problem = problem or _bad_number(program, bad, which, value)
            facts = {"model": program.name, "problem": problem}
            hint = "they follow from the shapes and values of the inputs: pass others"
            return CallError(C025, facts, hint=hint)
        case Outcome.BAD_STEP:
            problem = f"step {which} computes a number that is too large"
            facts = {"model": program.name, "problem": problem}
            return CallError(C025, facts, hint="pass smaller arrays")
        case Outcome.BAD_BOUNDS | Outcome.NO_BUFFER as bad:
            facts = {"model": program.name, "problem": _bad_buffer(program, bad, which, value)}
            return ArtefactError(A204, facts, hint=WRONGLY)
        case Outcome.OUT_OF_MEMORY:
            facts = {"model": program.name, "needed": _bytes(value), "for": "scratch of kernels"}
            if which >= 0:
                facts["for"] = f"{quoted(program.buffers[which].name)} and smaller arrays"
            return CallError(C026, facts, hint="free memory, or pass smaller arrays")
        case Outcome.BAD_OUTPUT:
            name = program.outputs[which].name
            wrong = {"kernel": program.name, "param": name, "axis": value}
            hint = "its shape depends on the data: let `run` make the array"
            return CallError(C005, wrong, hint=hint)
        case Outcome.FAILED_CALL:
            stopped = {"kernel": program.name, "step": _step(program, which), "code": value}
            hint = "look into code that was written or edited by hand: only such returns errors"
            return CallError(C013, stopped, hint=hint)
    return _not_run(program, threads, value)


def _not_run(program: Program, threads: int, status: int) -> CallError:
    match status:
        case Status.NO_MEMORY:
            return CallError(C026, {"model": program.name}, hint="free memory")
        case Status.NO_THREADS:
            facts = {"kernel": program.name, "needed": f"{threads} threads"}
            return CallError(
                C014, facts, hint="raise the limit (`ulimit -u`), or use fewer threads"
            )
        case Status.NESTED:
            hint = "let the outer kernel return first"
            return CallError(C015, {"kernel": program.name}, hint=hint)
    raise SystemError(f"unknown status {status} of {quoted(program.name)}")


def _bad_dimension(program: Program, buffer: int, sizes: Sequence[int]) -> str:
    """What is below zero in the shape of an output; empty if the buffer is none, or all is well."""
    for port in program.outputs:
        for axis, dim in enumerate(port.dims if port.buffer == buffer and sizes else ()):
            if dim < 0 and sizes[-1 - dim] < 0:
                what = f"dimension {axis} of {quoted(port.name)}, {quoted(port.shown[axis])}"
                return f"{what}, would be {sizes[-1 - dim]}"
    return ""


def _bad_number(program: Program, outcome: Outcome, which: int, value: int) -> str:
    if outcome is Outcome.BAD_BYTES:
        return f"{quoted(program.buffers[which].name)} would have {_bytes(value)}"
    name = program.sizes[which].name
    key = guarded(name)
    if outcome is Outcome.BAD_SIZE and key is not None:
        found, made = ("false", "true") if name.endswith(TRUE_HERE) else ("true", "false")
        ours = f"this version of the model is for runs in which it is {made}"
        return f"{quoted(key)} is {found}, which decides ranks or axes, and {ours}"
    first, is_equation, second = name.partition(" = ")
    if outcome is Outcome.BAD_SIZE and is_equation:
        both = f"{quoted(first)} and {quoted(second.removesuffix(OR_ONE))}"
        return f"{both} must be equal{', or one of them 1' if second.endswith(OR_ONE) else ''}"
    smaller, is_limit, larger = name.partition(" ≤ ")
    if outcome is Outcome.BAD_SIZE and is_limit:
        return f"{quoted(smaller)} must not exceed {quoted(larger)}"
    if outcome is Outcome.BAD_SIZE and name.endswith(" ≥ 0"):
        return f"{quoted(name.removesuffix(' ≥ 0'))} must not be negative"
    if outcome is Outcome.BAD_SIZE and name.endswith(ALIKE):
        own = quoted(name.removesuffix(ALIKE))
        return f"{own}, a size of what a loop stacks, must be the same{ALIKE}"
    if outcome is Outcome.BAD_SIZE:
        return f"{quoted(name)} is too large, or a division by zero"
    return f"{quoted(name)} comes out as {value}"


def _bad_buffer(program: Program, outcome: Outcome, which: int, value: int) -> str:
    if outcome is Outcome.NO_BUFFER:
        reader = f"step {which} ({_step(program, which)})" if which >= 0 else "an output"
        return f"{reader} needs {quoted(program.buffers[value].name)}, which has no memory"
    name = program.buffers[which].name
    if program.buffers[which].place is Place.HOST:
        return f"{quoted(name)}, which a Python function makes, must have {_bytes(value)}"
    return f"{quoted(name)} does not have room for {_bytes(value)}"


def _bytes(value: int) -> str:
    return TOO_MANY if value == MAX else f"{value} bytes"


def _step(program: Program, number: int) -> str:
    step = program.steps[number]
    if isinstance(step, Call):
        return shown(step.label or program.kernels[step.kernel].name)
    return type(step).__name__.lower()
