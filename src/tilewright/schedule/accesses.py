"""Changing the loads and stores of blocks; the read and write regions follow the bodies.

The index arithmetic that a change brings in is simplified with the ranges of the variables in
scope: the iterators of the block and the loops inside its body. Blocks that do not touch the buffer
stay the same objects.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.dtypes import index
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.node import Node
from tilewright.tensor.regions import block_regions
from tilewright.tensor.visit import children, map_children

__all__ = [
    "Change",
    "Ranges",
    "Redirect",
    "change_block",
    "change_stmt",
    "loads_of",
    "redirected",
    "tidied",
]


class Ranges:
    """The variables in scope with their extents; analyzers are made when first asked for."""

    __slots__ = ("_analyzer", "_extents", "_keeper", "_loop", "_outer")

    def __init__(
        self,
        extents: dict[tir.Var, tir.Expr] | None,
        outer: Ranges | None = None,
        loop: tir.For | None = None,
    ) -> None:
        self._extents, self._outer, self._loop = extents, outer, loop
        self._analyzer: Analyzer | None = None
        self._keeper: Analyzer | None = None

    @classmethod
    def of_block(cls, block: tir.Block) -> Ranges:
        return cls({it.var: it.extent for it in block.iters})

    @property
    def extents(self) -> dict[tir.Var, tir.Expr]:
        """The extent of each variable, outermost first."""
        if self._extents is None:
            assert self._outer is not None
            assert self._loop is not None
            self._extents = {**self._outer.extents, self._loop.var: self._loop.extent}
        return self._extents

    @property
    def analyzer(self) -> Analyzer:
        if self._analyzer is None:
            self._analyzer = Analyzer(self.extents)
        return self._analyzer

    def simplify(self, expr: tir.Expr) -> tir.Expr:
        """An equal index in canonical form.

        An iterator of extent one stays where it stands alone, although it is always zero: a block
        that writes by it is recognised by that.
        """
        if type(expr) is tir.Var or type(expr) is tir.Const:
            return expr
        result = self.analyzer.simplify(expr)
        if type(result) is tir.Const and self._has_units:
            if self._keeper is None:
                self._keeper = Analyzer({v: _two_or_more(e) for v, e in self.extents.items()})
            alone = self._keeper.simplify(expr)
            return alone if type(alone) is tir.Var else result
        return result

    @property
    def _has_units(self) -> bool:
        return any(tir.int_value(extent) == 1 for extent in self.extents.values())

    def simplify_all(self, parts: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
        return tuple([self.simplify(p) for p in parts])

    def with_loop(self, loop: tir.For) -> Ranges:
        return Ranges(None, self, loop)


def _two_or_more(extent: tir.Expr) -> tir.Expr:
    """A range that is too large by one allows the same conclusions, and fewer."""
    return tir.Const(2) if tir.int_value(extent) == 1 else extent


class Change:
    """What happens to each expression and store of a block; override what is needed.

    `expr` sees every expression after its parts were changed and returns None to keep it.
    """

    def touches(self, block: tir.Block) -> bool:
        """Does the block have anything to change, judging by its signature?"""
        raise NotImplementedError

    def expr(self, expr: tir.Expr, ranges: Ranges) -> tir.Expr | None:
        del expr, ranges
        return None

    def store(self, store: tir.Store, ranges: Ranges) -> tir.Store:
        del ranges
        return store

    def buffer(self, buffer: tir.Buffer) -> tir.Buffer:
        """What is allocated in place of a buffer."""
        return buffer


def change_block(block: tir.Block, change: Change) -> tir.Block:
    """The block with `change` applied to its body and init; regions are derived anew."""
    if not change.touches(block):
        return block
    ranges = Ranges.of_block(block)
    body = change_stmt(block.body, change, ranges)
    init = None if block.init is None else change_stmt(block.init, change, ranges)
    if body is block.body and init is block.init:
        return block
    reads, writes = block_regions(block.iters, body, init)
    return block.with_fields(reads=reads, writes=writes, body=body, init=init)


def change_stmt(stmt: tir.Stmt, change: Change, ranges: Ranges) -> tir.Stmt:
    """A statement with `change` applied to everything inside."""

    def expression(part: tir.Expr) -> tir.Expr:
        if type(part) is tir.Var or type(part) is tir.Const:
            return part
        part = map_children(part, expression)  # type: ignore[arg-type]
        new = change.expr(part, ranges)
        return part if new is None else new

    match stmt:
        case tir.Block():
            return change_block(stmt, change)
        case tir.Store():
            indices = tuple([expression(i) for i in stmt.indices])
            same = all(a is b for a, b in zip(indices, stmt.indices, strict=True))
            value = expression(stmt.value)
            moved = stmt.with_fields(indices=stmt.indices if same else indices, value=value)
            return change.store(moved, ranges)
        case tir.For():
            body = change_stmt(stmt.body, change, ranges.with_loop(stmt))
            return stmt if body is stmt.body else stmt.with_fields(body=body)
        case tir.Alloc():
            body = change_stmt(stmt.body, change, ranges)
            return stmt.with_fields(buffer=change.buffer(stmt.buffer), body=body)
        case tir.Seq():
            parts = tuple([change_stmt(part, change, ranges) for part in stmt.body])
            same = all(a is b for a, b in zip(parts, stmt.body, strict=True))
            return stmt if same else tir.Seq(parts)

    def part(node: Node) -> Node:
        if isinstance(node, tir.Stmt):
            return change_stmt(node, change, ranges)
        return expression(node) if isinstance(node, tir.Expr) else node

    return map_children(stmt, part)


class Redirect(Change):
    """All accesses of one buffer go to another, at moved indices."""

    def __init__(
        self,
        old: tir.Buffer,
        new: tir.Buffer,
        move: Callable[[tuple[tir.Expr, ...], Ranges], tuple[tir.Expr, ...]] | None,
    ) -> None:
        self.old, self.new, self.move = old, new, move

    def touches(self, block: tir.Block) -> bool:
        return any(r.buffer is self.old for r in (*block.writes, *block.reads))

    def _indices(self, indices: tuple[tir.Expr, ...], ranges: Ranges) -> tuple[tir.Expr, ...]:
        return indices if self.move is None else self.move(indices, ranges)

    def expr(self, expr: tir.Expr, ranges: Ranges) -> tir.Expr | None:
        if type(expr) is tir.Load and expr.buffer is self.old:
            return tir.Load(self.new, self._indices(expr.indices, ranges))
        return None

    def store(self, store: tir.Store, ranges: Ranges) -> tir.Store:
        if store.buffer is self.old:
            return tir.Store(self.new, self._indices(store.indices, ranges), store.value)
        return store

    def buffer(self, buffer: tir.Buffer) -> tir.Buffer:
        return self.new if buffer is self.old else buffer


def redirected(
    old: tir.Buffer,
    new: tir.Buffer,
    move: Callable[[tuple[tir.Expr, ...], Ranges], tuple[tir.Expr, ...]] | None = None,
) -> Change:
    """The change that sends all accesses of `old` to `new`; `move` maps the indices."""
    return Redirect(old, new, move)


def loads_of(node: Node, buffer: tir.Buffer) -> list[tir.Load]:
    """Every load of a buffer inside a node, in order."""
    found: list[tir.Load] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if type(part) is tir.Load and part.buffer is buffer:
            found.append(part)
        if not isinstance(part, tir.Const | tir.Var | tir.Buffer):
            stack.extend(reversed(tuple(children(part))))
    return found


def tidied(expr: tir.Expr, ranges: Ranges) -> tir.Expr:
    """A value with the indices of its loads and its comparisons of indices simplified."""

    def visit(part: Node) -> Node:
        if isinstance(part, tir.Const | tir.Var | tir.Buffer):
            return part
        if type(part) is tir.Load:
            return part.with_fields(indices=_same_all(part.indices, ranges))
        if isinstance(part, tir.Compare) and part.a.dtype == index:
            return ranges.simplify(part)
        part = map_children(part, visit)
        if isinstance(part, tir.BitAnd | tir.BitOr) and part.dtype.is_bool:
            return ranges.simplify(part)
        if type(part) is tir.Select and type(part.cond) is tir.Const:
            return part.if_true if part.cond.value else part.if_false
        return part

    return visit(expr)  # type: ignore[return-value]


def _same_all(indices: tuple[tir.Expr, ...], ranges: Ranges) -> tuple[tir.Expr, ...]:
    new = ranges.simplify_all(indices)
    return indices if all(a is b for a, b in zip(indices, new, strict=True)) else new
