"""`Attend`: scaled dot-product attention over heads.

    out[b, h, i, :] = softmax(cap(scale · q[b, h, i, :]·k[b, g, :, :]ᵀ) + masks) · v[b, g, :, :]

Several heads of queries may share one head of keys and values (g = h // (heads of q / heads of k)).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.errors import Code, GraphError
from tilewright.graph.ir import Array, Shape, TensorType
from tilewright.graph.ops.map import broadcast_meetings
from tilewright.graph.ops.op import Op, Role, SizeOf
from tilewright.graph.sizes import dims_equal, fixed, never_exceeds
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor
from tilewright.tensor.library.attention import Guard, attend
from tilewright.tensor.printer import print_node

__all__ = ["Attend"]

G050 = Code("G050", "attention of {queries}, {keys} and {values}: {problem}")
G051 = Code("G051", "a mask of shape [{mask}] does not fit scores of shape [{scores}]")


ZERO: Final = tir.Const(0)


@dataclass(frozen=True)
class Attend(Op):
    """Attention; inputs are queries, keys, values, then masks.

    A mask is added to the scores, or if it is bool says which keys take part.

    A layout names the dimensions of an operand, or of the result (the last one): `b`, `h`, `s` and
    `d` in any order, and a digit for a dimension of which one index is taken ("bs2hd" are the
    values in a tensor of queries, keys and values). Masks have the shape [batch, heads, queries,
    keys] or one that broadcasts to it. `causal`: query i sees the keys up to i + `offset`. A query
    that sees none of its keys has no softmax: its result is NaN, or zero if `guarded` says
    "masked"; "nan" makes those zero as well that have none because of NaN. Without keys it is zero.
    """

    role = Role.ALONE
    layouts: tuple[str, str, str, str]
    scale: float
    causal: bool = False
    offset: tir.Expr = ZERO
    softcap: float | None = None
    guarded: Guard | None = None

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        q, k, v = self._operands(inputs)
        heads, shared = fixed(q["h"]), fixed(k["h"])
        problem = ""
        if _differ(k["h"], v["h"]) or _differ(k["s"], v["s"]):
            problem = "keys and values differ in number"
        elif _differ(q["b"], k["b"]) or _differ(q["b"], v["b"]) or _differ(k["b"], v["b"]):
            problem = "batches differ"
        elif fixed(q["d"]) is None or _differ(q["d"], k["d"]):
            problem = "queries and keys differ in features"
        elif not all(t.dtype.is_float for t in inputs[:3]):
            problem = "queries, keys and values are floats"
        elif not dims_equal(q["h"], k["h"]) and (not heads or not shared or heads % shared):
            problem = "the heads of queries are no multiple of those of keys"
        if problem:
            shown = dict(zip(("queries", "keys", "values"), map(str, inputs[:3]), strict=True))
            hint = f"the layouts {', '.join(self.layouts[:3])} name their dimensions"
            raise GraphError(G050, {**shown, "problem": problem}, hint=hint)
        for mask in inputs[3:]:
            _require_mask(mask.shape, _scores(q, k))
        result = {**q, "d": v["d"]}
        return [TensorType(inputs[0].dtype, tuple(result[c] for c in self.layouts[3]))]

    def assumptions(
        self,
        inputs: Sequence[TensorType],
        outputs: Sequence[TensorType],
    ) -> Iterator[tuple[tir.Expr, tir.Expr]]:
        q, k, v = self._operands(inputs)
        yield from ((k["h"], v["h"]), (k["s"], v["s"]), (q["b"], k["b"]), (q["b"], v["b"]))
        yield q["d"], k["d"]

    def meetings(
        self,
        inputs: Sequence[TensorType],
        outputs: Sequence[TensorType],
    ) -> Iterator[tuple[tir.Expr, tir.Expr]]:
        q, k, _ = self._operands(inputs)
        for mask in inputs[3:]:
            yield from broadcast_meetings(mask.shape, _scores(q, k))

    def doubtful(self, inputs: Sequence[TensorType]) -> Shape:
        """The number of keys, if it may be zero though there is a result, which is zero then."""
        keys, (result,) = self._operands(inputs)[1]["s"], self.infer(inputs)
        if fixed(keys) == 0:
            return (keys,)
        sees = self.guarded is not None or never_exceeds(tir.Const(1), keys, result.shape)
        return () if sees else (keys,)

    def _operands(self, inputs: Sequence[TensorType]) -> list[dict[str, tir.Expr]]:
        """The dimensions of queries, keys and values by name."""
        return [_named(t.shape, f) for t, f in zip(inputs[:3], self.layouts[:3], strict=True)]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        pairs = zip(arrays[:3], self.layouts[:3], strict=True)
        q, k, v = (_heads_first(array, layout).astype(np.float64) for array, layout in pairs)
        group = q.shape[1] // max(k.shape[1], 1)
        k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
        scores = np.einsum("bhid,bhjd->bhij", q, k, optimize=True) * self.scale
        if self.softcap is not None:
            scores = np.tanh(scores / self.softcap) * self.softcap
        for mask in arrays[3:]:
            if mask.dtype == np.bool_:
                scores = np.where(mask, scores, -np.inf)
            else:
                scores = scores + mask.astype(np.float64)
        if self.causal:
            i, j = np.ogrid[: scores.shape[2], : scores.shape[3]]
            scores = np.where(j <= i + size_of(self.offset), scores, -np.inf)
        with np.errstate(all="ignore"):
            greatest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
            powers = np.exp(scores - greatest)
            total = powers.sum(axis=-1, keepdims=True)
            weights = powers / total
            if self.guarded is not None:
                masked = np.isneginf(greatest)
                weights = np.where(
                    masked if self.guarded == "masked" else np.isnan(total), 0, weights
                )
            found = np.einsum("bhij,bhjd->bhid", weights, v, optimize=True)
        return [np.einsum(f"bhsd->{self.layouts[3]}", found).astype(arrays[0].dtype)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        q, k, v, *masks = inputs
        result = attend(
            q,
            k,
            v,
            masks,
            scale=self.scale,
            causal=self.causal,
            offset=self.offset,
            softcap=self.softcap,
            layouts=self.layouts,
            guard=self.guarded,
            name=names[0],
        )
        return [result]

    def attributes(self) -> dict[str, object]:
        shown: dict[str, object] = {"layouts": self.layouts, "scale": f"{self.scale:g}"}
        if self.causal:
            shown["causal"] = self.offset
        if self.softcap is not None:
            shown["softcap"] = self.softcap
        return shown | ({"guarded": self.guarded} if self.guarded else {})


def _heads_first(array: Array, layout: str) -> Array:
    taken = tuple(int(c) if c.isdigit() else slice(None) for c in layout)
    letters = "".join(c for c in layout if not c.isdigit())
    return np.transpose(array[taken], [letters.index(c) for c in "bhsd"])


def _named(shape: Shape, layout: str) -> dict[str, tir.Expr]:
    assert len(shape) == len(layout), f"`{layout}` names {len(layout)} of {len(shape)} dimensions"
    return {c: d for c, d in zip(layout, shape, strict=True) if not c.isdigit()}


def _differ(a: tir.Expr, b: tir.Expr) -> bool:
    """Whether two dimensions are known not to be equal; of others a run tells."""
    return fixed(a) is not None and fixed(b) is not None and fixed(a) != fixed(b)


def _scores(q: Mapping[str, tir.Expr], k: Mapping[str, tir.Expr]) -> Shape:
    return q["b"], q["h"], q["s"], k["s"]


def _require_mask(mask: Shape, scores: Shape) -> None:
    pairs = zip(mask[::-1], scores[::-1], strict=False)
    fits = all(fixed(have) == 1 or not _differ(have, want) for have, want in pairs)
    if len(mask) > len(scores) or not fits:
        shown = ", ".join(map(print_node, mask))
        facts = {"mask": shown, "scores": ", ".join(map(print_node, scores))}
        hint = "masks broadcast to [batch, heads, queries, keys]"
        raise GraphError(G051, facts, hint=hint)
