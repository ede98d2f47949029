"""Chains of quantised layers, as quantisers export vocoders and encoders: every rounding counts.

A layer quantises what the one before has made by its own range: a float that is off by one unit of
its last place gives other integers sooner or later, and then nothing is alike any more. All that is
done to floats is defined by the standard to the last bit, so any engine has the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.graph.ir import Array

__all__ = ["CHAINS", "CHANNELS", "LENGTH", "chain"]

CHANNELS: Final = 12
LENGTH: Final = 37
"""Not a multiple of any vector."""

Layer = Callable[["_Chain", str], str]


class _Chain:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def held(self, array: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: object) -> list[str]:
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names

    def one(self, op: str, *inputs: str, **attributes: object) -> str:
        (name,) = self.add(op, *inputs, **attributes)
        return name

    def integers(self, *shape: int) -> str:
        return self.held(self.rng.integers(-127, 128, shape).astype(np.int8))

    def floats(self, low: float, high: float, *shape: int) -> str:
        return self.held(self.rng.uniform(low, high, shape).astype(np.float32))


def _scaled(chain: _Chain, total: str, scale: str, terms: int, gain: float) -> str:
    """Integer sums as floats of `gain` times the size of the data, with a bias."""
    size = gain / (73 * terms**0.5)
    factor = chain.one("Mul", scale, chain.floats(0.9 * size, 1.1 * size))
    floats = chain.one("Mul", chain.one("Cast", total, to=TensorProto.FLOAT), factor)
    return chain.one("Add", floats, chain.floats(-0.1, 0.1, CHANNELS, 1))


def _convolved(chain: _Chain, x: str) -> str:
    q, scale, zero = chain.add("DynamicQuantizeLinear", x, outputs=3)
    weights = chain.integers(CHANNELS, CHANNELS, 3)
    total = chain.one("ConvInteger", q, weights, zero, pads=[1, 1])
    y = _scaled(chain, total, scale, 3 * CHANNELS, 1.4)
    return chain.one("LeakyRelu", y, alpha=0.1)


def _multiplied(chain: _Chain, x: str) -> str:
    q, scale, zero = chain.add("DynamicQuantizeLinear", x, outputs=3)
    nothing = chain.held(np.zeros((), np.int8))
    total = chain.one("MatMulInteger", q, chain.integers(LENGTH, LENGTH), zero, nothing)
    y = _scaled(chain, total, scale, LENGTH, 0.7)
    gate = chain.one("HardSigmoid", y, alpha=0.21, beta=0.47)
    return chain.one("Add", chain.one("Mul", y, gate), x)


def _normalised(chain: _Chain, x: str) -> str:
    """Scales that are known, and products, quotients, roots and squares of floats between."""
    scale, zero = chain.held(np.float32(0.0237)), chain.held(np.uint8(131))
    q = chain.one("QuantizeLinear", x, scale, zero)
    weights = [chain.integers(LENGTH, LENGTH), chain.floats(0.01, 0.02), chain.held(np.int8(0))]
    product = chain.one("QLinearMatMul", q, scale, zero, *weights, scale, zero)
    y = chain.one("DequantizeLinear", product, scale, zero)
    square = chain.one("Mul", y, y)
    energy = chain.one("Add", chain.one("Mul", square, chain.floats(0.1, 0.3, LENGTH)), square)
    root = chain.one("Sqrt", chain.one("Add", energy, chain.held(np.float32(0.3))))
    both = chain.one("Add", chain.one("Div", y, root), chain.one("PRelu", y, weights[1]))
    return chain.one("Sub", chain.one("Mul", both, chain.floats(1.5, 2, CHANNELS, 1)), square)


CHAINS: Final[dict[str, tuple[Layer, ...]]] = {
    "convolutions": (_convolved,),
    "products": (_multiplied,),
    "all": (_convolved, _normalised, _multiplied),
}


def chain(kind: str, layers: int, rng: np.random.Generator) -> onnx.ModelProto:
    """A model of one input `x` of (1, CHANNELS, LENGTH) and a result of the same shape."""
    made, value = _Chain(rng), "x"
    for k in range(layers):
        steps = CHAINS[kind]
        value = steps[k % len(steps)](made, value)
    shape = [1, CHANNELS, LENGTH]
    graph = helper.make_graph(
        made.nodes,
        kind,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)],
        made.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
