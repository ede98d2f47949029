"""Elements at places that a tensor holds, along one dimension."""

from __future__ import annotations

from tilewright.graph import Builder, Value
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.gather import Gather

__all__ = ["take", "take_along"]


def take(b: Builder, data: Value, indices: Value, along: int) -> Value:
    """Slices of a dimension in the order of `indices`, whose dimensions take its place."""
    shape = (*data.shape[:along], *indices.shape, *data.shape[along + 1 :])
    o = [axis(k) for k in range(len(shape))]
    behind = along + indices.rank
    read = (1, tuple(o[along:behind]))
    return b.add(Gather(shape, (read,), (*o[:along], picked(0), *o[behind:])), data, indices)


def take_along(b: Builder, data: Value, indices: Value, along: int) -> Value:
    """The elements at `indices` in one dimension, each at its own place in the others."""
    o = tuple(axis(k) for k in range(data.rank))
    places = (*o[:along], picked(0), *o[along + 1 :])
    return b.add(Gather(indices.shape, ((1, o),), places), data, indices)
