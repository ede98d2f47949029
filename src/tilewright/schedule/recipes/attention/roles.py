"""Who is who in attention, told by structure: two products with a softmax between them.

    scores = left · right        (a contraction)
    logits = f(scores)           (element by element: scale, masks)
    peak   = max of logits over the keys
    powers = exp(logits - peak)
    total  = Σ powers
    sums   = powers · values     (a contraction over the keys)
    result = g(sums, total)      (element by element)

All of them run along the same leading dimensions (the batch), then queries, then keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.schedule.handles import names_of
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import (
    Contraction,
    Kind,
    contraction,
    folding,
    kind_of,
    loads_of,
)

__all__ = ["Attention", "attention_of", "attentions"]

_POWERS = ("exp", "exp_bounded")


@dataclass(frozen=True)
class Attention:
    """Names of the blocks by role, the two products, and the number of batch dimensions."""

    scores: str
    logits: str
    peak: str
    powers: str
    total: str
    sums: str
    result: str
    first: Contraction
    second: Contraction
    batch: int

    @property
    def blocks(self) -> tuple[str, ...]:
        """All of them in the order of their roles, the second product and the result last."""
        names = (self.scores, self.logits, self.peak, self.powers, self.total)
        return (*names, self.sums, self.result)


def attention_of(schedule: Schedule, sums: str) -> Attention | None:
    """The attention whose second product the block is."""
    return _from_sums(schedule, schedule.block(sums))


def attentions(schedule: Schedule) -> list[Attention]:
    """Every attention of the program, in order."""
    found = [_from_sums(schedule, block) for block in names_of(schedule.func).blocks.values()]
    return [one for one in found if one is not None]


def _from_sums(schedule: Schedule, block: tir.Block) -> Attention | None:
    """The attention whose second product the block is."""
    second = contraction(block)
    if second is None or len(second.reduce) != 1 or len(second.rows) != 1:
        return None
    powers = _sole_writer(schedule, second.left.buffer)
    difference = None if powers is None else _power_of(powers)
    if powers is None or difference is None:
        return None
    logits = _sole_writer(schedule, difference[0].buffer)
    peak = _sole_writer(schedule, difference[1].buffer)
    if logits is None or peak is None or kind_of(logits) is not Kind.ELEMENTWISE:
        return None
    readers = [b for b in _readers(schedule, powers) if b is not block]
    results = _readers(schedule, block)
    if len(readers) != 1 or len(results) != 1 or len(_readers(schedule, logits)) != 2:
        return None
    (total,), (result,) = readers, results
    if not _folds(peak, tir.Fold.MAX, logits) or not _folds(total, tir.Fold.ADD, powers):
        return None
    if _readers(schedule, total) != [result] or kind_of(result) is not Kind.ELEMENTWISE:
        return None
    scores = _scores_of(schedule, logits)
    first = None if scores is None else contraction(scores)
    if scores is None or first is None or len(first.reduce) != 1:
        return None
    batch = len(powers.iters) - 2
    blocks = (scores, logits, peak, powers, total, block)
    if not all(_is_aligned(b, powers, batch) for b in blocks):
        return None
    return Attention(
        scores.name,
        logits.name,
        peak.name,
        powers.name,
        total.name,
        block.name,
        result.name,
        first,
        second,
        batch,
    )


def _sole_writer(schedule: Schedule, buffer: tir.Buffer) -> tir.Block | None:
    if buffer in schedule.func.params:
        return None
    blocks = names_of(schedule.func).blocks.values()
    writers = [b for b in blocks if any(r.buffer is buffer for r in b.writes)]
    return writers[0] if len(writers) == 1 else None


def _readers(schedule: Schedule, block: tir.Block) -> list[tir.Block]:
    buffer = block.writes[0].buffer
    if buffer in schedule.func.params:
        return []
    blocks = names_of(schedule.func).blocks.values()
    return [b for b in blocks if any(r.buffer is buffer for r in b.reads)]


def _power_of(block: tir.Block) -> tuple[tir.Load, tir.Load] | None:
    """The two elements whose difference the block takes a power of."""
    value = block.body.value if isinstance(block.body, tir.Store) else None
    if not isinstance(value, tir.Call) or value.name not in _POWERS:
        return None
    (argument,) = value.args
    if not isinstance(argument, tir.Sub):
        return None
    if not isinstance(argument.a, tir.Load) or not isinstance(argument.b, tir.Load):
        return None
    return argument.a, argument.b


def _folds(block: tir.Block, fold: tir.Fold, of: tir.Block) -> bool:
    """Whether the block folds the result of another along its last dimension."""
    found = folding(block)
    if found is None or found.fold is not fold or not isinstance(found.value, tir.Load):
        return False
    order = tuple([it.var for it in block.iters])
    plain = found.value.buffer is of.writes[0].buffer and found.value.indices == order
    return plain and [it.kind for it in block.iters].count(tir.IterKind.REDUCE) == 1


def _scores_of(schedule: Schedule, logits: tir.Block) -> tir.Block | None:
    """The contraction that alone feeds the logits, read once, element by element."""
    order = tuple([it.var for it in logits.iters])
    for load in loads_of(logits):
        writer = _sole_writer(schedule, load.buffer)
        if writer is not None and contraction(writer) is not None and load.indices == order:
            uses = [r for r in loads_of(logits) if r.buffer is load.buffer]
            alone = len(uses) == 1 and _readers(schedule, writer) == [logits]
            return writer if alone else None
    return None


def _is_aligned(block: tir.Block, like: tir.Block, batch: int) -> bool:
    """Whether the result is indexed by the spatial iterators in order: batch, queries, …"""
    spatial = [it for it in block.iters if it.kind is tir.IterKind.SPATIAL]
    store = block.body
    if not isinstance(store, tir.Store) or batch < 0 or len(spatial) <= batch:
        return False
    same = [a.extent == b.extent for a, b in zip(spatial, like.iters[: batch + 1], strict=False)]
    return store.indices == tuple([it.var for it in spatial]) and all(same)
