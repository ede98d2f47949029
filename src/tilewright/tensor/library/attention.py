"""Attention: a weighted sum of values, the weights a softmax of products of queries and keys.

    out[b, h, q, :] = softmax(scale · Q[b, h, q, :]·K[b, g, :, :]ᵀ + mask) · V[b, g, :, :]

Several heads may share one head of keys and values (g = h // (heads of Q / heads of K)). The stages
are stated one by one; that they run together, a block of keys at a time, is up to the schedule.
A row of which every key is masked has no softmax: its result is NaN, as 0 / 0 is, or zero if that
is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tilewright.dtypes import f32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    Tensor,
    call,
    compute,
    func,
    max_over,
    placeholder,
    reduce_axis,
    select,
    sum_over,
)
from tilewright.tensor.library.dims import Dim, with_names

__all__ = ["Guard", "attend", "attention"]

Masks = Tensor | Sequence[Tensor] | None

Guard = Literal["masked", "nan"]
"""Rows of which every key is masked (their greatest logit is minus infinity), or all that have no
softmax, also because there is NaN among the operands."""


@dataclass(frozen=True)
class _Heads:
    """A tensor seen as [batch, head, position, feature], however it is stored.

    The layout names its dimensions: `b`, `h`, `s` and `d` in any order, and digits for dimensions
    of which one index is taken: "bs2hd" are the values in a tensor of queries, keys and values.
    """

    tensor: Tensor
    layout: str

    def __post_init__(self) -> None:
        named = sorted(c for c in self.layout if not c.isdigit())
        if named != sorted("bhsd") or len(self.layout) != len(self.tensor.shape):
            name, rank = self.tensor.buffer.name, len(self.tensor.shape)
            raise ValueError(
                f'the layout "{self.layout}" does not name the {rank} dimensions of `{name}`'
            )

    def extent(self, dim: str) -> tir.Expr:
        return self.tensor.shape[self.layout.index(dim)]

    def at(self, *where: tir.Expr) -> tir.Expr:
        """The element at (batch, head, position, feature), in the type that is computed with."""
        named = dict(zip("bhsd", where, strict=True))
        return self.tensor[tuple(named[c] if c in named else int(c) for c in self.layout)]


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Masks = None,
    *,
    scale: float | None = None,
    causal: bool = False,
    offset: Dim = 0,
    softcap: float | None = None,
    layouts: tuple[str, str, str, str] = ("bhsd", "bhsd", "bhsd", "bhsd"),
    guard: Guard | None = None,
    name: str = "attention",
) -> Tensor:
    """The result of attention, stored like `layouts[3]`; the others are those of the operands.

    A mask is added to the scores, or if it is boolean says which keys take part; it has the shape
    of the scores [batch, head, query, key] or one that can be broadcast to it, and there may be
    several. `causal` leaves out keys behind query + `offset`. `scale` is 1/√d if it is not given.
    `guard` says which rows are zero instead of NaN.
    """
    q, k, v = (_Heads(t, f) for t, f in zip((queries, keys, values), layouts[:3], strict=True))
    sizes = (q.extent("b"), q.extent("h"), q.extent("s"), k.extent("s"))
    group = _group(q.extent("h"), k.extent("h"))
    factor = 1 / math.sqrt(_number(q.extent("d"))) if scale is None else scale
    masks = [mask] if isinstance(mask, Tensor) else list(mask or ())

    def score(b: tir.Expr, h: tir.Expr, i: tir.Expr, j: tir.Expr) -> object:
        return sum_over(q.at(b, h, i, d) * k.at(b, _shared(h, group), j, d), d)

    d = reduce_axis(q.extent("d"), "d")
    scores = compute(f"{name}_scores", sizes, with_names("bhqk", score))  # type: ignore[arg-type]

    def logit(b: tir.Expr, h: tir.Expr, i: tir.Expr, j: tir.Expr) -> tir.Expr:
        value = scores[b, h, i, j]
        value = value if factor == 1 else value * factor
        if softcap is not None:
            value = call("tanh", value * (1 / softcap)) * softcap
        for part in masks:
            value = _masked(value, part, (b, h, i, j), sizes)
        return select(j <= i + offset, value, -math.inf) if causal else value

    logits = compute(f"{name}_logits", sizes, with_names("bhqk", logit))
    top, row, norm = reduce_axis(sizes[3], "k"), sizes[:3], reduce_axis(sizes[3], "k")
    greatest = compute(
        f"{name}_max", row, with_names("bhq", lambda b, h, i: max_over(logits[b, h, i, top], top))
    )
    powers = compute(
        f"{name}_powers",
        sizes,
        with_names(
            "bhqk", lambda b, h, i, j: call("exp_bounded", logits[b, h, i, j] - greatest[b, h, i])
        ),
    )
    total = compute(
        f"{name}_total",
        row,
        with_names("bhq", lambda b, h, i: sum_over(powers[b, h, i, norm], norm)),
    )
    r = reduce_axis(sizes[3], "k")
    sums = compute(
        f"{name}_sums",
        (*row, v.extent("d")),
        with_names(
            "bhqe",
            lambda b, h, i, e: sum_over(powers[b, h, i, r] * v.at(b, _shared(h, group), r, e), r),
        ),
    )

    def missing(*at: tir.Expr) -> tir.Expr | None:
        if guard is None:
            return None
        return greatest[at].eq(-math.inf) if guard == "masked" else total[at].ne(total[at])

    return _result(name, sums, total, missing, layouts[3], queries)


def _result(
    name: str,
    sums: Tensor,
    total: Tensor,
    missing: Callable[..., tir.Expr | None],
    layout: str,
    like: Tensor,
) -> Tensor:
    """Sums over totals, in the wanted order of dimensions; zero for rows that are `missing`."""
    order = ["bhsd".index(c) for c in layout]

    def value(*where: tir.Expr) -> tir.Expr:
        at = [where[order.index(n)] for n in range(4)]
        found = 1.0 / total[tuple(at[:3])] * sums[tuple(at)]
        hidden = missing(*at[:3])
        return (found if hidden is None else select(hidden, 0.0, found)).to(like.dtype)

    shape = [sums.shape[n] for n in order]
    return compute(name, shape, with_names(["bhqe"[n] for n in order], value), like.dtype)


def _group(heads: tir.Expr, shared: tir.Expr) -> int:
    """How many heads share a head of keys and values."""
    if heads == shared:
        return 1
    many, few = _number(heads), _number(shared)
    if few < 1 or many % few:
        raise ValueError(f"{many} heads of queries cannot share {few} heads of keys")
    return many // few


def _number(size: tir.Expr) -> int:
    known = tir.int_value(size)
    if known is None:
        raise ValueError("the numbers of heads and features must be known")
    return known


def _shared(head: tir.Expr, group: int) -> tir.Expr:
    return head if group == 1 else head // group


def _masked(
    value: tir.Expr, mask: Tensor, where: tuple[tir.Expr, ...], sizes: tuple[tir.Expr, ...]
) -> tir.Expr:
    """A score with one mask; its dimensions are aligned at the end, those of extent 1 repeat.

    Symbolic ones are what they should be: whoever calls sees to that.
    """
    rank = len(mask.shape)
    if rank > len(where):
        raise ValueError(f"the mask `{mask.buffer.name}` has more than four dimensions")
    at: list[tir.Expr] = []
    skipped = len(where) - rank
    for index, have, want in zip(where[skipped:], mask.shape, sizes[skipped:], strict=True):
        repeats = tir.int_value(have) == 1
        is_known = tir.int_value(have) is not None and tir.int_value(want) is not None
        if is_known and not repeats and have != want:
            raise ValueError(
                f"the mask `{mask.buffer.name}` has a dimension of {have} in place of {want}"
            )
        at.append(tir.Const(0) if repeats else index)
    element = mask[tuple(at)]
    if element.dtype.is_bool:
        return select(element, value, -math.inf)
    return value + element.to(value.dtype)


def attention(
    batch: Dim,
    heads: int,
    queries: Dim,
    keys: Dim,
    features: int,
    *,
    shared_heads: int | None = None,
    value_features: int | None = None,
    causal: bool = False,
) -> tir.Func:
    """Attention on plain tensors [batch, head, position, feature]."""
    few = shared_heads or heads
    q = placeholder("Q", (batch, heads, queries, features), f32)
    k = placeholder("K", (batch, few, keys, features), f32)
    v = placeholder("V", (batch, few, keys, value_features or features), f32)
    return func("attention", [q, k, v], [attend(q, k, v, causal=causal, name="Y")])
