"""`MelWeightMatrix`: triangles over frequencies, evenly spaced on the mel scale."""

from __future__ import annotations

import numpy as np

from tilewright.frontend.onnx.node import OnnxNode, dtype_of_onnx
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ir import Array

__all__: list[str] = []


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
    return b.constant(_triangles(*numbers), "mel", dtype)


def _triangles(bins: int, length: int, rate: int, low: float, high: float) -> Array:
    """[frequency, bin]: from zero at the bin before to one at its own, and down to zero."""
    ends = [2595 * np.log10(1 + hertz / 700) for hertz in (low, high)]
    mels = ends[0] + np.arange(bins + 2) * (ends[1] - ends[0]) / (bins + 2)
    edges = ((length + 1) * 700 * (10 ** (mels / 2595) - 1) // rate).astype(np.int64)
    found = np.zeros((length // 2 + 1, bins))
    for k in range(bins):
        left, centre, right = edges[k : k + 3]
        rising = np.arange(left, centre + 1)
        found[rising, k] = (rising - left) / (centre - left) if centre > left else 1.0
        falling = np.arange(centre, right)
        found[falling, k] = (right - falling) / (right - centre) if right > centre else 0.0
    return found
