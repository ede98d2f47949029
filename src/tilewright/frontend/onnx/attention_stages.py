"""Attention whose scores are a result as well: one stage after another, each of them a value."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.dtypes import boolean
from tilewright.graph import Builder, Value
from tilewright.graph.ops import computed_as
from tilewright.graph.ops.attend import Attend
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["in_stages"]


def in_stages(b: Builder, op: Attend, inputs: Sequence[Value], mode: int) -> tuple[Value, Value]:
    """What `Attend` gives, and what its scores are after a stage.

    Stages are 0, the scaled products of queries and keys; 1, the cap; 2, the masks; 3, softmax.
    """
    if mode not in range(4):
        raise ValueError(f"it gives the scores of stage {mode}")
    op.infer([value.type for value in inputs])  # what does not fit is refused as ever
    q, k, v, *masks = inputs
    stages = [_products(b, op, q, k)]
    stages.append(_capped(b, stages[0], op.softcap))
    stages.append(_masked(b, stages[1], op, masks))
    stages.append(_shares(b, stages[2]))
    y = _sums(b, op, stages[3], q, v)
    return y, b.map(lambda s: s, stages[mode], dtype=q.dtype)


def _letters(layout: str) -> str:
    """Heads as two dimensions: those of keys, and those of queries that share one of them."""
    return layout.replace("h", "gr")


def _grouped(b: Builder, x: Value, layout: str, shared: tir.Expr) -> Value:
    """The heads of queries in groups, one for each head of keys."""
    at = layout.index("h")
    heads, few = fixed(x.shape[at]), fixed(shared)
    group = heads // few if heads is not None and few else 1
    return b.reshape(x, (*x.shape[:at], shared, group, *x.shape[at + 1 :]))


def _products(b: Builder, op: Attend, q: Value, k: Value) -> Value:
    """[batch, head, query, key], in the type that is computed with."""
    layout, stored = op.layouts[:2]
    shared = k.shape[stored.index("h")]
    parts = _grouped(b, q, layout, shared)
    named = stored.replace("h", "g").replace("s", "t")
    dtype = computed_as(q.dtype)
    found = b.contract(_letters(layout), named, "bgrst", parts, k, dtype=dtype)
    heads = q.shape[layout.index("h")]
    whole = b.reshape(found, (found.shape[0], heads, *found.shape[3:]))
    return b.map(lambda s: s * op.scale, whole)


def _capped(b: Builder, scores: Value, cap: float | None) -> Value:
    if cap is None:
        return scores
    return b.map(lambda s: call("tanh", s * (1 / cap)) * cap, scores)


def _masked(b: Builder, scores: Value, op: Attend, masks: Sequence[Value]) -> Value:
    for mask in masks:
        if mask.dtype.is_bool:
            scores = b.map(lambda s, m: select(m, s, -math.inf), scores, mask)
        else:
            scores = b.map(lambda s, m: s + m.to(s.dtype), scores, mask, dtype=scores.dtype)
    if op.causal:
        shape = scores.shape[2:]
        seen = b.tabulate(shape, lambda i, j: j <= i + op.offset, boolean)
        scores = b.map(lambda s, m: select(m, s, -math.inf), scores, seen)
    return scores


def _shares(b: Builder, scores: Value) -> Value:
    """Softmax over keys; zero for queries that see none."""
    top = b.reduce(tir.Fold.MAX, scores, (3,))
    powers = b.map(
        lambda s, m: select(m.eq(-math.inf), 0.0, call("exp_bounded", s - m)), scores, top
    )
    total = b.reduce(tir.Fold.ADD, powers, (3,))
    return b.map(lambda e, s, m: select(m.eq(-math.inf), 0.0, e / s), powers, total, top)


def _sums(b: Builder, op: Attend, shares: Value, q: Value, v: Value) -> Value:
    """Values by their shares, stored like the queries."""
    stored, layout = op.layouts[2:]
    shared = v.shape[stored.index("h")]
    parts = _grouped(b, shares, "bhst", shared)
    named = stored.replace("h", "g").replace("s", "t")
    found = b.contract("bgrst", named, _letters(layout), parts, v, dtype=q.dtype)
    sizes = dict(zip(_letters(layout), found.shape, strict=True))
    sizes["h"] = shares.shape[1]
    return b.reshape(found, [sizes[c] for c in layout])
