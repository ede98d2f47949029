"""The executable form of a model: kernels, memory and steps, as plain data.

The compiler writes a `Program`, the artefact stores it as JSON, `native/program.c` runs it. Every
thread walks all steps, so that nothing but native code runs between two kernels.

    sizes    one number each; bound by the dimensions of the inputs, or computed from earlier ones
    buffers  where arrays live: an input, an output, the weights, the arena, a part of another one
    kernels  functions of the image of machine code
    steps    call a kernel, jump, count, enter a segment, or hand over to Python

A *segment* is a stretch of steps whose sizes are known when it is entered. Segment 0 is entered
with the call. An operator whose result size depends on data (`NonZero`) ends one: it writes the
size to a buffer, and `Enter` reads it and places the buffers of the next segment.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tilewright.dtypes import DType

__all__ = ["Assign", "Buffer", "Call", "Enter", "Host", "Jump", "KernelCode", "Operand", "Place"]
__all__ += ["Port", "Program", "Size", "SizeExpr", "SizeOp", "Step"]


class SizeOp(enum.IntEnum):
    """Operations of size expressions; division and remainder round down."""

    CONST = 0  # push the operand
    SIZE = 1  # push the size of this number
    ADD = 2
    SUB = 3
    MUL = 4
    FLOORDIV = 5
    MOD = 6
    MIN = 7
    MAX = 8
    EQ = 9
    NE = 10
    LT = 11
    LE = 12
    AND = 13
    OR = 14
    NOT = 15
    SELECT = 16  # condition, if true, if false


SizeExpr = tuple[tuple[SizeOp, int], ...]
"""A size in postfix order: (operation, operand); the operand is 0 where there is none."""


@dataclass(frozen=True, slots=True)
class Size:
    """A number known before the steps of its segment run.

    `value` is its expression in sizes with smaller numbers; None: the size is bound by the inputs
    of a call, or read from memory by `Enter`.
    """

    name: str
    value: SizeExpr | None = None
    segment: int = 0


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of the model.

    A dimension is a number or the number of a size, as -1 - k. `shown` says dimensions in words.
    """

    name: str
    dtype: DType
    dims: tuple[int, ...]
    shown: tuple[int | str, ...]
    buffer: int


class Place(enum.Enum):
    """Where a buffer lives."""

    INPUT = "input"  # the caller's array
    OUTPUT = "output"  # an array that is returned
    WEIGHTS = "weights"  # read-only, mapped from the artefact
    ARENA = "arena"  # placed when its segment is entered
    HOST = "host"  # an array that a Python function made; kept until the call ends
    PART = "part"  # inside of another buffer, `offset` bytes from its start, or its memory before


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory; `first` and `last` are the steps between which a buffer of the arena lives.

    `offset` counts from the start of the weights, or of the buffer `parent`.
    """

    name: str
    place: Place
    bytes: SizeExpr
    segment: int = 0
    first: int = 0
    last: int = 0
    parent: int = -1
    offset: SizeExpr = ()


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A function of the image, by its offset; `scratch` is the offset of its `tw_scratch`, or -1.

    A kernel that is not parallel runs on one thread.
    """

    name: str
    entry: int
    parallel: bool
    shared_bytes: int = 0
    local_bytes: int = 0
    scratch: int = -1


@dataclass(frozen=True, slots=True)
class Call:
    """Run a kernel. `wait`: all threads meet first, because it needs what an earlier step wrote.

    `sizes` are the numbers of the sizes that the kernel takes, in its order. `label` names the
    operators that it stands for; `flops` and `moved_bytes` are their work (empty: unknown).
    """

    kernel: int
    buffers: tuple[int, ...]
    sizes: tuple[int, ...] = ()
    wait: bool = True
    label: str = ""
    flops: SizeExpr = ()
    moved_bytes: SizeExpr = ()


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on at step `to` unless a condition holds; always if there is none.

    The condition is the first byte of buffer `unless`, or the value of `condition`.
    """

    to: int
    unless: int = -1
    condition: SizeExpr = ()


@dataclass(frozen=True, slots=True)
class Assign:
    """Give a size a value, such as the number of an iteration."""

    size: int
    value: SizeExpr


@dataclass(frozen=True, slots=True)
class Enter:
    """Read sizes (number, i64 buffer, element) from memory, then place the segment's buffers."""

    segment: int
    read: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Operand:
    """An array that a Python function reads or makes: its buffer, and dimensions as in a port."""

    buffer: int
    dtype: DType
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """Hand over to Python: function number `function` takes arrays and returns arrays.

    Each result becomes the memory of its buffer, of place `HOST`, if it has the type and the
    dimensions that are said of it. `defines` names the sizes that only the results tell, as (size,
    result, axis); an `Enter` of their segment follows.
    """

    function: int
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    defines: tuple[tuple[int, int, int], ...] = ()
    label: str = ""


Step = Call | Jump | Assign | Enter | Host


@dataclass(frozen=True, slots=True)
class Program:
    """A whole model."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    sizes: tuple[Size, ...]
    buffers: tuple[Buffer, ...]
    kernels: tuple[KernelCode, ...]
    steps: tuple[Step, ...]
    segments: int = 1
