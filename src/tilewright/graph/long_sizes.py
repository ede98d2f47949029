"""Dimensions that depend on many sizes each, which a graph may have few of.

Each stage behind this one looks at every form of a dimension, so that a chain of joins costs the
square of its length.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.graph.folding import TooLarge
from tilewright.graph.ir import TensorType
from tilewright.graph.sizes import LONG, MAX_LONG, NEW_LONG, length_of, product
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars

__all__ = ["LongSizes"]


class LongSizes:
    """The sizes in all long dimensions of the results of a graph."""

    def __init__(self) -> None:
        self._known: set[tir.Expr] = set()
        self._total = 0

    def count(self, types: Sequence[TensorType]) -> None:
        """Add those of more results; `TooLarge` if there are too many."""
        for dim, whole in ((dim, kind) for kind in types for dim in kind.shape):
            length = len(free_vars(dim))
            if length <= LONG:
                continue
            self._total += length
            if dim not in self._known:
                self._known.add(dim)
                self._total += (NEW_LONG - 1) * length
                # It is long in bytes, too, which would be found when everything else is done.
                length_of(product((*whole.shape, tir.Const(whole.dtype.size_bytes))))
            if self._total > MAX_LONG:
                raise TooLarge("many of its dimensions depend on many sizes each")
