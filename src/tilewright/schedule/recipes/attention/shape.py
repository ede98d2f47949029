"""Attention in numbers: all that its space and its costs depend on."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.schedule.recipes.attention.roles import Attention
from tilewright.schedule.recipes.context import PLANNED_THREADS, Context
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Contraction
from tilewright.tensor.visit import walk

__all__ = ["AttentionShape", "attention_shape"]

# What a symbolic number of features is taken for.
_TYPICAL_FEATURES = 64


@dataclass(frozen=True)
class AttentionShape:
    """Extents, element size, and how keys lie in memory; a symbolic number is None."""

    batch: int | None
    """Heads of all batches; 0 if there is no such dimension."""
    queries: int | None
    keys: int | None
    features: int
    value_features: int
    element_bytes: int
    causal: bool
    """Whether a condition on the indices of keys and queries hides logits."""
    threads: int
    """Threads that the work is divided by."""
    group: int = 1
    """Heads of queries that share a head of keys."""
    pitch_bytes: int = 0
    """From one key of a head to the next, where something else lies between them; else 0."""
    shared_by: int = 1
    """Threads that may come to share it, and should then be about equally busy."""


def attention_shape(context: Context, attention: Attention) -> AttentionShape:
    """The shape of one attention."""
    second, first = attention.second.block, attention.first
    extents = [tir.int_value(it.extent) for it in second.iters]
    batch = extents[: attention.batch]
    known = None if None in batch else prod(e or 1 for e in batch)
    return AttentionShape(
        batch=known if batch else 0,
        queries=extents[attention.batch],
        keys=extents[-1],
        features=tir.int_value(first.block.iters[first.reduce[0]].extent) or _TYPICAL_FEATURES,
        value_features=extents[-2] or _TYPICAL_FEATURES,
        element_bytes=second.writes[0].buffer.dtype.size_bytes,
        causal=_is_causal(context, attention),
        threads=min(context.threads, PLANNED_THREADS),
        group=_group(attention),
        pitch_bytes=_pitch(attention),
        shared_by=context.threads,
    )


def _is_causal(context: Context, attention: Attention) -> bool:
    logits = context.schedule.block(attention.logits)
    variables = {it.var for it in logits.iters[attention.batch :]}
    return any(
        isinstance(part, tir.Compare) and part.a in variables and not _has_load(part)
        for part in walk(logits.body)
    )


def _has_load(expr: tir.Expr) -> bool:
    return any(isinstance(part, tir.Load) for part in walk(expr))


def _group(attention: Attention) -> int:
    """How many heads share a head of keys, which are indexed by `head // group`."""
    first = attention.first
    head = first.block.iters[attention.batch - 1] if attention.batch else None
    for index in first.right.indices:
        if isinstance(index, tir.FloorDiv) and head is not None and index.a is head.var:
            return tir.int_value(index.b) or 1
    return 1


def _pitch(attention: Attention) -> int:
    """Bytes from one key or value to the next, the farther of both; 0 if they follow each other."""
    first, second = attention.first, attention.second
    return max(
        _distance(first, attention.batch + 1, first.reduce[0]),
        _distance(second, second.reduce[0], second.columns[-1]),
    )


def _distance(product: Contraction, position: int, feature: int) -> int:
    load, iters = product.right, product.block.iters
    sizes = [tir.int_value(dim) for dim in load.buffer.shape]
    dims = [d for d, size in enumerate(sizes) if size != 1]
    if [load.indices[d] for d in dims[-2:]] == [iters[position].var, iters[feature].var]:
        return 0
    found = [d for d, index in enumerate(load.indices) if index is iters[position].var]
    inside = sizes[found[0] + 1 :] if found else [None]
    return 0 if None in inside else prod(s or 1 for s in inside) * load.buffer.dtype.size_bytes
