"""Loop nests as primitives see them: what is around a statement, what is inside, how to edit it.

A primitive touches one nest only, so these functions follow the path to it and share the rest of
the program. Blocks are leaves here: nothing looks into a block except through its signature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from tilewright.tensor import ir as tir
from tilewright.tensor.build import seq
from tilewright.tensor.node import Node
from tilewright.tensor.regions import block_regions
from tilewright.tensor.visit import (
    enclosing,
    free_vars,
    map_children,
    replace_node,
    substitute,
    walk_stmts,
)

__all__ = [
    "Chain",
    "allocate",
    "blocks_under",
    "chain_from",
    "copy_loops",
    "expand",
    "is_bounded",
    "loops_around",
    "loops_under",
    "replace_block",
    "replace_buffer",
    "splice",
    "vars_by_kind",
    "wrap",
]

T = TypeVar("T", bound=Node)


def blocks_under(stmt: tir.Stmt) -> Iterator[tir.Block]:
    """The blocks inside a statement in program order, without those inside other blocks."""
    stack: list[tir.Stmt | None] = [stmt]
    while stack:
        part = stack.pop()
        match part:
            case tir.Block():
                yield part
            case tir.For() | tir.Alloc():
                stack.append(part.body)
            case tir.Seq():
                stack.extend(reversed(part.body))
            case tir.If():
                stack += [part.otherwise, part.then]


def loops_under(stmt: tir.Stmt) -> Iterator[tir.For]:
    """The loops inside a statement (and itself), without those inside blocks."""
    stack: list[tir.Stmt | None] = [stmt]
    while stack:
        part = stack.pop()
        match part:
            case tir.For():
                yield part
                stack.append(part.body)
            case tir.Alloc():
                stack.append(part.body)
            case tir.Seq():
                stack.extend(reversed(part.body))
            case tir.If():
                stack += [part.otherwise, part.then]


def loops_around(func: tir.Func, stmt: tir.Stmt) -> tuple[tir.For, ...]:
    """The loops around a statement, outermost first, up to the block that it lies in."""
    found: list[tir.For] = []
    for part in reversed(enclosing(func, stmt)):
        if type(part) is tir.Block:
            break
        if type(part) is tir.For:
            found.append(part)
    return tuple(reversed(found))


class Chain:
    """Loops directly inside each other, and the statement in the innermost one."""

    __slots__ = ("body", "loops")

    def __init__(self, loops: tuple[tir.For, ...], body: tir.Stmt) -> None:
        self.loops, self.body = loops, body


def chain_from(loop: tir.Stmt) -> Chain:
    """Follow `loop` inwards as long as the body is a single loop."""
    loops: list[tir.For] = []
    while type(loop) is tir.For:
        loops.append(loop)
        loop = loop.body
    return Chain(tuple(loops), loop)


def wrap(loops: Sequence[tir.For], body: tir.Stmt) -> tir.Stmt:
    """`body` inside copies of these loops, outermost first; what is unchanged is shared."""
    for loop in reversed(loops):
        body = loop if loop.body is body else loop.with_fields(body=body)
    return body


def copy_loops(
    loops: Sequence[tir.For], names: Sequence[str]
) -> tuple[list[tir.For], dict[tir.Var, tir.Expr]]:
    """New loops of the same extent and kind with new variables, and the map from old to new.

    Extents that depend on a copied loop follow its copy.
    """
    renamed: dict[tir.Var, tir.Expr] = {}
    copies: list[tir.For] = []
    for loop, name in zip(loops, names, strict=True):
        var = tir.Var(name, loop.var.dtype)
        extent = substitute(loop.extent, renamed)
        copies.append(tir.For(var, extent, loop.body, loop.kind, loop.notes))
        renamed[loop.var] = var
    return copies, renamed


def vars_by_kind(block: tir.Block) -> tuple[set[tir.Var], set[tir.Var]]:
    """The variables that drive the spatial and the reduce iterators of a block."""
    spatial: set[tir.Var] = set()
    reduce: set[tir.Var] = set()
    for it, binding in zip(block.iters, block.bindings, strict=True):
        (reduce if it.kind is tir.IterKind.REDUCE else spatial).update(free_vars(binding))
    return spatial, reduce


def is_bounded(extent: tir.Expr) -> bool:
    """Is the extent a constant, or one of the constant sizes of a cover?"""
    if type(extent) is tir.Const or type(extent) is tir.TileSize:
        return True
    return isinstance(extent, tir.Binary) and is_bounded(extent.a) and is_bounded(extent.b)


def splice(root: T, old: tir.Stmt, *new: tir.Stmt) -> T:
    """Put `new` in the place of one statement, keeping sequences flat."""
    around = enclosing(root, old)
    parent = around[-1] if around else None
    if type(parent) is not tir.Seq:
        return replace_node(root, old, seq(*new))
    parts = [p for part in parent.body for p in (new if part is old else (part,))]
    return replace_node(root, parent, seq(*parts))


def expand(
    func: tir.Func, old: tir.Stmt, new: Sequence[tir.Stmt], buffers: Sequence[tir.Buffer]
) -> tir.Func:
    """Put statements that share new buffers in the place of one statement.

    The buffers belong to the program, or to the block around: its signature must not change.
    """
    owner = next((s for s in reversed(enclosing(func, old)) if type(s) is tir.Block), None)
    if owner is None:
        return allocate(splice(func, old, *new), *buffers)
    inside = [part for part in (owner.body, owner.init) if part is not None]
    part = next(p for p in inside if any(s is old for s in walk_stmts(p)))
    changed = splice(part, old, *new)
    for buffer in reversed(buffers):
        changed = tir.Alloc(buffer, changed)
    return replace_node(func, part, changed)


def replace_block(func: tir.Func, old: tir.Block, new: tir.Block) -> tir.Func:
    """Replace a block by one that touches other regions; blocks around it follow."""
    around = [s for s in enclosing(func, old) if type(s) is tir.Block]
    for outer in reversed(around):
        body = replace_node(outer.body, old, new)
        init = None if outer.init is None else replace_node(outer.init, old, new)
        reads, writes = block_regions(outer.iters, body, init)
        new = outer.with_fields(body=body, init=init, reads=reads, writes=writes)
        old = outer
    return replace_node(func, old, new)


def allocate(func: tir.Func, *buffers: tir.Buffer) -> tir.Func:
    """Add intermediate buffers after those that the program already has."""
    stack: list[tir.Buffer] = []
    body = func.body
    while type(body) is tir.Alloc:
        stack.append(body.buffer)
        body = body.body
    for buffer in reversed((*stack, *buffers)):
        body = tir.Alloc(buffer, body)
    return tir.Func(func.name, func.params, body)


def replace_buffer(root: tir.Func, swap: Mapping[tir.Buffer, tir.Buffer]) -> tir.Func:
    """Every use of some buffers goes to others of the same shape."""

    def visit(part: Node) -> Node:
        if type(part) is tir.Const or type(part) is tir.Var or type(part) is tir.Buffer:
            return part
        part = map_children(part, visit)
        if isinstance(part, tir.Load | tir.Store | tir.Region | tir.Alloc) and part.buffer in swap:
            return part.with_fields(buffer=swap[part.buffer])
        return part

    params = tuple(swap.get(p, p) for p in root.params)
    return tir.Func(root.name, params, visit(root.body))  # type: ignore[arg-type]
