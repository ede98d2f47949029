"""Leave out the tiles of a softmax that are masked as a whole."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import Ranges
from tilewright.schedule.dataflow import Outline, edited
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.reductions import Update, update_of
from tilewright.schedule.softmaxes import Softmax, is_masked_value, softmax_around
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import fold_identity
from tilewright.tensor.regions import block_regions
from tilewright.tensor.visit import free_vars, substitute, walk

__all__ = ["skip_masked"]

S283 = Code("S283", "block `{block}` does not compute the powers of a softmax with a mask")
S284 = Code("S284", "tiles of {keys} keys and {queries} queries are not tiles")


@primitive
def skip_masked(func: tir.Func, powers: tir.Block, keys: int, queries: int = 1) -> Edit:
    """Compute nothing for tiles of keys and queries of which a mask leaves no element.

    The mask is a condition on indices in the logits: keys below an end that rises with the queries,
    or does not depend on them. The condition for a tile as a whole is written into every stage
    that works on keys: folds keep what they have, logits are minus infinity, powers are zero, as
    they would be anyhow. Where a loop runs over such tiles, lowering ends it at the first masked
    one. (What would be multiplied by zero is not looked at: infinities and NaN there are lost.)

    Before:  for k: X[k] = A[k] if k <= q else -inf
             for k: E[k] = exp(X[k] - max(M, -1e38))
             for k: S = S + E[k] * V[k]
    After:   for k: X[k] = (A[k] if k <= q else -inf) if k // 6 * 6 <= q // 8 * 8 + 7 else -inf
             for k: E[k] = exp(X[k] - max(M, -1e38)) if k // 6 * 6 <= q // 8 * 8 + 7 else 0
             for k: S = S + E[k] * V[k] if k // 6 * 6 <= q // 8 * 8 + 7 else S
                                                              (keys = 6, queries = 8)
    Requires: S201 the block is not inside another block; S283 it computes exp(X - M) with logits X
        that are minus infinity unless such conditions hold, and a bounded M as `factor_softmax`
        makes it; S284 tiles have at least one key and one query
    Example: s.skip_masked("E", 6, 32)
    """
    outline = Outline(func)
    outline.place(powers)
    if keys < 1 or queries < 1:
        hint = "give the sizes of the tiles that are worked on at a time"
        raise ScheduleError(S284, {"keys": keys, "queries": queries}, program=func, hint=hint)
    found = softmax_around(outline, powers)
    condition = None if found is None else _tile_condition(found, keys, queries)
    if found is None or condition is None or not _is_bounded(powers):
        facts = {"expected": "X[…, k] = … if k <= limit else -inf"}
        hint = "use `factor_softmax` first; a mask that is read from memory cannot be skipped"
        raise ScheduleError(S283, facts, program=func, marks={"block": powers}, hint=hint)
    changes = [(block, (new,)) for block, new in _skipping(outline, found, condition)]
    return Edit(edited(func, *changes))


def _is_bounded(powers: tir.Block) -> bool:
    """Does it subtract something that is never minus infinity?"""
    difference = powers.body.value.args[0]  # type: ignore[attr-defined]
    return type(difference.b) is tir.Max and type(difference.b.b) is tir.Const


def _tile_condition(found: Softmax, keys: int, queries: int) -> tir.Expr | None:
    """When a tile has an element that is not masked, in terms of the iterators of the logits."""
    *_, query, key = [it.var for it in found.logits.iters]
    at: dict[tir.Var, tir.Expr] = {
        key: key // keys * keys,
        query: query // queries * queries + (queries - 1),
    }
    store = found.logits.body
    assert type(store) is tir.Store
    result: tir.Expr | None = None
    for condition in _conditions(store.value):
        if _ends_keys(condition, key, query):
            weaker = substitute(condition, at)
            result = weaker if result is None else result & weaker
    return result


def _conditions(value: tir.Expr) -> list[tir.Expr]:
    """Conditions without which the value is minus infinity."""
    found: list[tir.Expr] = []
    while type(value) is tir.Select and is_masked_value(value.if_false):
        found.append(value.cond)
        value = value.if_true
    return found


def _ends_keys(condition: tir.Expr, key: tir.Var, query: tir.Var) -> bool:
    """Does it hold for keys below an end which never falls as queries rise?"""
    if type(condition) not in (tir.Lt, tir.Le):
        return False
    assert isinstance(condition, tir.Compare)
    if condition.a is not key or any(type(part) is tir.Load for part in walk(condition)):
        return False
    end = condition.b
    if key in free_vars(end):
        return False
    step = Analyzer().simplify(substitute(end, {query: query + 1}) - end)
    return tir.int_value(step) in (0, 1)


def _skipping(
    outline: Outline, found: Softmax, condition: tir.Expr
) -> list[tuple[tir.Block, tir.Block]]:
    """Each block with its new form."""
    logits, powers = found.logits, found.powers
    nothing = fold_identity(tir.Fold.MAX, logits.writes[0].buffer.dtype)
    zero = tir.const(0, powers.writes[0].buffer.dtype)
    made = [
        (logits, _changed(logits, _index(logits), found, condition, nothing)),
        (powers, _changed(powers, found.logit.indices, found, condition, zero)),
    ]
    for fold in (found.peak, *found.folds):
        update = update_of(fold)
        assert update is not None
        own = tir.Load(update.buffer, update.indices)
        made.append((fold, _changed(fold, _logit_of(update, found), found, condition, own)))
    for scores in _scores(outline, logits):
        update = update_of(scores)
        assert update is not None
        own = tir.Load(update.buffer, update.indices)
        made.append((scores, _changed(scores, update.indices, found, condition, own)))
    return made


def _logit_of(update: Update, found: Softmax) -> tuple[tir.Expr, ...]:
    """Which logit an element that is folded is, or is the power of."""
    logits, powers = found.logits.writes[0].buffer, found.powers.writes[0].buffer
    for load in walk(update.value):
        if type(load) is tir.Load and load.buffer is logits:
            return load.indices
        if type(load) is tir.Load and load.buffer is powers:
            at = {it.var: i for it, i in zip(found.powers.iters, load.indices, strict=True)}
            return tuple([substitute(index, at) for index in found.logit.indices])
    raise AssertionError("a fold of a softmax reads logits or powers")


def _index(block: tir.Block) -> tuple[tir.Expr, ...]:
    assert type(block.body) is tir.Store
    return block.body.indices


def _scores(outline: Outline, logits: tir.Block) -> list[tir.Block]:
    """Sums that only the logits read, element by element: nobody misses them where it is masked."""
    assert type(logits.body) is tir.Store
    found: list[tir.Block] = []
    for load in walk(logits.body.value):
        if type(load) is not tir.Load or load.indices != logits.body.indices:
            continue
        writers, readers = outline.writers(load.buffer), outline.readers(load.buffer)
        if len(writers) != 1 or len(readers) != 1 or load.buffer in outline.func.params:
            continue
        update = update_of(writers[0].block)
        if update is not None and writers[0].block.init is not None:
            found.append(writers[0].block)
    return found


def _changed(
    block: tir.Block,
    element: tuple[tir.Expr, ...],
    found: Softmax,
    condition: tir.Expr,
    otherwise: tir.Expr,
) -> tir.Block:
    """A block that does its work only for elements of tiles that are not masked."""
    assert type(block.body) is tir.Store
    at = {it.var: index for it, index in zip(found.logits.iters, element, strict=True)}
    here = Ranges.of_block(block).analyzer.simplify(substitute(condition, at))
    body = block.body.with_fields(value=tir.Select(here, block.body.value, otherwise))
    reads, writes = block_regions(block.iters, body, block.init)
    return block.with_fields(body=body, reads=reads, writes=writes)
