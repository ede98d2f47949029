"""A softmax and the sums that it weights, recognised by structure.

    peak   = max of logits along the last dimension     (or of a part of it)
    powers = exp(logits - peak)
    folds  = Σ powers · …                                (each reader of the powers)

`factor_softmax` cuts such a chain into blocks of keys, `skip_masked` leaves out what is masked.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.schedule.dataflow import Outline
from tilewright.schedule.reductions import update_of
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import walk

__all__ = ["POWERS", "Softmax", "is_masked_value", "softmax_around"]

POWERS = ("exp", "exp_bounded")
"""Functions whose value at minus infinity is zero."""


@dataclass(frozen=True, eq=False)
class Softmax:
    """The blocks of a softmax, and the element of the logits that a power is made of."""

    logits: tir.Block
    peak: tir.Block
    powers: tir.Block
    folds: tuple[tir.Block, ...]
    logit: tir.Load


def softmax_around(outline: Outline, powers: tir.Block) -> Softmax | None:
    """The softmax whose powers the block computes; None if it is no such block."""
    argument = _argument(powers)
    if argument is None or any(it.kind is tir.IterKind.REDUCE for it in powers.iters):
        return None
    load, peak = argument
    if powers.body.indices != tuple([it.var for it in powers.iters]):  # type: ignore[attr-defined]
        return None
    logits_block, peak_block = _writer(outline, load.buffer), _writer(outline, peak.buffer)
    if logits_block is None or peak_block is None:
        return None
    folds = tuple([p.block for p in outline.readers(powers.writes[0].buffer)])
    if not folds or not all(_is_weighted_sum(f, powers.writes[0].buffer) for f in folds):
        return None
    update = update_of(peak_block)
    if update is None or update.fold is not tir.Fold.MAX or type(update.value) is not tir.Load:
        return None
    if update.value.buffer is not load.buffer or len(outline.readers(load.buffer)) != 2:
        return None
    return Softmax(logits_block, peak_block, powers, folds, load)


def _argument(powers: tir.Block) -> tuple[tir.Load, tir.Load] | None:
    """(logit, peak) in `exp(logit - peak)`, where the peak may have a lower bound."""
    value = powers.body.value if type(powers.body) is tir.Store else None
    if type(value) is not tir.Call or value.name not in POWERS:
        return None
    difference = value.args[0]
    if type(difference) is not tir.Sub or type(difference.a) is not tir.Load:
        return None
    peak = difference.b
    if type(peak) is tir.Max and type(peak.b) is tir.Const:
        peak = peak.a
    return (difference.a, peak) if type(peak) is tir.Load else None


def _writer(outline: Outline, buffer: tir.Buffer) -> tir.Block | None:
    """The only block that writes an intermediate buffer."""
    writers = outline.writers(buffer)
    is_param = any(buffer is p for p in outline.func.params)
    return writers[0].block if len(writers) == 1 and not is_param else None


def _is_weighted_sum(block: tir.Block, weights: tir.Buffer) -> bool:
    """`sum += weight`, or `sum += weight · other`."""
    update = update_of(block)
    if update is None or update.fold is not tir.Fold.ADD or block.predicate != tir.TRUE:
        return False
    value = update.value
    parts = (value.a, value.b) if type(value) is tir.Mul else (value,)
    own = [p for p in parts if type(p) is tir.Load and p.buffer is weights]
    reads = [n for n in walk(value) if type(n) is tir.Load and n.buffer is weights]
    return len(own) == 1 and len(reads) == 1


def is_masked_value(value: tir.Expr) -> bool:
    """Is it minus infinity, which takes part in no softmax?"""
    return type(value) is tir.Const and value.value == float("-inf")
