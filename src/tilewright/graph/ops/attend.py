"""`Attend`: scaled dot-product attention over heads.

    out[b, h, i, :] = softmax(cap(scale · q[b, h, i, :]·k[b, g, :, :]ᵀ) + masks) · v[b, g, :, :]

Several heads of queries may share one head of keys and values (g = h // (heads of q / heads of k)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.errors import Code, GraphError
from tilewright.graph.ir import Array, Shape, TensorType
from tilewright.graph.ops.op import Op, Role, SizeOf
from tilewright.graph.sizes import dims_equal, fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, select
from tilewright.tensor.library.attention import attend
from tilewright.tensor.printer import print_node
from tilewright.tensor.visit import rewrite, walk

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
    that sees no key at all has no softmax: its result is zero if `guarded`, else NaN.
    """

    role = Role.ALONE
    layouts: tuple[str, str, str, str]
    scale: float
    causal: bool = False
    offset: tir.Expr = ZERO
    softcap: float | None = None
    guarded: bool = False

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        q, k, v = (_named(t.shape, f) for t, f in zip(inputs[:3], self.layouts[:3], strict=True))
        heads, shared = fixed(q["h"]), fixed(k["h"])
        problem = ""
        if not dims_equal(k["h"], v["h"]) or not dims_equal(k["s"], v["s"]):
            problem = "keys and values differ in number"
        elif not dims_equal(q["b"], k["b"]) or not dims_equal(q["b"], v["b"]):
            problem = "batches differ"
        elif fixed(q["d"]) is None or not dims_equal(q["d"], k["d"]):
            problem = "queries and keys differ in features"
        elif not dims_equal(q["h"], k["h"]) and (not heads or not shared or heads % shared):
            problem = "the heads of queries are no multiple of those of keys"
        if problem:
            shown = dict(zip(("queries", "keys", "values"), map(str, inputs[:3]), strict=True))
            hint = f"the layouts {', '.join(self.layouts[:3])} name their dimensions"
            raise GraphError(G050, {**shown, "problem": problem}, hint=hint)
        scores = (q["b"], q["h"], q["s"], k["s"])
        for mask in inputs[3:]:
            _require_mask(mask.shape, scores)
        result = {**q, "d": v["d"]}
        return [TensorType(inputs[0].dtype, tuple(result[c] for c in self.layouts[3]))]

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
            powers = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
            total = powers.sum(axis=-1, keepdims=True)
            weights = powers / total
            if self.guarded:
                weights = np.where(np.isnan(total), 0.0, weights)
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
            name=names[0],
        )
        return [_guarded(result) if self.guarded else result]

    def attributes(self) -> dict[str, object]:
        shown: dict[str, object] = {"layouts": self.layouts, "scale": f"{self.scale:g}"}
        if self.causal:
            shown["causal"] = self.offset
        if self.softcap is not None:
            shown["softcap"] = self.softcap
        return shown | ({"guarded": True} if self.guarded else {})


def _guarded(result: Tensor) -> Tensor:
    """The last stage, sums over totals, with zeros where a total is NaN."""
    assert result.nest is not None
    total = next(t.buffer for t in result.inputs if t.buffer.name.endswith("_total"))

    def change(part: object) -> tir.Store | None:
        if not isinstance(part, tir.Store):
            return None
        read = next(p for p in walk(part.value) if isinstance(p, tir.Load) and p.buffer is total)
        value = select(read.eq(read), part.value, tir.const(0, part.value.dtype))
        return tir.Store(part.buffer, part.indices, value)

    return Tensor(result.buffer, rewrite(result.nest, change), result.inputs)


def _heads_first(array: Array, layout: str) -> Array:
    taken = tuple(int(c) if c.isdigit() else slice(None) for c in layout)
    letters = "".join(c for c in layout if not c.isdigit())
    return np.transpose(array[taken], [letters.index(c) for c in "bhsd"])


def _named(shape: Shape, layout: str) -> dict[str, tir.Expr]:
    assert len(shape) == len(layout), f"`{layout}` names {len(layout)} of {len(shape)} dimensions"
    return {c: d for c, d in zip(layout, shape, strict=True) if not c.isdigit()}


def _require_mask(mask: Shape, scores: Shape) -> None:
    pairs = zip(mask[::-1], scores[::-1], strict=False)
    fits = all(fixed(have) == 1 or dims_equal(have, want) for have, want in pairs)
    if len(mask) > len(scores) or not fits:
        shown = ", ".join(map(print_node, mask))
        facts = {"mask": shown, "scores": ", ".join(map(print_node, scores))}
        hint = "masks broadcast to [batch, heads, queries, keys]"
        raise GraphError(G051, facts, hint=hint)
