"""Putting values in for variables, with constant folding on the way up.

The substitution of `tensor.visit` keeps every node as it was written; lowering puts constants into
loop bodies thousands of times and needs `i * 512 + 8` to come out as one number, a comparison of
numbers as a decision, and a decided `If` as one of its branches. O(n) in the nodes that change;
what does not mention a variable stays the same object. Blocks are not expected here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from tilewright.dtypes import index
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.fields import rebuild, same_or
from tilewright.tensor.node import Node
from tilewright.tensor.visit import free_vars, map_children

__all__ = [
    "FALSE",
    "NOTHING",
    "branch",
    "copied",
    "fold_binary",
    "loop",
    "map_parts",
    "negated",
    "resolved",
    "seq",
    "substitute",
]

T = TypeVar("T", bound=Node)

TRUE: Final = tir.TRUE
FALSE: Final = tir.Const(value=False, dtype=tir.TRUE.dtype)
NOTHING: Final = tir.Seq(())
_LIMIT: Final = 1 << 63


def substitute(node: T, values: Mapping[tir.Var, tir.Expr]) -> T:
    """`node` with variables replaced, folded; untouched parts stay the same objects."""
    return _Substitution(dict(values), fresh=False).visit(node)  # type: ignore[return-value]


def copied(node: T, values: Mapping[tir.Var, tir.Expr]) -> T:
    """The same, with new loop variables and buffers inside, so that a program may hold two."""
    return _Substitution(dict(values), fresh=True).visit(node)  # type: ignore[return-value]


def resolved(node: T, known: Mapping[tir.Expr, tir.Expr]) -> T:
    """`node` with comparisons and tiles replaced by what is known of them, folded."""
    return _Substitution({}, fresh=False, known=known).visit(node)  # type: ignore[return-value]


def seq(*parts: tir.Stmt) -> tir.Stmt:
    """Statements one after another, flattened; empty ones vanish."""
    flat: list[tir.Stmt] = []
    for part in parts:
        if type(part) is tir.Seq:
            flat.extend(part.body)
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else tir.Seq(tuple(flat)) if flat else NOTHING


def map_parts(stmt: tir.Stmt, change: Callable[[tir.Stmt], tir.Stmt]) -> tir.Stmt:
    """`stmt` with `change` applied to the statements directly inside; itself if none changes."""
    match stmt:
        case tir.Store() | tir.Barrier() | tir.Prefetch():
            return stmt
        case tir.Seq():
            parts = [change(part) for part in stmt.body]
            same = all(a is b for a, b in zip(parts, stmt.body, strict=True))
            return stmt if same else seq(*parts)
        case tir.For() | tir.Alloc():
            return stmt.with_fields(body=change(stmt.body))
        case tir.If():
            then = change(stmt.then)
            other = None if stmt.otherwise is None else change(stmt.otherwise)
            return stmt.with_fields(then=then, otherwise=other)
    raise TypeError(f"{type(stmt).__name__} is not a statement of lowered loops")


def loop(like: tir.For, extent: tir.Expr, body: tir.Stmt) -> tir.Stmt:
    """`like` with another extent and body; loops without iterations or content vanish."""
    if type(body) is tir.Seq and not body.body:
        return NOTHING
    times = tir.int_value(extent)
    if times is not None:
        if times <= 0:
            return NOTHING
        if times == 1 and like.kind is not tir.LoopKind.PARALLEL:
            return substitute(body, {like.var: tir.Const(0)})
    if extent is like.extent and body is like.body:
        return like
    return like.with_fields(extent=extent, body=body)


def branch(cond: tir.Expr, then: tir.Stmt, other: tir.Stmt | None) -> tir.Stmt:
    """An `If`, or the side that a constant condition decides."""
    if type(cond) is tir.Const:
        return then if cond.value else other if other is not None else NOTHING
    if type(other) is tir.Seq and not other.body:
        other = None
    if type(then) is tir.Seq and not then.body:
        return NOTHING if other is None else tir.If(negated(cond), other)
    return tir.If(cond, then, other)


def negated(cond: tir.Expr) -> tir.Expr:
    """`not cond`, pushed into comparisons of integers."""
    if type(cond) is tir.Const:
        return FALSE if cond.value else TRUE
    if isinstance(cond, tir.Compare) and cond.a.dtype == index:
        match cond:
            case tir.Lt():
                return tir.Le(cond.b, cond.a)
            case tir.Le():
                return tir.Lt(cond.b, cond.a)
            case tir.Eq():
                return tir.Ne(cond.a, cond.b)
            case tir.Ne():
                return tir.Eq(cond.a, cond.b)
    return cond.value if type(cond) is tir.Not else tir.Not(cond)


_COMPARE: Final[dict[type[tir.Binary], Callable[[Any, Any], bool]]] = {
    tir.Lt: operator.lt,
    tir.Le: operator.le,
    tir.Eq: operator.eq,
    tir.Ne: operator.ne,
}
_ARITHMETIC: Final[dict[type[tir.Binary], Callable[[int, int], int]]] = {
    tir.Add: operator.add,
    tir.Sub: operator.sub,
    tir.Mul: operator.mul,
    tir.FloorDiv: lambda a, b: a // b if b else 0,
    tir.FloorMod: lambda a, b: a % b if b else 0,
    tir.Min: min,
    tir.Max: max,
}


def fold_binary(kind: type[tir.Binary], a: tir.Expr, b: tir.Expr) -> tir.Expr:
    """`kind(a, b)`, folded on indices and conditions only: other dtypes wrap and round."""
    if a.dtype is index:
        return _fold_index(kind, a, b)
    if a.dtype is TRUE.dtype:
        return _fold_logic(kind, a, b)
    return kind(a, b)


def _fold_index(kind: type[tir.Binary], a: tir.Expr, b: tir.Expr) -> tir.Expr:
    x = a.value if type(a) is tir.Const else None
    y = b.value if type(b) is tir.Const else None
    if x is not None and y is not None:
        if kind in _ARITHMETIC:
            result = _ARITHMETIC[kind](int(x), int(y))
            # `i64` is also a type of data, which wraps.
            return tir.Const(result) if -_LIMIT <= result < _LIMIT else kind(a, b)
        if kind in _COMPARE:
            return TRUE if _COMPARE[kind](x, y) else FALSE
    if kind is tir.Add:
        if x is not None:
            a, b, x, y = b, a, y, x
        if y is not None:
            return _plus_number(a, int(y))
        if type(a) is tir.Add and type(a.b) is tir.Const:  # (p + 3) + q is (p + q) + 3
            return tir.Add(_fold_index(tir.Add, a.a, b), a.b, index)
        return tir.Add(a, b, index)
    if kind is tir.Sub and y is not None:
        return _fold_index(tir.Add, a, tir.Const(-int(y)))
    if kind is tir.Mul and (y == 0 or x == 1):
        return b
    if (kind is tir.Mul and (x == 0 or y == 1)) or (kind is tir.FloorDiv and y == 1):
        return a
    if kind is tir.FloorMod and y == 1:
        return tir.Const(0)
    if kind in _COMPARE and a == b:
        return TRUE if _COMPARE[kind](0, 0) else FALSE
    if (kind is tir.Min or kind is tir.Max) and a == b:
        return a
    return kind(a, b)


def _plus_number(a: tir.Expr, number: int) -> tir.Expr:
    if isinstance(a, (tir.Add, tir.Sub)) and type(a.b) is tir.Const:
        inner = int(a.b.value)
        a, number = a.a, number + (inner if type(a) is tir.Add else -inner)
    return tir.Add(a, tir.Const(number), index) if number else a


def _fold_logic(kind: type[tir.Binary], a: tir.Expr, b: tir.Expr) -> tir.Expr:
    for known, other in ((a, b), (b, a)):
        if type(known) is tir.Const:
            if kind is tir.BitAnd:
                return other if known.value else FALSE
            if kind is tir.BitOr:
                return TRUE if known.value else other
    return kind(a, b)


_STATEMENTS: Final = (
    tir.Store.bit | tir.For.bit | tir.If.bit | tir.Seq.bit | tir.Alloc.bit | tir.Prefetch.bit
)
_KNOWN: Final = tir.Compare.bit | tir.TileStart.bit | tir.TileSize.bit


class _Substitution:
    """One walk; `values` grows by the fresh variables of the binders that are copied."""

    __slots__ = ("buffers", "entered", "fresh", "known", "memo", "values", "wanted")

    def __init__(
        self,
        values: dict[tir.Var, tir.Expr],
        *,
        fresh: bool,
        known: Mapping[tir.Expr, tir.Expr] | None = None,
    ) -> None:
        self.values, self.fresh, self.known = values, fresh, known or {}
        self.wanted = values.keys()
        self.memo: dict[int, Node] = {}  # by identity: shared parts are visited once
        self.buffers: dict[tir.Buffer, tir.Buffer] = {}
        # What must be entered even if no variable in it is replaced; statements always are.
        self.entered = _STATEMENTS | (_KNOWN if known else 0) | (tir.Let.bit if fresh else 0)

    def visit(self, node: Node) -> Node:
        kind = type(node)
        if kind is tir.Const:
            return node
        if isinstance(node, tir.Var):
            return self.values.get(node, node)
        found = self.memo.get(id(node))
        if found is None:
            if not node.inside & self.entered and self.wanted.isdisjoint(free_vars(node)):
                found = node
            else:
                found = _VISIT.get(kind, _rest)(self, node)
            self.memo[id(node)] = found
        return found

    def binary(self, node: tir.Binary) -> Node:
        if self.known and node in self.known:
            return self.known[node]
        a, b = self.visit(node.a), self.visit(node.b)
        if a is node.a and b is node.b:
            return node
        return fold_binary(type(node), a, b)  # type: ignore[arg-type]

    def select(self, node: tir.Select) -> Node:
        cond = self.visit(node.cond)
        known = cond.value if type(cond) is tir.Broadcast else cond  # the same in all lanes
        if type(known) is tir.Const:
            return self.visit(node.if_true if known.value else node.if_false)
        a, b = self.visit(node.if_true), self.visit(node.if_false)
        same = cond is node.cond and a is node.if_true and b is node.if_false
        return node if same else tir.Select(cond, a, b)  # type: ignore[arg-type]

    def logical_not(self, node: tir.Not) -> Node:
        value = self.visit(node.value)
        if value is node.value:
            return node
        return negated(value) if node.dtype.is_bool else tir.Not(value)  # type: ignore[arg-type]

    def load(self, node: tir.Load) -> Node:
        buffer, indices = self.access(node)
        if buffer is node.buffer and indices is node.indices:
            return node
        return tir.Load(buffer, indices, node.dtype)

    def store(self, node: tir.Store) -> Node:
        buffer, indices = self.access(node)
        value = self.visit(node.value)
        if value is node.value and buffer is node.buffer and indices is node.indices:
            return node
        if type(value) is tir.Load and value == tir.Load(buffer, indices):
            return NOTHING  # what a skipped step of a fold comes to
        return tir.Store(buffer, indices, value)  # type: ignore[arg-type]

    def access(self, node: tir.Load | tir.Store) -> tuple[tir.Buffer, tuple[tir.Expr, ...]]:
        indices = same_or(node.indices, [self.visit(i) for i in node.indices])
        return self.buffers.get(node.buffer, node.buffer), indices

    def tile(self, node: tir.TileStart | tir.TileSize) -> Node:
        if node in self.known:
            return self.known[node]
        cover, tile = self.cover(node.cover), self.visit(node.tile)
        if cover is node.cover and tile is node.tile:
            return node
        make = covers.start if type(node) is tir.TileStart else covers.size
        return make(cover, tile)  # type: ignore[arg-type]

    def cover(self, cover: tir.Cover) -> tir.Cover:
        return map_children(cover, self.visit)

    def loop(self, node: tir.For) -> Node:
        extent = self.visit(node.extent)
        if self.fresh:
            var = tir.Var(node.var.name)
            self.values[node.var] = var
            node = node.with_fields(var=var, body=self.visit(node.body))
        return loop(node, extent, self.visit(node.body) if not self.fresh else node.body)  # type: ignore[arg-type]

    def let(self, node: tir.Let) -> Node:
        value = self.visit(node.value)
        var = node.var
        if self.fresh:
            var = tir.Var(var.name, var.dtype)
            self.values[node.var] = var
        body = self.visit(node.body)
        return node.with_fields(var=var, value=value, body=body)

    def alloc(self, node: tir.Alloc) -> Node:
        buffer = node.buffer
        if self.fresh:
            buffer = tir.Buffer(buffer.name, buffer.shape, buffer.dtype, buffer.scope)
            self.buffers[node.buffer] = buffer
            self.entered |= tir.Load.bit
        body = self.visit(node.body)
        return node.with_fields(buffer=buffer, body=body)

    def branch(self, node: tir.If) -> Node:
        cond: Any = self.visit(node.cond)
        if type(cond) is tir.Const:
            side = node.then if cond.value else node.otherwise
            return NOTHING if side is None else self.visit(side)
        then: Any = self.visit(node.then)
        other: Any = None if node.otherwise is None else self.visit(node.otherwise)
        if cond is node.cond and then is node.then and other is node.otherwise:
            return node
        return branch(cond, then, other)

    def seq(self, node: tir.Seq) -> Node:
        parts: Any = [self.visit(part) for part in node.body]
        if all(a is b for a, b in zip(parts, node.body, strict=True)):
            return node
        return seq(*parts)


def _rest(walk: _Substitution, node: Node) -> Node:
    return rebuild[type(node)](node, walk.visit)  # type: ignore[no-any-return]


def _binary_kinds() -> list[type[tir.Binary]]:
    kinds: list[type[tir.Binary]] = []
    pending = [tir.Binary]
    while pending:
        kind = pending.pop()
        kinds.append(kind)
        pending.extend(kind.__subclasses__())
    return kinds


_VISIT: Final[dict[type[Node], Callable[[_Substitution, Any], Node]]] = {
    **dict.fromkeys(_binary_kinds(), _Substitution.binary),
    tir.Select: _Substitution.select,
    tir.Not: _Substitution.logical_not,
    tir.Load: _Substitution.load,
    tir.Store: _Substitution.store,
    tir.TileStart: _Substitution.tile,
    tir.TileSize: _Substitution.tile,
    tir.For: _Substitution.loop,
    tir.Let: _Substitution.let,
    tir.Alloc: _Substitution.alloc,
    tir.If: _Substitution.branch,
    tir.Seq: _Substitution.seq,
}
