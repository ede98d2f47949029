"""Vector loops become vector statements of at most the target's native width.

    for j in vectorized(24):        C[Ramp(0, 1, 8)]  = A[Ramp(0, 1, 8)]  * 2
        C[j] = A[j] * 2         →   C[Ramp(8, 1, 8)]  = …
                                    C[Ramp(16, 1, 8)] = …

Each statement is cut into chunks by itself (inner loops stay around all chunks of their body), which
is the order in which vector hardware would run it. The last chunks get narrower, by powers of two.
A reduction folds its lanes: `s = s + A[j]` becomes `s = s + Reduce(add, …)`. A body without a vector
form stays a scalar loop, and a remark says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.intrin.functions import EXPANSIONS
from tilewright.lower import fold
from tilewright.lower.context import Context
from tilewright.lower.simplify import analyzer_of
from tilewright.lower.vector_values import CannotVectorize, VectorValues
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.visit import free_vars, walk, walk_stmts

__all__ = ["vectorize"]

MAX_CHUNKS: Final = 16
"""Longer loops stay loops, over full vectors."""

INTERLEAVED: Final = 2
"""Vectors of a long polynomial that are computed side by side, which hides its latency."""

FOLDS: Final = {
    tir.Add: tir.Fold.ADD,
    tir.Mul: tir.Fold.MUL,
    tir.Min: tir.Fold.MIN,
    tir.Max: tir.Fold.MAX,
}


def vectorize(func: tir.Func, context: Context) -> tir.Func:
    """Replace every vector loop."""
    if not any(_is_vector(s) for s in walk_stmts(func)):
        return func
    body = _Vectorizer(func, context).statement(func.body, ())
    return func.with_fields(body=body)  # type: ignore[no-any-return]


def _is_vector(stmt: tir.Stmt) -> bool:
    return type(stmt) is tir.For and stmt.kind is tir.LoopKind.VECTOR


class _Vectorizer:
    def __init__(self, func: tir.Func, context: Context) -> None:
        self.func, self.context = func, context

    def statement(self, stmt: tir.Stmt, around: tuple[tir.For, ...]) -> tir.Stmt:
        if type(stmt) is tir.For:
            if stmt.kind is tir.LoopKind.VECTOR:
                return self.loop(stmt, around)
            around = (*around, stmt)
        return fold.map_parts(stmt, lambda part: self.statement(part, around))

    def loop(self, loop: tir.For, around: tuple[tir.For, ...]) -> tir.Stmt:
        try:
            if any(_is_vector(s) for s in walk_stmts(loop.body)):
                raise CannotVectorize("another vector loop is inside")
            _require_separate(loop)
            return _Chunks(loop, self.lanes(loop), self.analyzer(around)).statement()
        except CannotVectorize as reason:
            self.context.remark(f"loop `{loop.var.name}` is not vectorised: {reason}")
            return self.statement(_scalar(loop), around)

    def lanes(self, loop: tir.For) -> int:
        """Elements of the widest type in the body that fit a vector register."""
        widest, together = 1, 1
        for node in walk(loop.body):
            match node:
                case tir.Call(name=name) if name in EXPANSIONS:
                    together = INTERLEAVED
                case tir.Load() | tir.Store():
                    widest = max(widest, node.buffer.dtype.size_bytes)
                case tir.Cast(dtype=dtype) if not dtype.is_bool:
                    widest = max(widest, dtype.size_bytes)
        return self.context.target.lanes(widest) * together

    def analyzer(self, around: tuple[tir.For, ...]) -> _LazyAnalyzer:
        return _LazyAnalyzer(self.func, around)


class _LazyAnalyzer:
    """Made only for loops whose indices have divisions."""

    def __init__(self, func: tir.Func, around: tuple[tir.For, ...]) -> None:
        self.func, self.around = func, around
        self.made: Analyzer | None = None

    def __call__(self) -> Analyzer:
        if self.made is None:
            self.made = analyzer_of(self.func)
            for loop in self.around:
                self.made = self.made.bind(loop.var, loop.extent)
        return self.made


def _scalar(loop: tir.For) -> tir.For:
    """The loop without vectors; unrolled if it runs over registers."""
    registers = any(
        type(n) in (tir.Load, tir.Store)
        and n.buffer.scope is tir.Scope.REGISTER  # type: ignore[attr-defined]
        and any(loop.var in free_vars(i) for i in n.indices)  # type: ignore[attr-defined]
        for n in walk(loop.body)
    )
    kind = tir.LoopKind.UNROLLED if registers else tir.LoopKind.SERIAL
    return loop.with_fields(kind=kind)  # type: ignore[no-any-return]


def _require_separate(loop: tir.For) -> None:
    """Running statement by statement must not mix the iterations' use of one element."""
    stores = [s for s in walk_stmts(loop.body) if type(s) is tir.Store]
    if len(stores) == 1:
        return
    for store in stores:
        if any(loop.var in free_vars(i) for i in store.indices):
            continue
        uses = [n for n in walk(loop.body) if type(n) in (tir.Load, tir.Store)]
        own = [n for n in walk(store) if type(n) in (tir.Load, tir.Store)]
        count = sum(n.buffer is store.buffer for n in uses)  # type: ignore[attr-defined]
        if count > sum(n.buffer is store.buffer for n in own):  # type: ignore[attr-defined]
            raise CannotVectorize(f"all iterations share an element of `{store.buffer.name}`")


