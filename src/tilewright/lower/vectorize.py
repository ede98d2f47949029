"""Vector loops become vector statements of at most the target's native width.

    for j in vectorized(24):        C[Ramp(0, 1, 8)]  = A[Ramp(0, 1, 8)]  * 2
        C[j] = A[j] * 2         →   C[Ramp(8, 1, 8)]  = …
                                    C[Ramp(16, 1, 8)] = …

Each statement is cut into chunks by itself (inner loops stay around all chunks of their body),
which is the order in which vector hardware would run it. The last chunk is a vector in part, if the
target has such; otherwise the last ones get narrower, by powers of two. A reduction folds its
lanes: `s = s + A[j]` becomes `s = s + Reduce(add, …)`. A body without a vector form stays a scalar
loop, and a remark says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from tilewright.dtypes import index
from tilewright.intrin.functions import EXPANSIONS
from tilewright.lower import fold, forms
from tilewright.lower.context import Context
from tilewright.lower.masked_values import Masked, MaskedValues, has_fixed_loads, masked_by
from tilewright.lower.vector_reduction import (
    PARTS,
    Reduction,
    in_registers,
    reduction_in,
    shared_store,
)
from tilewright.lower.vector_values import CannotVectorize, Surroundings, VectorValues
from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node
from tilewright.tensor.visit import find, free_vars, holds, rewrite, walk_stmts

__all__ = ["vectorize"]

MAX_CHUNKS: Final = 16
"""Longer loops stay loops, over full vectors."""

INTERLEAVED: Final = 4
"""Vectors of a long polynomial that are computed side by side, which hides its latency."""


def vectorize(func: tir.Func, context: Context) -> tir.Func:
    """Replace every vector loop."""
    if not any(_is_vector(s) for s in walk_stmts(func)):
        return func
    body = _Vectorizer(context, func).statement(func.body, Surroundings(func, ()))
    return func.with_fields(body=body)


def _is_vector(stmt: tir.Stmt) -> bool:
    return type(stmt) is tir.For and stmt.kind is tir.LoopKind.VECTOR


class _Vectorizer:
    def __init__(self, context: Context, func: tir.Func) -> None:
        self.context = context
        stored = {store.buffer for store in find(func.body, tir.Store)}
        self.passed_on = stored & {load.buffer for load in find(func.body, tir.Load)}

    def statement(self, stmt: tir.Stmt, around: Surroundings) -> tir.Stmt:
        if not holds(stmt, tir.For):
            return stmt
        if type(stmt) is tir.For:
            if stmt.kind is tir.LoopKind.VECTOR:
                return self.loop(stmt, around)
            around = around.within(stmt)
        return fold.map_parts(stmt, lambda part: self.statement(part, around))

    def loop(self, loop: tir.For, around: Surroundings) -> tir.Stmt:
        try:
            if any(_is_vector(s) for s in walk_stmts(loop.body)):
                raise CannotVectorize("another vector loop is inside")
            _require_separate(loop)
            return _Chunks(loop, self.width(loop), around).statement()
        except CannotVectorize as reason:
            self.context.remark(f"loop `{loop.var.name}` is not vectorised: {reason}")
            return self.statement(_scalar(loop), around)

    def width(self, loop: tir.For) -> Width:
        """Elements of the widest type in the body that fit a vector register."""
        target, together = self.context.target, 1
        if any(call.name in EXPANSIONS for call in find(loop.body, tir.Call)):
            together = INTERLEAVED
        sizes = {access.buffer.dtype.size_bytes for access in _accesses(loop.body)}
        casts = {c.dtype.size_bytes for c in find(loop.body, tir.Cast) if not c.dtype.is_bool}
        native = target.lanes(max(sizes | casts, default=1))
        masks = [target.masks(size) for size in sizes] if native > 1 else [None]
        free = all(mask is not None and mask.is_free for mask in masks)
        used = {a.buffer for a in _accesses(loop.body) if any(map(_uses(loop.var), a.indices))}
        return Width(
            native * together, native, None not in masks, free, used.isdisjoint(self.passed_on)
        )


def _accesses(node: Node) -> Iterator[tir.Load | tir.Store]:
    yield from find(node, tir.Store)
    yield from find(node, tir.Load)


def _uses(var: tir.Var) -> Callable[[tir.Expr], bool]:
    return lambda expr: var in free_vars(expr)


def _scalar(loop: tir.For) -> tir.For:
    """The loop without vectors; unrolled if it runs over registers."""
    registers = any(
        access.buffer.scope is tir.Scope.REGISTER
        and any(loop.var in free_vars(i) for i in access.indices)
        for access in _accesses(loop.body)
    )
    kind = tir.LoopKind.UNROLLED if registers else tir.LoopKind.SERIAL
    return loop.with_fields(kind=kind)


def _require_separate(loop: tir.For) -> None:
    """Running statement by statement must not mix the iterations' use of one element."""
    stores = [s for s in walk_stmts(loop.body) if type(s) is tir.Store]
    if len(stores) == 1:
        return
    own_buffers = {s.buffer for s in walk_stmts(loop.body) if type(s) is tir.Alloc}
    for store in stores:
        if store.buffer in own_buffers or any(loop.var in free_vars(i) for i in store.indices):
            continue
        uses = sum(access.buffer is store.buffer for access in _accesses(loop.body))
        if uses > sum(access.buffer is store.buffer for access in _accesses(store)):
            raise CannotVectorize(f"all iterations share an element of `{store.buffer.name}`")


