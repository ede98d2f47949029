"""Walking and rewriting programs. Rewriters return the same object where nothing changed.

The shape of each node class (which fields hold children) is read once from its annotations, so a
new node class needs no code here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TypeVar

from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node

__all__ = [
    "children",
    "enclosing",
    "find_block",
    "free_vars",
    "map_children",
    "replace_node",
    "rewrite",
    "substitute",
    "walk",
    "walk_stmts",
]

T = TypeVar("T", bound=Node)

# Leaves of a walk: nodes with identity or without expressions inside.
_LEAVES = (tir.Const, tir.Var, tir.Buffer)
_NO_DEFAULTS: dict[str, object] = {}


@cache
def _child_fields(kind: type[Node]) -> tuple[tuple[str, bool], ...]:
    """(field, is it a tuple of nodes) for each field that holds children."""
    if issubclass(kind, _LEAVES):
        return ()
    found: list[tuple[str, bool]] = []
    annotations: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        annotations |= base.__dict__.get("__annotations__", {})
    for name in kind.fields:
        text = str(annotations.get(name, ""))
        if any(word in text for word in ("Expr", "Stmt", "Range", "Region", "Iter,", "Cover", "Var")):
            found.append((name, text.startswith("tuple")))
    return tuple(found)


def children(node: Node) -> Iterator[Node]:
    """The nodes directly inside `node`."""
    if type(node) is tir.Cover:
        yield from (count for _, count in node.segments)
        return
    for name, many in _child_fields(type(node)):
        value = getattr(node, name)
        if many:
            yield from value
        elif value is not None:
            yield value


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything inside it, outermost first, in program order."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        if not isinstance(top, _LEAVES):
            stack.extend(reversed(tuple(children(top))))


def map_children(node: T, change: Callable[[Node], Node]) -> T:
    """`node` with `change` applied to each direct child; the same object if none changed."""
    if type(node) is tir.Cover:
        counts = tuple((size, change(count)) for size, count in node.segments)
        same = all(a is b for (_, a), (_, b) in zip(counts, node.segments, strict=True))
        return node if same else tir.Cover(counts)  # type: ignore[return-value, arg-type]
    changes: dict[str, object] = {}
    for name, many in _child_fields(type(node)):
        old = getattr(node, name)
        if many:
            new = tuple([change(child) for child in old])
            if any(a is not b for a, b in zip(new, old, strict=True)):
                changes[name] = new
        elif old is not None:
            new_child = change(old)
            if new_child is not old:
                changes[name] = new_child
    if not changes:
        return node
    if getattr(node, "defaults", _NO_DEFAULTS).get("dtype", ...) is None:
        changes["dtype"] = None  # follows from the new children
    return node.with_fields(**changes)


def rewrite(node: T, change: Callable[[Node], Node | None]) -> T:
    """Bottom-up: children first, then `change`; it returns None to keep a node."""

    def visit(part: Node) -> Node:
        if not isinstance(part, _LEAVES):
            part = map_children(part, visit)
        new = change(part)
        return part if new is None else new

    return visit(node)  # type: ignore[return-value]


def substitute(node: T, values: Mapping[tir.Var, tir.Expr]) -> T:
    """Replace variables by expressions. Block bodies see no outer variable and are not entered,
    unless a block's own iterators are among `values`.

    A loaded or stored dtype follows from its parts, so a vector may stand in for a scalar index.
    """
    if not values:
        return node

    def visit(part: Node) -> Node:
        if type(part) is tir.Var:
            return values.get(part, part)
        if type(part) is tir.Const or type(part) is tir.Buffer:
            return part
        if type(part) is tir.Block and not any(i.var in values for i in part.iters):
            return part.with_fields(
                bindings=_same_or(part.bindings, tuple([visit(b) for b in part.bindings])),
                predicate=visit(part.predicate),
            )
        return map_children(part, visit)

    return visit(node)  # type: ignore[return-value]


def _same_or(old: tuple[Node, ...], new: tuple[Node, ...]) -> tuple[Node, ...]:
    return old if all(a is b for a, b in zip(old, new, strict=True)) else new


def replace_node(root: T, old: Node, new: Node) -> T:
    """Replace one node, found by identity, along its path; everything else is shared."""

    def visit(part: Node) -> Node:
        if part is old:
            return new
        if isinstance(part, tir.Expr):
            return part
        return map_children(part, visit)

    return visit(root)  # type: ignore[return-value]


def free_vars(node: Node) -> set[tir.Var]:
    """All variables mentioned in an expression (or used without being bound in a statement)."""
    bound: set[tir.Var] = set()
    used: set[tir.Var] = set()
    for part in walk(node):
        match part:
            case tir.Var():
                used.add(part)
            case tir.For(var=var) | tir.Let(var=var) | tir.Iter(var=var):
                bound.add(var)
    return used - bound


def find_block(root: Node, name: str) -> tir.Block | None:
    """The block with this name, or None."""
    for part in walk_stmts(root):
        if type(part) is tir.Block and part.name == name:
            return part
    return None


def walk_stmts(node: Node) -> Iterator[tir.Stmt]:
    """Statements only, outermost first, in program order."""
    if isinstance(node, tir.Func):
        yield from walk_stmts(node.body)
    elif isinstance(node, tir.Stmt):
        yield node
        for child in children(node):
            if isinstance(child, tir.Stmt):
                yield from walk_stmts(child)


def enclosing(root: Node, target: Node) -> tuple[tir.Stmt, ...]:
    """The statements around `target`, outermost first, without itself; () if it is not inside."""

    def search(part: Node, path: tuple[tir.Stmt, ...]) -> tuple[tir.Stmt, ...] | None:
        if part is target:
            return path
        if isinstance(part, tir.Expr):
            return None
        inside = (*path, part) if isinstance(part, tir.Stmt) else path
        for child in children(part):
            if isinstance(child, tir.Stmt):
                found = search(child, inside)
                if found is not None:
                    return found
        return None

    return search(root, ()) or ()
