"""Tensor IR: statements and functions (expressions are in `expr.py`, and re-exported here).

A `Func` is a list of parameter buffers and a body of loops with `Block`s as leaves. A block is an
isolated tensor computation: its body sees only its own iteration variables, and everything outside
sees only its signature (iterators, bindings, regions). Loops always run from zero. `interpret.py`
defines what a program means, `verify.py` what is well formed, `printer.py` how it looks.

Import it as a module: `from tilewright.tensor import ir as tir`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from tilewright.dtypes import boolean
from tilewright.tensor.arithmetic import *  # noqa: F403
from tilewright.tensor.cover import Cover as Cover  # noqa: PLC0414  (re-exported)
from tilewright.tensor.cover import TileSize as TileSize  # noqa: PLC0414
from tilewright.tensor.cover import TileStart as TileStart  # noqa: PLC0414
from tilewright.tensor.expr import *  # noqa: F403  (one namespace for the whole IR)
from tilewright.tensor.expr import Buffer, Const, Expr, Var
from tilewright.tensor.node import Node, node


class Stmt(Node):
    """Something that is executed."""

    __slots__ = ()


@node
class Range(Node):
    """`[start, start + extent)`."""

    start: Expr
    extent: Expr


@node
class Region(Node):
    """A box of a buffer."""

    buffer: Buffer
    ranges: tuple[Range, ...]


TRUE = Const(value=True, dtype=boolean)


class LoopKind(enum.Enum):
    """How the iterations of a loop may run."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTOR = "vectorized"
    UNROLLED = "unrolled"


class IterKind(enum.Enum):
    """Spatial iterations are independent; reduce iterations accumulate into the same element."""

    SPATIAL = "S"
    REDUCE = "R"


@node
class For(Stmt):
    """`for var in range(extent)`, always from zero; `kind` says how iterations may run."""

    var: Var
    extent: Expr
    body: Stmt
    kind: LoopKind = LoopKind.SERIAL
    notes: tuple[tuple[str, object], ...] = ()


@node
class Iter(Node):
    """An iteration variable of a block with domain `[0, extent)`."""

    var: Var
    extent: Expr
    kind: IterKind = IterKind.SPATIAL


@node
class Block(Stmt):
    """One isolated tensor computation.

    `bindings` gives the value of each iterator from the loops around. `init` runs where all reduce
    iterators are at zero, before `body`. The block runs only where `predicate` holds.
    """

    name: str
    iters: tuple[Iter, ...]
    bindings: tuple[Expr, ...]
    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    body: Stmt
    init: Stmt | None = None
    predicate: Expr = TRUE
    notes: tuple[tuple[str, object], ...] = ()


@node
class Store(Stmt):
    """`buffer[indices] = value`."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@node
class Seq(Stmt):
    """Statements one after another; never nested, never of length one (see `build.seq`)."""

    body: tuple[Stmt, ...]


@node
class If(Stmt):
    """`then` where `cond` holds, else `otherwise`."""

    cond: Expr
    then: Stmt
    otherwise: Stmt | None = None


@node
class Alloc(Stmt):
    """`buffer` exists inside `body`; its content is undefined at first."""

    buffer: Buffer
    body: Stmt


@node
class Barrier(Stmt):
    """All threads of the call meet here (after lowering only)."""


@node
class Prefetch(Stmt):
    """A wish to have the cache line of an element near soon (after lowering only).

    It has no meaning, so the element may lie behind the end of the buffer.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]


@node
class Func(Node):
    """A tensor program: parameters in call order, and a body.

    A variable that is a whole dimension of some parameter is a symbolic size: it takes its value
    from the arrays of each call.
    """

    name: str
    params: tuple[Buffer, ...]
    body: Stmt

    def marked_text(self, marks: Mapping[str, object]) -> str:
        """The program's text with `# <- label` behind each marked statement."""
        from tilewright.tensor.printer import print_func  # the printer imports this module

        return print_func(self, marks)

    def __str__(self) -> str:
        return self.marked_text({})
