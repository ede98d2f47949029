"""`Scatter`: a tensor in which some elements are replaced, at places that other tensors hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.ends import require_limits
from tilewright.graph.ops.gather import Read, inside, limits_of, places_in, values_at
from tilewright.graph.ops.movement import axis
from tilewright.graph.ops.op import Limit, Op, SizeOf, computed_as
from tilewright.graph.sizes import variables
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, combine, compute, make_block, seq

__all__ = ["Scatter"]

_NUMPY = {
    tir.Fold.ADD: np.add,
    tir.Fold.MUL: np.multiply,
    tir.Fold.MIN: np.minimum,
    tir.Fold.MAX: np.maximum,
}


@dataclass(frozen=True)
class Scatter(Op):
    """A copy of in0; then for each point u of in1 in order `out[places] = in1[u]`.

    With a fold, `out[places] = fold(out[places], in1[u])`. `places` and `reads` are as in `Gather`,
    over `axis(k)` of in1. Of several updates of one element the last counts. For a place outside of
    the tensor the nearest element is updated, nothing else ever.
    """

    linear = True

    reads: tuple[Read, ...]
    places: tuple[tir.Expr, ...]
    fold: tir.Fold | None = None

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        self._require_points(inputs[1].rank)
        require_limits(self.limits(inputs, [inputs[0]]))
        return [inputs[0]]

    def _require_points(self, rank: int) -> None:
        """Refuse places that depend on more dimensions than updates have."""
        used = variables([*self.places, *(place for _, where in self.reads for place in where)])
        for place in range(rank, len(self.places)):
            if axis(place) in used:
                raise ValueError(f"updates have {rank} dimensions, and must have more")

    def limits(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[Limit]:
        data, updates = inputs[0].shape, inputs[1].shape
        for most, dim, shape in limits_of(data, updates, self.reads, self.places, inputs):
            yield most, dim, (*shape, *data)

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        result, updates = np.array(arrays[0]), arrays[1]
        if updates.size == 0 or result.size == 0:
            return [result]
        found = places_in(result.shape, updates.shape, self.reads, self.places, arrays, size_of)
        where = tuple(np.broadcast_to(p, updates.shape).ravel() for p in found)
        values = updates.ravel()
        if self.fold is not None:
            _NUMPY[self.fold].at(result, where, values)
            return [result]
        for number, place in enumerate(zip(*where, strict=True)):
            result[place] = values[number]
        return [result]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        data, updates = inputs[0], inputs[1]
        copied = compute(names[0], data.shape, lambda *i: data[i].to(data.dtype), data.dtype)
        buffer = copied.buffer
        iters = tuple(tir.Iter(tir.Var(f"vu{k}"), d) for k, d in enumerate(updates.shape))
        loops = tuple(tir.Var(f"u{k}") for k in range(len(iters)))
        at = tuple(it.var for it in iters)
        values = values_at(self.reads, inputs, at)
        places = tuple(inside(p, d, values) for p, d in zip(self.places, data.shape, strict=True))
        value = updates[at]
        if self.fold is not None:
            held = tir.Load(buffer, places).to(computed_as(data.dtype))
            value = combine(self.fold, held, value)
        store = tir.Store(buffer, places, value.to(data.dtype))
        nest: tir.Stmt = make_block(f"{names[0]}_updates", iters, loops, store)
        for loop, it in zip(reversed(loops), reversed(iters), strict=True):
            nest = tir.For(loop, it.extent, nest)
        assert copied.nest is not None
        return [Tensor(buffer, seq(copied.nest, nest), tuple(dict.fromkeys(inputs)))]

    def attributes(self) -> dict[str, object]:
        shown: dict[str, object] = {"reads": self.reads, "places": self.places}
        return shown | ({"fold": self.fold} if self.fold else {})
