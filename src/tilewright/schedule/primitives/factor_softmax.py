"""Cut a softmax and the sums it weights into blocks of keys: the online form, no recurrence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.copies import nest
from tilewright.schedule.dataflow import Outline, edited
from tilewright.schedule.handles import Names, fresh, names_of
from tilewright.schedule.nests import allocate, replace_buffer
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.reductions import Update, update_of
from tilewright.schedule.rounding import clamped, rounded_up
from tilewright.schedule.softmaxes import Softmax, softmax_around
from tilewright.tensor import ir as tir
from tilewright.tensor.build import combine, fold_identity, make_block
from tilewright.tensor.node import Node
from tilewright.tensor.regions import block_regions
from tilewright.tensor.visit import rewrite, substitute

__all__ = ["factor_softmax"]

S280 = Code("S280", "block `{block}` does not compute the powers of a softmax")
S281 = Code("S281", "block `{other}` of the softmax is not in loops of its own, as it was written")
S282 = Code("S282", "a block of {size} keys is too small")


@primitive
def factor_softmax(func: tir.Func, powers: tir.Block, size: int) -> Edit:
    """Take a softmax over blocks of `size` keys, each by its own greatest value, and combine them.

    A block of keys then needs nothing from the others: its scores live as long as it is worked on.
    What a block contributes is scaled by the power of its greatest value less that of all blocks,
    as in online softmax. The last block is filled up with logits of minus infinity. (A block's
    greatest value of minus infinity counts as the least number, so that a block which is masked as
    a whole adds powers of zero; a row that is masked as a whole is NaN as before.) Sums are taken
    in another order, so results differ by rounding.

    Before:  for k in range(n): M = max(M, X[k])
             for k in range(n): E[k] = exp(X[k] - M)
             for k in range(n): S += E[k] * V[k]
    After:   for t, k: M_part[t] = max(M_part[t], X[t * size + k])
             for t, k: E[t, k] = exp(X[t * size + k] - M_part[t])
             for t, k: S_part[t] += E[t, k] * V[t * size + k]
             for t: M = max(M, M_part[t])
             for t: M_weight[t] = exp(M_part[t] - M + (M - M))
             for t: S += M_weight[t] * S_part[t]
    Requires: S201 the block is not inside another block; S280 it computes exp(X - M) where M is the
        maximum of X along its last dimension, and all its readers are sums of the powers, each by
        itself or times something; S281 these blocks are in loops of their own; S282 a block of keys
        has at least one
    Example: s.factor_softmax("E", 128)
    """
    outline = Outline(func)
    outline.place(powers)
    found = softmax_around(outline, powers)
    if found is None or not _is_plain(found):
        facts = {"expected": "exp(X[…, k] - M[…]) with M[…] = max of X[…, :], and sums of it"}
        hint = "use it on the program as it was written"
        raise ScheduleError(S280, facts, program=func, marks={"block": powers}, hint=hint)
    if size < 1:
        hint = "give the number of keys that are worked on at a time"
        raise ScheduleError(S282, {"size": size}, program=func, hint=hint)
    _require_own_nests(outline, found)
    return _Factored(func, outline, found, size).edit()


def _is_plain(found: Softmax) -> bool:
    """Are keys the last dimension of all, taken as a whole?"""
    peak, powers = found.peak, found.powers
    order = tuple([it.var for it in peak.iters])
    update = update_of(peak)
    keys = powers.iters[-1].extent
    if update is None or type(update.value) is not tir.Load or update.value.indices != order:
        return False
    if found.logit.indices != tuple([it.var for it in powers.iters]):
        return False
    if update.indices != order[:-1] or not _reduces_last(peak, keys):
        return False
    logits = found.logits
    if type(logits.body) is not tir.Store or logits.init is not None:
        return False
    if logits.body.indices != tuple([it.var for it in logits.iters]):
        return False
    weights = powers.writes[0].buffer
    return all(_reduces_last(f, keys) and _has_keys_last(f, weights) for f in found.folds)


def _reduces_last(block: tir.Block, keys: tir.Expr) -> bool:
    kinds = [it.kind for it in block.iters]
    last = block.iters[-1]
    alone = kinds.count(tir.IterKind.REDUCE) == 1 and last.kind is tir.IterKind.REDUCE
    return alone and last.extent == keys and block.init is not None


def _has_keys_last(fold: tir.Block, weights: tir.Buffer) -> bool:
    """Is the weight that is read the one of the row and the key, and is the result plain?"""
    update = update_of(fold)
    assert update is not None
    load = _weight_in(update, weights)
    key = fold.iters[-1].var
    spatial = tuple([it.var for it in fold.iters[:-1]])
    row = load.indices[:-1]
    return (
        load.indices[-1] is key
        and row == spatial[: len(row)]
        and update.indices == spatial
        and type(fold.init) is tir.Store
    )


def _weight_in(update: Update, weights: tir.Buffer) -> tir.Load:
    value = update.value
    parts = (value.a, value.b) if type(value) is tir.Mul else (value,)
    return next(p for p in parts if type(p) is tir.Load and p.buffer is weights)


def _require_own_nests(outline: Outline, found: Softmax) -> None:
    for block in (found.logits, found.peak, found.powers, *found.folds):
        place = outline.place(block)
        loops = tuple([loop.var for loop in place.loops])
        alone = len(outline.inside(outline.top(place))) == 1
        plain = block.bindings == loops and block.predicate == tir.TRUE
        if not alone or not plain or block.writes[0].buffer.layout:
            hint = "factor first, then move blocks, change loops and layouts"
            facts = {"other": block.name}
            raise ScheduleError(S281, facts, program=outline.func, marks={"here": block}, hint=hint)


class _Factored:
    """The new nests."""

    def __init__(self, func: tir.Func, outline: Outline, found: Softmax, size: int) -> None:
        self.func, self.outline, self.found, self.size = func, outline, found, size
        self.names = Names(func, taken=set(names_of(func).taken))
        self.keys = found.powers.iters[-1].extent
        self.padded = rounded_up(self.keys, size)
        known = tir.int_value(self.padded)
        several = (self.keys + (size - 1)) // size
        self.blocks = several if known is None else tir.Const(known // size)
        self.peak = found.peak.writes[0].buffer
        self.rank = len(self.peak.shape)
        self.part = self._buffer(f"{self.peak.name}_part", self.peak)
        self.weight = self._buffer(f"{self.peak.name}_weight", self.peak)
        self.least = tir.const(float(np.finfo(self.peak.dtype.numpy).min), self.peak.dtype)

    def edit(self) -> Edit:
        """The program with all nests replaced."""
        found = self.found
        parts = [
            self._buffer(f"{buffer.name}_part", buffer)
            for buffer in [fold.writes[0].buffer for fold in found.folds]
        ]
        new: list[tuple[tir.Block, list[tir.Block]]] = [
            (found.logits, [self._logits()]),
            (found.peak, [self._peak_part()]),
            (found.powers, [self._powers()]),
        ]
        together = [self._peak(), self._weights()]
        for fold, part in zip(found.folds, parts, strict=True):
            new.append((fold, [self._fold_part(fold, part), *together, self._fold(fold, part)]))
            together = []
        changes = [
            (self.outline.top(self.outline.place(old)), self._nests(blocks)) for old, blocks in new
        ]
        logits, powers = found.logits.writes[0].buffer, found.powers.writes[0].buffer
        larger = {
            logits: logits.with_fields(shape=(*logits.shape[:-1], self.padded)),
            powers: powers.with_fields(
                shape=(*powers.shape[:-1], self.blocks, tir.Const(self.size))
            ),
        }
        func = replace_buffer(edited(self.func, *changes), larger)
        made = (self.part, *parts, self.weight)
        return Edit(allocate(func, *made), tuple([buffer.name for buffer in made]))

    def _buffer(self, wanted: str, like: tir.Buffer) -> tir.Buffer:
        """A buffer with a dimension for the blocks of keys, behind the rows."""
        name = fresh(self.names, wanted)
        self.names.taken.add(name)
        shape = (*like.shape[: self.rank], self.blocks, *like.shape[self.rank :])
        return tir.Buffer(name, shape, like.dtype)

    def _nests(self, blocks: Sequence[tir.Block]) -> list[tir.Stmt]:
        made: list[tir.Stmt] = []
        for block in blocks:
            stmt, loops = nest(self.names, block)
            self.names.taken.update(loops)
            made.append(stmt)
        return made

    def _logits(self) -> tir.Block:
        """The logits over whole blocks of keys, minus infinity behind the last key."""
        block = self.found.logits
        *rows, key = block.iters
        if key.extent == self.padded:
            return block
        assert type(block.body) is tir.Store
        inside = clamped(block.body, block.body.buffer, key, self.padded)
        assert type(inside) is tir.Store
        nothing = fold_identity(tir.Fold.MAX, inside.buffer.dtype)
        value = tir.Select(key.var < key.extent, inside.value, nothing)
        body = inside.with_fields(value=value)
        iters = (*rows, key.with_fields(extent=self.padded))
        reads, writes = block_regions(iters, body)
        return block.with_fields(iters=iters, reads=reads, writes=writes, body=body)

    def _bounded(self, peak: tir.Expr) -> tir.Expr:
        """A greatest value from which minus infinity can be subtracted."""
        return tir.Max(peak, self.least)

    def _power(self, value: tir.Expr) -> tir.Expr:
        call = self.found.powers.body.value  # type: ignore[attr-defined]
        assert type(call) is tir.Call
        return call.with_fields(args=(value,))

    def _powers(self) -> tir.Block:
        """The powers relative to the greatest value of their block of keys."""
        old = self.found.powers
        rows, block, key = self._split(old)
        iters = (*rows, block, key.with_fields(kind=tir.IterKind.SPATIAL))
        at = tuple([it.var for it in iters])
        logit = self.found.logit.with_fields(indices=(*at[:-2], self._position(block, key)))
        value = self._power(logit - self._bounded(tir.Load(self.part, at[:-1])))
        body = tir.Store(old.writes[0].buffer, at, value)
        return make_block(old.name, iters, at, body)

    def _position(self, block: tir.Iter, key: tir.Iter) -> tir.Expr:
        """A key among all keys."""
        return block.var * self.size + key.var

    def _split(self, block: tir.Block) -> tuple[list[tir.Iter], tir.Iter, tir.Iter]:
        """Iterators of a fold by blocks of keys: rows and columns, block, key in it."""
        spatial = [it.with_fields(var=tir.Var(it.var.name)) for it in block.iters[:-1]]
        name = block.iters[-1].var.name
        reduce = tir.IterKind.REDUCE
        return (
            spatial,
            tir.Iter(tir.Var(f"{name}_block"), self.blocks),
            tir.Iter(tir.Var(name), tir.Const(self.size), reduce),
        )

    def _partial(
        self, name: str, old: tir.Block, part: tir.Buffer, fold: tir.Fold, value: tir.Expr
    ) -> tir.Block:
        """`part[…, block, …] = fold(part[…], value)` over the keys of a block."""
        spatial, block, key = self._split(old)
        where: list[tir.Expr] = [it.var for it in spatial]
        where.insert(self.rank, block.var)
        at: dict[tir.Var, tir.Expr] = {
            o.var: n.var for o, n in zip(old.iters[:-1], spatial, strict=True)
        }
        at[old.iters[-1].var] = self._position(block, key)
        powers = self.found.powers.writes[0].buffer
        weight = tir.Load(powers, (*where[: self.rank + 1], key.var))

        def placed(node: Node) -> Node | None:
            return weight if type(node) is tir.Load and node.buffer is powers else None

        here = rewrite(substitute(value, at), placed)
        update = combine(fold, tir.Load(part, tuple(where)), here)
        body = tir.Store(part, tuple(where), update)
        init = tir.Store(part, tuple(where), fold_identity(fold, part.dtype))
        iters = (*spatial[: self.rank], block, *spatial[self.rank :], key)
        return make_block(name, iters, tuple([it.var for it in iters]), body, init)

    def _peak_part(self) -> tir.Block:
        update = update_of(self.found.peak)
        assert update is not None
        return self._partial(self.part.name, self.found.peak, self.part, tir.Fold.MAX, update.value)

    def _fold_part(self, fold: tir.Block, part: tir.Buffer) -> tir.Block:
        """The sum over one block of keys; what it multiplies with has no keys behind the last."""
        update, key = update_of(fold), fold.iters[-1]
        assert update is not None
        value = update.value
        if key.extent != self.padded:
            weights = self.found.powers.writes[0].buffer
            kept = tir.Store(weights, (), value)
            value = clamped(kept, weights, key, self.padded).value  # type: ignore[attr-defined]
        return self._partial(part.name, fold, part, tir.Fold.ADD, value)

    def _combined(
        self, old: tir.Block, fold: tir.Fold, value: Callable[[tuple[tir.Expr, ...]], tir.Expr]
    ) -> tir.Block:
        """The original result, folded over the blocks of keys."""
        spatial, block, _ = self._split(old)
        at = tuple([it.var for it in spatial])
        buffer = old.writes[0].buffer
        part = value((*at[: self.rank], block.var, *at[self.rank :]))
        body = tir.Store(buffer, at, combine(fold, tir.Load(buffer, at), part))
        init = tir.Store(buffer, at, fold_identity(fold, buffer.dtype))
        iters = (*spatial, block.with_fields(kind=tir.IterKind.REDUCE))
        return make_block(old.name, iters, tuple([it.var for it in iters]), body, init)

    def _peak(self) -> tir.Block:
        return self._combined(self.found.peak, tir.Fold.MAX, lambda at: tir.Load(self.part, at))

    def _weights(self) -> tir.Block:
        """What the contribution of each block of keys counts."""
        rows, block, _ = self._split(self.found.peak)
        iters = (*rows, block)
        at = tuple([it.var for it in iters])
        here, top = tir.Load(self.part, at), tir.Load(self.peak, at[:-1])
        # The last difference is NaN for a row without any key, and for infinite logits: such rows
        # have no softmax. Else it is zero.
        value = self._power(self._bounded(here) - self._bounded(top) + (top - top))
        return make_block(self.weight.name, iters, at, tir.Store(self.weight, at, value))

    def _fold(self, fold: tir.Block, part: tir.Buffer) -> tir.Block:
        def value(at: tuple[tir.Expr, ...]) -> tir.Expr:
            return tir.Load(self.weight, at[: self.rank + 1]) * tir.Load(part, at)

        return self._combined(fold, tir.Fold.ADD, value)
