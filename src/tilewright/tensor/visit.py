"""Walking and rewriting programs. Rewriters return the same object where nothing changed.

Schedules spend most of their time here: statements are followed along their own fields, and
expressions know their free variables, so that a rewriting leaves alone what it cannot change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from tilewright.tensor import ir as tir
from tilewright.tensor.fields import LEAVES, children_of, rebuild, same_or
from tilewright.tensor.node import Node, set_free

__all__ = [
    "children",
    "enclosing",
    "find",
    "find_block",
    "free_vars",
    "holds",
    "map_children",
    "replace_node",
    "rewrite",
    "substitute",
    "walk",
    "walk_stmts",
]

T = TypeVar("T", bound=Node)

NOTHING: frozenset[tir.Var] = frozenset()


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly inside `node`."""
    return children_of[type(node)](node)


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything inside it, outermost first, in program order."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        inside = children_of[type(top)](top)
        if inside:
            stack += inside[::-1]


def holds(node: Node, *kinds: type[Node]) -> bool:
    """Whether `node` is of one of these classes or has one inside. It costs no walk."""
    wanted = kinds[0].bit
    for kind in kinds[1:]:
        wanted |= kind.bit
    return bool(node.inside & wanted)


def find(node: Node, kind: type[T]) -> Iterator[T]:
    """The nodes of a class among `node` and everything inside it, in the order of `walk`.

    Parts that hold none are not entered.
    """
    bit = kind.bit
    stack = [node] if node.inside & bit else []
    while stack:
        top = stack.pop()
        if top.kinds & bit:
            yield top  # type: ignore[misc]
        inside = [child for child in children_of[type(top)](top) if child.inside & bit]
        if inside:
            inside.reverse()
            stack += inside


def map_children(node: T, change: Callable[[Node], Node]) -> T:
    """`node` with `change` applied to each direct child; the same object if none changed."""
    return rebuild[type(node)](node, change)  # type: ignore[no-any-return]


def rewrite(node: T, change: Callable[[Node], Node | None]) -> T:
    """Bottom-up: children first, then `change`; it returns None to keep a node."""

    def visit(part: Node) -> Node:
        if not isinstance(part, LEAVES):
            part = rebuild[type(part)](part, visit)
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
    wanted = values.keys()

    def visit(part: Node) -> Node:
        if isinstance(part, tir.Expr):
            if isinstance(part, tir.Var):
                return values.get(part, part)
            if wanted.isdisjoint(free_vars(part)):
                return part
        elif type(part) is tir.Block and not any(i.var in values for i in part.iters):
            bindings = same_or(part.bindings, [visit(b) for b in part.bindings])
            predicate = visit(part.predicate)
            if bindings is part.bindings and predicate is part.predicate:
                return part
            return part.with_fields(bindings=bindings, predicate=predicate)
        return rebuild[type(part)](part, visit)  # type: ignore[no-any-return]

    return visit(node)  # type: ignore[return-value]


def free_vars(node: Node) -> frozenset[tir.Var]:
    """The variables that `node` uses and does not bind.

    Nodes remember theirs: the question is asked for every index in every schedule step.
    """
    found: frozenset[tir.Var] | None = getattr(node, "_free", None)
    if found is None:
        found = _free_vars(node)
        set_free(node, found)
    return found


def _free_vars(node: Node) -> frozenset[tir.Var]:
    if not node.inside & _VAR:
        return NOTHING
    if node.kinds & _VAR:
        return frozenset((node,))  # type: ignore[arg-type]
    found = _union(children_of[type(node)](node))
    return _without_bound(node, found) if node.kinds & _BINDERS else found


def _without_bound(node: Node, found: frozenset[tir.Var]) -> frozenset[tir.Var]:
    """What is left of the variables inside a node that binds some of them."""
    match node:
        case tir.For(var=var, extent=outside) | tir.Let(var=var, value=outside):
            return found if var in free_vars(outside) else found - {var}
        case tir.Iter():
            return free_vars(node.extent)
        case tir.Block():
            return found - {i.var for i in node.iters}
    return found