class Width(NamedTuple):
    """Iterations that one statement takes at most, and those of a vector register.

    Its lanes may be switched off if it has masks; if they are free, no test need avoid them. What
    a store under a mask has written comes to a load late, so it had better be for somebody else.
    """

    lanes: int
    native: int
    has_masks: bool
    free_masks: bool
    for_others: bool

    def masks_pay(self, *, folds: bool) -> bool:
        """Whether narrower vectors would be slower: nothing is stored under a mask by a fold."""
        return self.has_masks and (self.free_masks or folds)


class _Chunks:
    """One vector loop, cut into chunks of at most `lanes` iterations."""

    def __init__(self, loop: tir.For, width: Width, around: Surroundings) -> None:
        self.loop, self.width, self.around = loop, width, around
        self.lanes = width.lanes

    def statement(self) -> tir.Stmt:
        extent = tir.int_value(self.loop.extent)
        ended = self.ended()
        if ended is not None:
            return ended
        if extent is not None and extent <= self.lanes * MAX_CHUNKS:
            return self.known(0, extent)
        return self.long_loop(extent)

    def ended(self) -> tir.Stmt | None:
        """The loop up to where the condition around its whole body ends it, in several vectors.

        None if there is no such condition, or if registers need to know how long it is.
        """
        stmt, whole = self.loop.body, self.chunk(tir.Const(0), self.width.native)
        short = (tir.int_value(self.loop.extent) or 0) <= self.width.native
        if short or type(stmt) is not tir.If or stmt.otherwise is not None:
            return None
        found = masked_by(stmt.cond, whole) if whole.moves(stmt.cond) else None
        in_registers = any(a.buffer.scope is tir.Scope.REGISTER for a in _accesses(stmt.then))
        if found is None or found.others or in_registers:
            return None
        end = tir.maximum(tir.minimum(found.count, self.loop.extent), 0)
        end = self.around.analyzer(1).simplify(end)
        loop = self.loop.with_fields(extent=end, body=stmt.then)
        chunks = _Chunks(loop, self.width, self.around)
        if reduction_in(stmt.then, loop.var) is not None:
            most = (tir.int_value(self.loop.extent) or 0) + 1
            return chunks.rest(tir.Const(0), None, most)  # a few vectors have no need of parts
        return chunks.long_loop(None)

    def long_loop(self, extent: int | None) -> tir.Stmt:
        """A loop over full vectors, then the rest."""
        found = reduction_in(self.loop.body, self.loop.var)
        if found is not None:
            return self.long_reduction(found, extent)
        full = self.loop.extent // self.lanes
        var = tir.Var(self.loop.var.name)
        body = self.within(var, full).over([(var * self.lanes, self.lanes)])
        return fold.seq(tir.For(var, full, body), self.rest(full * self.lanes, extent, self.lanes))

    def long_reduction(self, reduction: Reduction, extent: int | None) -> tir.Stmt:
        """The same, with partial results in registers."""
        length = self.lanes * PARTS
        groups = self.loop.extent // length
        var = tir.Var(self.loop.var.name)
        make = self.within(var, groups).chunk
        main = in_registers(reduction, var, groups, self.lanes, lambda base: make(base, self.lanes))
        return fold.seq(main, self.rest(groups * length, extent, length))

    def within(self, var: tir.Var, extent: tir.Expr) -> _Chunks:
        """The same loop, seen from inside a loop over its vectors."""
        around = self.around.within(tir.For(var, extent, fold.NOTHING))
        return _Chunks(self.loop, self.width, around)

    def rest(self, start: tir.Expr, extent: int | None, most: int) -> tir.Stmt:
        """The iterations from `start` on: fewer than `most`, what the loop before takes at once."""
        done = tir.int_value(start)
        if extent is not None and done is not None:
            return _renewed(self.known(done, extent))
        try:
            return self.partial_rest(start, most)
        except CannotVectorize:
            pass
        tail = tir.Var(self.loop.var.name)
        body = fold.copied(self.loop.body, {self.loop.var: start + tail})
        return tir.For(tail, forms.tidy(self.loop.extent - start), body)

    def partial_rest(self, start: tir.Expr, most: int) -> tir.Stmt:
        """Less than `most` iterations by single vectors, of which the last is not full."""
        left = self.around.analyzer(1).simplify(forms.tidy(self.loop.extent - start))
        lanes, var = self.width.native, tir.Var(self.loop.var.name)
        folds = reduction_in(self.loop.body, self.loop.var) is not None
        last = self.last_masked if self.width.masks_pay(folds=folds) else self.last_halved
        if most <= lanes:
            return last(start, left)
        full = left // lanes
        whole = self.within(var, full).over([(start + var * lanes, lanes)])
        rest = last(start + full * lanes, forms.tidy(left - full * lanes))
        return fold.seq(tir.For(var, full, whole), rest)

    def last_masked(self, start: tir.Expr, left: tir.Expr) -> tir.Stmt:
        """The last iterations as a vector whose lanes behind the end are off."""
        chunk = self.chunk(start, self.width.native)
        return _renewed(self.masked(self.loop.body, chunk, left))

    def last_halved(self, start: tir.Expr, left: tir.Expr) -> tir.Stmt:
        """The last iterations by vectors of half the lanes, a quarter, and so on, where needed."""
        lanes, parts = self.width.native // 2, list[tir.Stmt]()
        while lanes:
            base = start + left // (2 * lanes) * (2 * lanes)
            part = _renewed(self.over([(base, lanes)]))
            some = self.around.analyzer(1).simplify(left % (2 * lanes))
            parts.append(tir.If(tir.Le(tir.Const(lanes), some), part))
            lanes //= 2
        return fold.seq(*parts)

    def masked(self, stmt: tir.Stmt, chunk: VectorValues, count: tir.Expr) -> tir.Stmt:
        """A statement in the first `count` lanes of a chunk."""
        made = self.vectors(stmt, [MaskedValues(chunk, count)])
        return tir.If(tir.Lt(tir.Const(0), count), made) if has_fixed_loads(stmt, chunk) else made

    def chunk(self, base: tir.Expr, lanes: int) -> VectorValues:
        return VectorValues(self.loop.var, base, lanes, self.around)

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

    def known(self, start: int, end: int) -> tir.Stmt:
        """Iterations whose number is known.

        Where several narrower vectors would follow the full ones, a vector in part takes their
        place, if the target has such.
        """
        native, body = self.width.native, self.loop.body
        left = (end - start) % native
        folds = reduction_in(body, self.loop.var) is not None
        in_part = self.width.for_others and self.width.masks_pay(folds=folds)
        if left.bit_count() > 1 and in_part:
            whole = [self.chunk(base, n) for base, n in self.chunks(start, end - left)]
            last = MaskedValues(self.chunk(tir.Const(end - left), native), tir.Const(left))
            try:
                return self.vectors(body, [*whole, last])
            except CannotVectorize:
                pass
        return self.over(self.chunks(start, end))

    def over(self, chunks: Sequence[tuple[tir.Expr, int]]) -> tir.Stmt:
        if not chunks:
            return fold.NOTHING
        return self.vectors(self.loop.body, [self.chunk(base, n) for base, n in chunks])

    def vectors(self, stmt: tir.Stmt, chunks: list[VectorValues]) -> tir.Stmt:
        match stmt:
            case tir.Store(value=tir.Select(cond=cond)) if chunks[0].moves(cond):
                return fold.seq(*(self.padded(stmt, chunk) for chunk in chunks))
            case tir.Store():
                return _store(stmt, chunks)
            case tir.Seq():
                return fold.seq(*(self.vectors(part, chunks) for part in stmt.body))
            case tir.For() if not chunks[0].moves(stmt.extent):
                return stmt.with_fields(body=self.vectors(stmt.body, chunks))
            case tir.If() if not chunks[0].moves(stmt.cond):
                other = stmt.otherwise
                return stmt.with_fields(
                    then=self.vectors(stmt.then, chunks),
                    otherwise=None if other is None else self.vectors(other, chunks),
                )
            case tir.If():
                return fold.seq(*(self.guarded(stmt, chunk) for chunk in chunks))
        reason = {
            tir.For: "an inner loop has another extent in each iteration",
            tir.Alloc: "every iteration has a buffer of its own",
        }
        raise CannotVectorize(reason.get(type(stmt), "its body has no vector form"))

    def padded(self, store: tir.Store, chunk: VectorValues) -> tir.Stmt:
        """A value inside, another outside: a chunk that lies inside needs no clamped index."""
        value = store.value
        assert isinstance(value, tir.Select)
        inside = _unclamped(value.if_true, value.cond)
        if type(inside) is tir.Load and self.width.has_masks and chunk.lanes > 1:
            found = masked_by(value.cond, chunk)
            if found is not None and not found.others and chunk.moves(inside):
                try:
                    return self.filled(store, inside, value.if_false, chunk, found.count)
                except CannotVectorize:
                    pass
        everywhere = chunk.holds_everywhere(value.cond) if inside is not value.if_true else None
        if everywhere is None or chunk.lanes == 1:
            return _store(store, [chunk])
        return tir.If(
            everywhere,
            _store(store.with_fields(value=inside), [chunk]),
            _store(store, [chunk]),
        )

    def filled(
        self,
        store: tir.Store,
        inside: tir.Load,
        outside: tir.Expr,
        chunk: VectorValues,
        count: tir.Expr,
    ) -> tir.Stmt:
        """Elements in the first lanes, and another value behind them: zero is there by itself."""
        masked = MaskedValues(chunk, count)
        value = masked.vector(inside)
        if type(outside) is not tir.Const or outside.key() != tir.const(0, outside.dtype).key():
            value = tir.Select(masked.mask(), value, chunk.vector(outside))
        return tir.Store(store.buffer, chunk.place(store.buffer, store.indices), value)

    def guarded(self, stmt: tir.If, chunk: VectorValues) -> tir.Stmt:
        """A vector where the condition holds in all lanes of a chunk, else lane by lane."""
        everywhere = chunk.holds_everywhere(stmt.cond)
        if everywhere is None or stmt.otherwise is not None or isinstance(chunk, MaskedValues):
            raise CannotVectorize("a condition differs between iterations")
        found = masked_by(stmt.cond, chunk) if self.width.has_masks and chunk.lanes > 1 else None
        if found is not None:
            try:
                return self.kept(stmt, chunk, found, everywhere)
            except CannotVectorize:
                pass
        steps = (fold.fold_binary(tir.Add, chunk.base, tir.Const(n)) for n in range(chunk.lanes))
        alone = fold.seq(*(fold.copied(stmt, {chunk.var: step}) for step in steps))
        return tir.If(everywhere, self.vectors(stmt.then, [chunk]), alone)

    def kept(
        self, stmt: tir.If, chunk: VectorValues, found: Masked, everywhere: tir.Expr
    ) -> tir.Stmt:
        """The lanes for which a condition holds, where that is known to be the first ones."""
        made = self.masked(stmt.then, chunk, found.count)
        if not self.width.free_masks:
            made = tir.If(everywhere, self.vectors(stmt.then, [chunk]), made)
        for other in found.others:
            made = tir.If(other, made)
        return made


