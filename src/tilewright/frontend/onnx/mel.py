"""`MelWeightMatrix`: triangles over frequencies, evenly spaced on the mel scale."""

from __future__ import annotations

from typing import Final

import numpy as np

from tilewright.frontend.onnx.node import OnnxNode, dtype_of_onnx
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.spending import pay_elements
from tilewright.graph import Builder, Value
from tilewright.graph.ir import Array

__all__: list[str] = []

TABLES: Final = 8
"""Tables of the size of the matrix that computing it takes."""


@onnx_op("MelWeightMatrix")
def mel_weights(
    b: Builder, node: OnnxNode, bins: Value, length: Value, rate: Value, low: Value, high: Value
) -> Value:
    """A constant: all that it depends on must be known."""
    held = [b.contents(v) for v in (bins, length, rate, low, high)]
    if any(h is None or h.dtype == object for h in held):
        node.decline("the frequencies depend on data")
    numbers = [h.item() for h in held if h is not None]
    dtype = dtype_of_onnx(node.int("output_datatype", 1))
    table = (int(numbers[0]) + 2) * (int(numbers[1]) // 2 + 2)
    pay_elements(b, node, TABLES * table, "the matrix")
    return b.constant(_triangles(*numbers), "mel", dtype)


def _triangles(bins: int, length: int, rate: int, low: float, high: float) -> Array:
    """[frequency, bin]: from zero at the bin before to one at its own, and down to zero."""
    ends = [2595 * np.log10(1 + hertz / 700) for hertz in (low, high)]
    mels = ends[0] + np.arange(bins + 2) * (ends[1] - ends[0]) / (bins + 2)
    edges = ((length + 1) * 700 * (10 ** (mels / 2595) - 1) // rate).astype(np.int64)
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    count = length // 2 + 1
    if bins and not (edges.min() >= 0 and edges[1:-1].max() < count and edges.max() <= count):
        raise ValueError("bins lie outside of the spectrum")
    at = np.arange(count)[:, None]
    up = np.where(centre > left, (at - left) / np.maximum(centre - left, 1), 1.0)
    down = (right - at) / np.maximum(right - centre, 1)
    found = np.where((left <= at) & (at <= centre), up, 0.0)
    return np.where((centre <= at) & (at < right), down, found)