_VAR = tir.Var.bit
_BINDERS = tir.For.bit | tir.Let.bit | tir.Iter.bit | tir.Block.bit


def _union(nodes: tuple[Node, ...]) -> frozenset[tir.Var]:
    """All free variables of some nodes; one of their own sets if it holds the others."""
    found = NOTHING
    for node in nodes:
        if node.inside & _VAR:
            more = free_vars(node)
            if not more <= found:
                found = more if found <= more else found | more
    return found


def replace_node(root: T, old: Node, new: Node) -> T:
    """Replace one node, found by identity, along its path; everything else is shared."""
    if isinstance(old, tir.Stmt) and isinstance(root, tir.Func | tir.Stmt):
        return _replace_stmt(root, old, new)

    def visit(part: Node) -> Node:
        if part is old:
            return new
        return rebuild[type(part)](part, visit)  # type: ignore[no-any-return]

    return visit(root)  # type: ignore[return-value]


def _replace_stmt(root: T, old: tir.Stmt, new: Node) -> T:
    """The path to `old`, rebuilt from the inside out."""
    if root is old:
        return new  # type: ignore[return-value]
    path = _path(root, old)
    if path is None:
        return root
    before: Node = old
    after: Node = new
    for part in reversed(path):
        old_part, new_part = before, after

        def swap(child: Node, old: Node = old_part, new: Node = new_part) -> Node:
            return new if child is old else child

        after = rebuild[type(part)](part, swap)
        before = part
    return after  # type: ignore[return-value]


def _path(root: Node, target: Node) -> list[Node] | None:
    """The nodes from `root` to the one that holds `target`; None if it is not inside."""
    path: list[Node] = []
    waiting: list[tuple[int, Node]] = []  # statements beside the path, and how deep they are
    part = root
    while True:
        path.append(part)
        if type(part) is tir.For:  # what most of a path is made of
            part = part.body
            if part is target:
                return path
            continue
        inside = _inner_stmts(part)
        for child in inside:
            if child is target:
                return path
        if inside:
            part = inside[0]
            waiting += [(len(path), child) for child in reversed(inside[1:])]
        elif waiting:
            depth, part = waiting.pop()
            del path[depth:]
        else:
            return None


def _inner_stmts(part: Node) -> tuple[tir.Stmt, ...]:
    """The statements directly inside a statement or program."""
    kind = type(part)
    if kind is tir.For or kind is tir.Alloc or kind is tir.Func:
        return (part.body,)  # type: ignore[attr-defined]
    if kind is tir.Seq:
        return part.body  # type: ignore[attr-defined, no-any-return]
    if kind is tir.Block:
        init = part.init  # type: ignore[attr-defined]
        return (part.body,) if init is None else (part.body, init)  # type: ignore[attr-defined]
    if kind is tir.If:
        other = part.otherwise  # type: ignore[attr-defined]
        return (part.then,) if other is None else (part.then, other)  # type: ignore[attr-defined]
    return ()


def find_block(root: Node, name: str) -> tir.Block | None:
    """The block with this name, or None."""
    for part in walk_stmts(root):
        if type(part) is tir.Block and part.name == name:
            return part
    return None


def walk_stmts(node: Node) -> Iterator[tir.Stmt]:
    """Statements only, outermost first, in program order."""
    if isinstance(node, tir.Func):
        node = node.body
    if not isinstance(node, tir.Stmt):
        return
    stack: list[tir.Stmt] = [node]
    while stack:
        top = stack.pop()
        yield top
        inside = _inner_stmts(top)
        if inside:
            stack += inside[::-1]


def enclosing(root: Node, target: Node) -> tuple[tir.Stmt, ...]:
    """The statements around `target`, outermost first, without itself; () if it is not inside."""
    path = _path(root, target) or ()
    return tuple([part for part in path if isinstance(part, tir.Stmt)])
