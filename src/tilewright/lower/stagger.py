"""Gaps in temporary buffers, so that planes which are used together do not share sets of a cache.

The address of an element tells in which set of the first cache its line may lie. With planes a
multiple of 4096 bytes apart, the same place of all planes has the same set: a transform that writes
to 36 planes in turn, in a cache of 8 ways, throws out its own lines before they are full. Planes
that are an odd multiple of 2048 bytes apart have two sets for all of them, which is hardly better.
A gap between planes, so that they are one line more apart than that, gives each of them a set of
its own. Less than a line beside such a multiple, few planes still fill a set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd, prod

from tilewright.target import Cache, Target
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, walk

__all__ = ["gaps_of"]


def gaps_of(
    func: tir.Func, buffers: Iterable[tir.Buffer], target: Target
) -> dict[tir.Buffer, tuple[int, int]]:
    """For buffers with such planes the dimension that counts them, and elements between them.

    Where loops run through planes without a stop, nothing comes between these.
    """
    near = target.cache(1)
    planes = {b: p for b in buffers if (p := _Planes.of(b, near)) is not None and p.crowded}
    if not planes:
        return {}
    free = {buffer: set(found.crowded) for buffer, found in planes.items()}
    for part in walk(func.body):
        if isinstance(part, tir.Load | tir.Store | tir.Prefetch) and part.buffer in free:
            used = [free_vars(index) for index in part.indices]
            free[part.buffer] -= {
                d
                for d in free[part.buffer]
                if set[tir.Var]().union(*used[: d + 1]) & set[tir.Var]().union(*used[d + 1 :])
            }
    best = {buffer: planes[buffer].best(dims) for buffer, dims in free.items() if dims}
    return {buffer: (dim, planes[buffer].gap(dim)) for buffer, dim in best.items()}


@dataclass(frozen=True)
class _Planes:
    """The planes of a buffer, one kind for each dimension but the last, and the cache they meet in.

    All in elements: `line` is that of the cache, `period` the distance from a set to itself.
    """

    sizes: tuple[int, ...]
    line: int
    period: int
    ways: int

    @classmethod
    def of(cls, buffer: tir.Buffer, near: Cache) -> _Planes | None:
        """Of a buffer with elements, as many as are known."""
        sizes = [tir.int_value(d) for d in buffer.shape]
        if not all(sizes):
            return None
        element = buffer.dtype.size_bytes
        period = near.size_bytes // near.ways // element
        return cls(tuple(s or 0 for s in sizes), near.line_bytes // element, period, near.ways)

    @property
    def crowded(self) -> list[int]:
        """Dimensions whose planes have too few sets, of those whose lines the cache could hold."""
        found = []
        for d in range(len(self.sizes) - 1):
            count, pitch = prod(self.sizes[: d + 1]), self._pitches()[d]
            fits = count <= self.ways * self.period // self.line
            if self._beside(pitch) is not None or (fits and self._crowd(d, pitch) > 1):
                found += [d] if count >= self.ways else []
        return found

    def best(self, dims: Iterable[int]) -> int:
        """Of some dimensions that one where a gap leaves the fewest planes in a set."""

        def most(dim: int) -> float:
            pitches = self._pitches(dim)
            return max(self._crowd(d, pitches[d]) for d in self.crowded)

        return min(sorted(dims, reverse=True), key=most)

    def gap(self, dim: int) -> int:
        """Elements between the planes of a dimension."""
        return self.line - (self._beside(self._pitches()[dim]) or 0)

    def _beside(self, pitch: int) -> int | None:
        """By how much planes are further apart than a multiple; None if that is a line and more."""
        found = pitch - max(1, round(pitch / self.period)) * self.period
        return found if abs(found) < self.line else None

    def _pitches(self, staggered: int = -1) -> Sequence[int]:
        """How far planes are apart, with a gap between those of one dimension."""
        found = [1]
        for d, size in reversed([*enumerate(self.sizes)][1:]):
            found.append(found[-1] * size)
            if staggered == d - 1:
                found[-1] += self.line - (self._beside(found[-1]) or 0)
        return found[:0:-1]

    def _crowd(self, dim: int, pitch: int) -> float:
        """Lines for each place that the sets have for them."""
        sets = self.period // max(self.line, gcd(pitch, self.period))
        return prod(self.sizes[: dim + 1]) / (sets * self.ways)