def _renewed(stmt: tir.Stmt) -> tir.Stmt:
    """A copy with loop variables of its own, if it has loops."""
    return fold.copied(stmt, {}) if any(type(s) is tir.For for s in walk_stmts(stmt)) else stmt


def _unclamped(value: tir.Expr, cond: tir.Expr) -> tir.Expr:
    """`value` where `cond` holds: minima and maxima of an index that it decides are gone."""
    known = [_not_above_zero(part) for part in _conjuncts(cond)]

    def change(part: Node) -> Node | None:
        if (type(part) is tir.Min or type(part) is tir.Max) and part.dtype == index:
            for less, more in ((part.a, part.b), (part.b, part.a)):
                if forms.minus(forms.form_of(less), forms.form_of(more)) in known:
                    return less if type(part) is tir.Min else more
        return None

    return rewrite(value, change)


def _not_above_zero(cond: tir.Expr) -> forms.Form | None:
    """A form that is at most zero where a comparison of indices holds."""
    if type(cond) not in (tir.Lt, tir.Le) or cond.a.dtype != index:  # type: ignore[attr-defined]
        return None
    distance = forms.minus(forms.form_of(cond.a), forms.form_of(cond.b))  # type: ignore[attr-defined]
    return forms.plus(distance, forms.constant(1)) if type(cond) is tir.Lt else distance


def _conjuncts(cond: tir.Expr) -> Iterator[tir.Expr]:
    if type(cond) is tir.BitAnd:
        yield from _conjuncts(cond.a)
        yield from _conjuncts(cond.b)
    else:
        yield cond


def _store(store: tir.Store, chunks: list[VectorValues]) -> tir.Stmt:
    if not any(chunks[0].moves(i) for i in store.indices):
        return shared_store(store, chunks)
    parts: list[tir.Stmt] = []
    for chunk in chunks:
        if chunk.lanes == 1:
            parts.append(fold.substitute(store, {chunk.var: chunk.base}))
            continue
        indices = chunk.place(store.buffer, store.indices)
        if indices[0].dtype.lanes == 1:
            raise CannotVectorize("several iterations store to one element")
        parts.append(tir.Store(store.buffer, indices, chunk.vector(store.value)))
    return fold.seq(*parts)
