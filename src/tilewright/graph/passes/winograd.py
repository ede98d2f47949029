"""Convolutions with windows of 3×3 take a quarter of the multiplications, where that pays.

Before:  y = conv x, w                                  (3×3, stride 1, known weights)
After:   y = winogradconv x, u                          u = transformed w

The result differs from the direct one by rounding: it is no pass for strict accuracy. It runs last,
as weights that have been transformed cannot be scaled any more.
"""

from __future__ import annotations

import math
from typing import Final

from tilewright.dtypes import f32
from tilewright.graph.ir import Node, Value
from tilewright.graph.ops.window import Conv
from tilewright.graph.ops.winograd import WinogradConv
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import fixed
from tilewright.tensor.library.winograd import RESULTS, winograd_weights

__all__ = ["use_winograd"]

# Costs in cycles of a core with 16 multiplications per cycle. Their proportions count, and are near
# enough on any machine.
_PER_PRODUCT: Final = 1 / 16
_PER_ELEMENT: Final = 1.0  # to transform an element of a tile, of the data or of the result
_PER_WEIGHT: Final = 0.8  # to bring one transformed weight from memory, if few tiles use it
_WORTH: Final = 1.2


def use_winograd(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the picture above."""
    op = node.op
    if not isinstance(op, Conv) or op.dtype != f32 or op.groups != 1:
        return None
    x, weights = inputs
    held = b.constants.get(weights)
    if held is None or held.shape[2:] != (3, 3) or {*op.strides, *op.dilations} != {1}:
        return None
    batch, *space, _ = (fixed(size) for size in node.output.shape)
    if x.dtype != f32 or None in space:
        return None
    results = _best(batch or 1, [size or 1 for size in space], *held.shape[:2])
    if results is None:
        return None
    transformed = b.constant(winograd_weights(held, results), "transformed")
    return b.add(WinogradConv(op.pads, op.dtype), x, transformed)


def _best(batch: int, space: list[int], filters: int, channels: int) -> int | None:
    """Results per tile for which it is predicted to be faster by some margin; None for none."""
    direct = 9 * batch * math.prod(space) * channels * filters * _PER_PRODUCT
    costs = {r: _cost(batch, space, filters, channels, r) for r in RESULTS}
    best = min(costs, key=lambda r: costs[r])
    return best if _WORTH * costs[best] < direct else None


def _cost(batch: int, space: list[int], filters: int, channels: int, results: int) -> float:
    tiles = batch * math.prod(-(-size // results) for size in space)
    elements = (results + 2) ** 2
    products = elements * channels * filters * max(tiles * _PER_PRODUCT, _PER_WEIGHT)
    return products + tiles * elements * _PER_ELEMENT * (channels + filters)
