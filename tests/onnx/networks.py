"""Small networks of the kinds that people run, with symbolic sizes and seeded weights.

Each is a few layers of the real thing: a convolutional network with residuals, a transformer, a
recurrent network, and a decoder that keeps keys and values of the past.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Sizes = Mapping[str, int]
WIDTH, HEADS, WORDS = 32, 4, 50
CHANNELS = 48
"""Enough for convolutions with windows of 3×3 to take the way with fewer products."""


@dataclass
class Net:
    """A model under construction; every node gives one value, whose name `add` returns."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(11))
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: dict[str, Array] = field(default_factory=dict)

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def weight(self, *shape: int, size: float | None = None) -> str:
        """Seeded numbers, as large as keeps what passes through them."""
        fan_in = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        scale = fan_in**-0.5 if size is None else size
        return self.constant((scale * self.rng.standard_normal(shape)).astype(np.float32))

    def constant(self, array: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def linear(self, x: str, inner: int, outer: int) -> str:
        product = self.add("MatMul", x, self.weight(inner, outer))
        return self.add("Add", product, self.weight(outer, size=0.1))

    def normalised(self, x: str) -> str:
        scale = self.constant(1 + 0.1 * self.rng.standard_normal(WIDTH).astype(np.float32))
        return self.add("LayerNormalization", x, scale, self.weight(WIDTH, size=0.1))

    def gelu(self, x: str) -> str:
        half, one = (self.constant(np.float32(v)) for v in (0.5, 1.0))
        root = self.constant(np.float32(2**-0.5))
        grown = self.add("Add", self.add("Erf", self.add("Mul", x, root)), one)
        return self.add("Mul", self.add("Mul", x, grown), half)

    def heads(self, x: str) -> str:
        """[batch, seq, width] as [batch, heads, seq, width / heads]."""
        shape = self.constant(np.array([0, 0, HEADS, WIDTH // HEADS]))
        return self.add("Transpose", self.add("Reshape", x, shape), perm=[0, 2, 1, 3])

    def attended(self, q: str, k: str, v: str) -> str:
        """Softmax of scaled products, applied to values; heads side by side again."""
        scale = self.constant(np.float32((WIDTH // HEADS) ** -0.5))
        turned = self.add("Transpose", k, perm=[0, 1, 3, 2])
        scores = self.add("MatMul", self.add("Mul", q, scale), turned)
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), v)
        shape = self.constant(np.array([0, 0, WIDTH]))
        return self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), shape)

    def fed_forward(self, x: str) -> str:
        wide = self.gelu(self.linear(self.normalised(x), WIDTH, 4 * WIDTH))
        return self.add("Add", x, self.linear(wide, 4 * WIDTH, WIDTH))

    def model(self, inputs: Mapping[str, tuple[int, list[Any]]], outputs: Sequence[str]) -> Any:
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info(n, kind, dims) for n, (kind, dims) in inputs.items()],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@dataclass(frozen=True)
class Network:
    """A model and arrays for it at given sizes."""

    make: Callable[[], onnx.ModelProto]
    inputs: Mapping[str, tuple[str, ...] | tuple[str | int, ...]]
    sizes: Sequence[Sizes]

    def feeds(self, sizes: Sizes, seed: int = 0) -> dict[str, Array]:
        rng = np.random.default_rng(seed)
        made: dict[str, Array] = {}
        for name, dims in self.inputs.items():
            shape = [sizes[d] if isinstance(d, str) else d for d in dims]
            made[name] = (
                rng.integers(0, WORDS, shape)
                if name == "ids"
                else rng.standard_normal(shape).astype(np.float32)
            )
        return made


def convolutional() -> onnx.ModelProto:
    net = Net()
    pads = {"pads": [1, 1, 1, 1]}
    x = net.add("Conv", "picture", net.weight(CHANNELS, 3, 3, 3), strides=[2, 2], **pads)
    x = net.add("Relu", x)
    for _ in range(2):
        inner = net.add("Conv", x, net.weight(CHANNELS, CHANNELS, 3, 3), **pads)
        spread = [net.weight(CHANNELS, size=0.1) for _ in range(2)]
        around = [net.constant(np.ones(CHANNELS, np.float32)) for _ in range(2)]
        order = (around[0], spread[0], spread[1], around[1])
        inner = net.add("Relu", net.add("BatchNormalization", inner, *order))
        inner = net.add("Conv", inner, net.weight(CHANNELS, 1, 3, 3), group=CHANNELS, **pads)
        x = net.add(
            "Relu", net.add("Add", x, net.add("Conv", inner, net.weight(CHANNELS, CHANNELS, 1, 1)))
        )
    x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    y = net.linear(x, CHANNELS, 10)
    return net.model({"picture": (TensorProto.FLOAT, ["batch", 3, 40, 40])}, [y])


def transformer() -> onnx.ModelProto:
    net = Net()
    x = net.add("Gather", net.weight(WORDS, WIDTH, size=1.0), "ids")
    for _ in range(2):
        calm = net.normalised(x)
        q, k, v = (net.heads(net.linear(calm, WIDTH, WIDTH)) for _ in range(3))
        x = net.add("Add", x, net.linear(net.attended(q, k, v), WIDTH, WIDTH))
        x = net.fed_forward(x)
    y = net.linear(net.normalised(x), WIDTH, WORDS)
    return net.model({"ids": (TensorProto.INT64, ["batch", "seq"])}, [y])


def recurrent() -> onnx.ModelProto:
    net, hidden = Net(), 24
    shapes = ((2, 4 * hidden, WIDTH), (2, 4 * hidden, hidden), (2, 8 * hidden))
    weights = [net.weight(*shape, size=0.2) for shape in shapes]
    states = net.add("LSTM", "x", *weights, hidden_size=hidden, direction="bidirectional")
    turned = net.add("Transpose", states, perm=[0, 2, 1, 3])
    rows = net.add("Reshape", turned, net.constant(np.array([0, 0, 2 * hidden])))
    y = net.linear(rows, 2 * hidden, WORDS)
    return net.model({"x": (TensorProto.FLOAT, ["seq", "batch", WIDTH])}, [y])


def decoder() -> onnx.ModelProto:
    """One step: the keys and values of the past go in, those with the new ones come out."""
    net = Net()
    x = net.add("Gather", net.weight(WORDS, WIDTH, size=1.0), "ids")
    kept: list[str] = []
    for _ in range(2):
        calm, layer = net.normalised(x), len(kept) // 2
        q, k, v = (net.heads(net.linear(calm, WIDTH, WIDTH)) for _ in range(3))
        k = net.add("Concat", f"past_key_{layer}", k, axis=2)
        v = net.add("Concat", f"past_value_{layer}", v, axis=2)
        kept += [k, v]
        x = net.add("Add", x, net.linear(net.attended(q, k, v), WIDTH, WIDTH))
        x = net.fed_forward(x)
    y = net.linear(net.normalised(x), WIDTH, WORDS)
    past = {name: (TensorProto.FLOAT, ["batch", HEADS, "past", WIDTH // HEADS]) for name in PAST}
    return net.model({"ids": (TensorProto.INT64, ["batch", 1]), **past}, [y, *kept])


PAST = [f"past_{what}_{layer}" for layer in range(2) for what in ("key", "value")]
_CACHE = ("batch", HEADS, "past", WIDTH // HEADS)

NETWORKS = {
    "convolutional": Network(
        convolutional, {"picture": ("batch", 3, 40, 40)}, [{"batch": n} for n in (1, 3)]
    ),
    "transformer": Network(
        transformer,
        {"ids": ("batch", "seq")},
        [{"batch": b, "seq": s} for b, s in ((1, 1), (2, 17), (1, 64), (3, 40))],
    ),
    "recurrent": Network(
        recurrent,
        {"x": ("seq", "batch", WIDTH)},
        [{"batch": b, "seq": s} for b, s in ((1, 1), (4, 9), (2, 30))],
    ),
    "decoder": Network(
        decoder,
        {"ids": ("batch", 1), **dict.fromkeys(PAST, _CACHE)},
        [{"batch": b, "past": p} for b, p in ((1, 1), (2, 33), (1, 100))],
    ),
}