class _Chunks:
    """One vector loop, cut into chunks of at most `lanes` iterations."""

    def __init__(self, loop: tir.For, lanes: int, analyzer: _LazyAnalyzer) -> None:
        self.loop, self.lanes, self.analyzer = loop, lanes, analyzer

    def statement(self) -> tir.Stmt:
        extent = tir.int_value(self.loop.extent)
        if extent is not None and extent <= self.lanes * MAX_CHUNKS:
            return self.over(self.chunks(0, extent))
        return self.long_loop(extent)

    def long_loop(self, extent: int | None) -> tir.Stmt:
        """A loop over full vectors, then the rest."""
        loop, lanes = self.loop, self.lanes
        var = tir.Var(loop.var.name)
        full = loop.extent // lanes
        inner = _Chunks(loop, lanes, _bound(self.analyzer, tir.For(var, full, loop.body)))
        main = fold.loop(
            tir.For(var, full, fold.NOTHING), full, inner.over([(var * lanes, lanes)])
        )
        done = full * lanes
        if extent is not None:
            rest = self.over(self.chunks(extent // lanes * lanes, extent))
            return fold.seq(main, _renewed(rest))
        tail = tir.Var(loop.var.name)
        body = fold.copied(loop.body, {loop.var: done + tail})
        return fold.seq(main, tir.For(tail, loop.extent % lanes, body))

    def chunks(self, start: int, end: int) -> list[tuple[tir.Expr, int]]:
        """(first iteration, lanes) of each chunk: full vectors, then powers of two."""
        found: list[tuple[tir.Expr, int]] = []
        lanes = self.lanes
        while start < end:
            while lanes > end - start:
                lanes //= 2
            found.append((tir.Const(start), lanes))
            start += lanes
        return found

    def over(self, chunks: Sequence[tuple[tir.Expr, int]]) -> tir.Stmt:
        if not chunks:
            return fold.NOTHING
        values = [VectorValues(self.loop.var, base, n, self.analyzer) for base, n in chunks]
        return self.vectors(self.loop.body, values)

    def vectors(self, stmt: tir.Stmt, chunks: list[VectorValues]) -> tir.Stmt:
        match stmt:
            case tir.Store():
                return _store(stmt, chunks)
            case tir.Seq():
                return fold.seq(*(self.vectors(part, chunks) for part in stmt.body))
            case tir.For() if not chunks[0].moves(stmt.extent):
                return stmt.with_fields(body=self.vectors(stmt.body, chunks))  # type: ignore[no-any-return]
            case tir.If() if not chunks[0].moves(stmt.cond):
                other = stmt.otherwise
                return stmt.with_fields(  # type: ignore[no-any-return]
                    then=self.vectors(stmt.then, chunks),
                    otherwise=None if other is None else self.vectors(other, chunks),
                )
        reason = {
            tir.For: "an inner loop has another extent in each iteration",
            tir.If: "a condition differs between iterations",
            tir.Alloc: "every iteration has a buffer of its own",
        }
        raise CannotVectorize(reason.get(type(stmt), "its body has no vector form"))


def _bound(analyzer: _LazyAnalyzer, loop: tir.For) -> _LazyAnalyzer:
    return _LazyAnalyzer(analyzer.func, (*analyzer.around, loop))


def _renewed(stmt: tir.Stmt) -> tir.Stmt:
    """A copy with loop variables of its own, if it has loops."""
    return fold.copied(stmt, {}) if any(type(s) is tir.For for s in walk_stmts(stmt)) else stmt


def _store(store: tir.Store, chunks: list[VectorValues]) -> tir.Stmt:
    if not any(chunks[0].moves(i) for i in store.indices):
        return _shared_store(store, chunks)
    parts: list[tir.Stmt] = []
    for chunk in chunks:
        if chunk.lanes == 1:
            parts.append(fold.substitute(store, {chunk.var: chunk.base}))
            continue
        indices = tuple([chunk.index(i) for i in store.indices])
        if indices[0].dtype.lanes == 1:
            raise CannotVectorize("several iterations store to one element")
        parts.append(tir.Store(store.buffer, indices, chunk.vector(store.value)))
    return fold.seq(*parts)


def _shared_store(store: tir.Store, chunks: list[VectorValues]) -> tir.Stmt:
    """All iterations store to one element: a reduction, or the last one wins."""
    element = tir.Load(store.buffer, store.indices)
    if element not in set(walk(store.value)):
        if any(n.buffer is store.buffer for n in walk(store.value) if type(n) is tir.Load):
            raise CannotVectorize(f"an iteration reads what another one writes to `{store.buffer.name}`")
        last = chunks[-1]
        at = fold.fold_binary(tir.Add, last.base, tir.Const(last.lanes - 1))
        return fold.substitute(store, {last.var: at})
    kind = type(store.value)
    if kind not in FOLDS or element not in (store.value.a, store.value.b):  # type: ignore[attr-defined]
        raise CannotVectorize("it is no sum, product, minimum or maximum")
    step = store.value.b if store.value.a == element else store.value.a  # type: ignore[attr-defined]
    if any(n.buffer is store.buffer for n in walk(step) if type(n) is tir.Load):
        raise CannotVectorize(f"an iteration reads what another one writes to `{store.buffer.name}`")
    return tir.Store(store.buffer, store.indices, _folded(kind, element, step, chunks))


def _folded(
    kind: type[tir.Binary], start: tir.Expr, step: tir.Expr, chunks: list[VectorValues]
) -> tir.Expr:
    """`start` and all lanes of `step` folded into one value; equal chunks are joined first, as a
    tree, so that no long chain of dependent operations arises.
    """
    equal: dict[int, list[tir.Expr]] = {}
    for chunk in chunks:
        alone = fold.substitute(step, {chunk.var: chunk.base}) if chunk.lanes == 1 else None
        equal.setdefault(chunk.lanes, []).append(chunk.vector(step) if alone is None else alone)
    result = start
    for lanes, values in equal.items():
        joined = _tree(kind, values)
        result = kind(result, tir.Reduce(FOLDS[kind], joined) if lanes > 1 else joined)
    return result


def _tree(kind: type[tir.Binary], values: list[tir.Expr]) -> tir.Expr:
    if len(values) == 1:
        return values[0]
    half = (len(values) + 1) // 2
    return kind(_tree(kind, values[:half]), _tree(kind, values[half:]))
