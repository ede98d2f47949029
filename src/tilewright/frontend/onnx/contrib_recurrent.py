"""`DynamicQuantizeLSTM`: products of quantised matrices inside of an LSTM (domain com.microsoft).

Inputs are quantised once, the hidden state anew at every time step, with scales that fit them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.products import integer_product
from tilewright.frontend.onnx.quantization import quantized_dynamically
from tilewright.frontend.onnx.recurrent import Layer, lstm_layer
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.loops import Outside
from tilewright.graph.sizes import product
from tilewright.tensor import ir as tir

__all__: list[str] = []

DOMAIN: Final = "com.microsoft"


@dataclass(frozen=True)
class _Quantized(Layer):
    """Weights are [directions, inputs, gates·hidden]; scales and zero points, those of both."""

    scales: tuple[Value, Value]
    zeros: tuple[Value, Value]

    @property
    def hidden(self) -> tir.Expr:
        return self.r.shape[1]

    def products(self, direction: int, bias: Sequence[Value]) -> Value:
        """Inputs times weights for all time steps: (time, batch, gates·hidden)."""
        b, x = self.b, self.x
        rows = b.reshape(x, (product(x.shape[:-1]), x.shape[-1]))
        weights = self.of_direction(self.w, direction)
        scale, zero = self.of_direction(self.scales[0], direction), self._zero(0, direction)
        found = _multiplied(b, rows, weights, scale, zero)
        if bias:
            found = b.map(lambda v, c: v + c, found, b.concat(list(bias), 0))
        return b.reshape(found, (*x.shape[:-1], found.shape[-1]))

    def recurrence(self, b: Builder, state: Value, weights: Value, outside: Outside) -> Value:
        """The hidden state, quantised as it is now, times its weights."""
        direction = self._directions[weights]
        scale, zero = self.of_direction(self.scales[1], direction), self._zero(1, direction)
        return _multiplied(b, state, *(outside(v) for v in (weights, scale, zero)))

    def _zero(self, number: int, direction: int) -> Value:
        return self.of_direction(self.zeros[number], direction)

    @property
    def _directions(self) -> dict[Value, int]:
        """The direction of each part of the weights of the hidden state."""
        return {self.of_direction(self.r, d): d for d in range(self.directions)}


def _multiplied(b: Builder, x: Value, weights: Value, scale: Value, zero: Value) -> Value:
    small, own, middle = quantized_dynamically(b, x)
    total = integer_product(b, small, weights, middle, zero)
    return b.map(lambda v, s, t: v.to(s.dtype) * (s * t), total, own, scale)


@onnx_op("DynamicQuantizeLSTM", domain=DOMAIN)
def dynamic_quantize_lstm(
    b: Builder,
    node: OnnxNode,
    x: Value,
    w: Value,
    r: Value,
    bias: Value | None,
    lengths: Value | None,
    initial_h: Value | None,
    initial_c: Value | None,
    peepholes: Value | None,
    w_scale: Value,
    w_zero: Value,
    r_scale: Value,
    r_zero: Value,
) -> Sequence[Value]:
    """An LSTM; weights have one scale for each direction, or for each of its columns."""
    ends = None if lengths is None else b.reshape(lengths, (*lengths.shape, 1))
    layer = _Quantized(b, node, x, w, r, bias, ends, 4, (w_scale, r_scale), (w_zero, r_zero))
    return lstm_layer(layer, initial_h, initial_c, peepholes)
