"""Normalisations, quantisation, recurrent layers, losses and signals."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from onnx import TensorProto

from fuzz.case import Array
from fuzz.grow import Dim, Growth, Value, require
from fuzz.rules.products import scale, zero_point
from fuzz.rules.reductions import axis_of
from fuzz.rules.windows import image
from fuzz.values import numpy_type

__all__ = ["RULES"]

EPSILON: Final = (None, 1e-5, 1e-3, 0.1)


def _channels(g: Growth, x: Value) -> int:
    size = g.dims_of(x)[1]
    require(isinstance(size, int), "a number of channels that varies")
    return int(size)


def _positive(g: Growth, elem_type: int, dims: list[Dim]) -> Value:
    def make(shape: tuple[int, ...]) -> Array:
        rng = np.random.default_rng(g.draw.getrandbits(63))
        return rng.uniform(0.3, 3, shape).astype(numpy_type(elem_type))

    return g.new(elem_type, dims, make=make, constant=0.8)


def batch_normalization(g: Growth, op: str) -> None:
    x = image(g, g.types(op), space=(0, 3)) if g.draw.random() < 0.3 else image(g, g.types(op))
    n = _channels(g, x)
    given = [g.new(x.type, [n], constant=0.8) for _ in range(3)]
    g.add(op, [x, *given, _positive(g, x.type, [n])], epsilon=g.draw.choice(EPSILON))


def instance_normalization(g: Growth, op: str) -> None:
    x = image(g, g.types(op))
    n = _channels(g, x)
    given = [g.new(x.type, [n], constant=0.8) for _ in range(2)]
    g.add(op, [x, *given], epsilon=g.draw.choice(EPSILON))


def group_normalization(g: Growth, op: str) -> None:
    x = image(g, g.types(op), channels=g.draw.choice((2, 4, 6)))
    n = _channels(g, x)
    groups = g.draw.choice([k for k in (1, 2, n) if n % k == 0])
    width = groups if g.opset < 21 else n
    given = [g.new(x.type, [width], constant=0.8) for _ in range(2)]
    g.add(op, [x, *given], num_groups=groups, epsilon=g.draw.choice(EPSILON))


def layer_normalization(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1, high=4, where=lambda v: v.all(lambda a: a.size))
    axis = axis_of(g, x)
    dims = g.dims_of(x)[axis:]
    width = g.new(x.type, dims, constant=0.8)
    dims = [g.meeting(d, 0, one_way=True) for d in dims]
    bias = g.new(x.type, dims) if op == "LayerNormalization" and g.draw.random() < 0.6 else None
    g.add(op, [x, width, bias], axis=axis, epsilon=g.draw.choice(EPSILON))


def mean_variance(g: Growth, op: str) -> None:
    x = image(g, g.types(op), space=(2, 2))
    g.add(op, [x])


def quantize(g: Growth, op: str) -> None:
    """Per tensor, per channel, or (since opset 21) by blocks."""
    x = g.pick(
        g.types(op), where=lambda v: v.all(lambda a: np.isfinite(a.astype(np.float64)).all())
    )
    kinds = [t for t in g.types(op, 2) if t != TensorProto.INT32]
    kind = g.choose_type(kinds) if kinds else TensorProto.UINT8
    shape, attributes = _granularity(g, x)
    same = x.dtype if g.opset >= 19 and x.type != TensorProto.INT32 else np.dtype(np.float32)
    if g.opset >= 21 and g.draw.random() < 0.3:
        g.add(op, [x, scale(g, shape, same)], output_dtype=kind, **attributes)
        return
    point = zero_point(g, kind, shape)
    if numpy_type(kind).kind not in "iu":
        point = g.parameter(np.zeros(shape, numpy_type(kind)), always_constant=True)
    g.add(op, [x, scale(g, shape, same), point], **attributes)


def dequantize(g: Growth, op: str) -> None:
    x = g.pick(g.types(op))
    shape, attributes = _granularity(g, x)
    kinds = g.types(op, 1)
    dtype = numpy_type(g.choose_type(kinds)) if kinds else np.dtype(np.float32)
    whole = x.dtype.kind in "iu" and x.type != TensorProto.INT32
    point = zero_point(g, x.type, shape) if whole and g.draw.random() < 0.7 else None
    g.add(op, [x, scale(g, shape, dtype), point], **attributes)


def _granularity(g: Growth, x: Value) -> tuple[tuple[int, ...], dict[str, Any]]:
    kind = g.draw.random()
    if not x.rank or g.opset < 13 or kind < 0.5:
        return (), {}
    axis = axis_of(g, x) % x.rank
    sizes = {a.shape[axis] for a in x.arrays}
    require(len(sizes) == 1 and 0 not in sizes, "an axis that varies")
    if g.opset >= 21 and kind > 0.8 and g.runs == 1 and x.arrays[0].size:
        block = g.draw.choice((1, 2, 3))
        shape = list(x.shape)
        shape[axis] = -(-shape[axis] // block)
        return tuple(shape), {"axis": axis, "block_size": block}
    return (x.shape[axis],), {"axis": axis}


def dynamic_quantize(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), where=lambda v: v.all(lambda a: a.size and np.isfinite(a).all()))
    g.add(op, [x], 3)


def recurrent(g: Growth, op: str) -> None:
    """All three directions, optional states and biases; gates as they are by default.

    Of finite numbers: products of matrices differ in what a zero hides.
    """
    kind = g.choose_type([t for t in g.types(op) if t in {TensorProto.FLOAT, TensorProto.DOUBLE}])
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    seq, batch = g.dim(), g.dim()
    width, hidden = g.draw.choice((1, 3, 5)), g.draw.choice((1, 2, 4))
    direction = g.draw.choice(("forward", "reverse", "bidirectional"))
    n = 2 if direction == "bidirectional" else 1
    x = g.new(kind, [seq, batch, width], constant=0)
    require(x.all(lambda a: a.size))
    weights = [g.new(kind, [n, gates * hidden, k], constant=0.9) for k in (width, hidden)]
    bias = g.new(kind, [n, 2 * gates * hidden], constant=0.9) if g.draw.random() < 0.6 else None
    start = g.new(kind, [n, batch, hidden]) if g.draw.random() < 0.4 else None
    given = [v for v in (x, *weights, start) if v is not None]
    require(all(v.all(lambda a: np.isfinite(a).all()) for v in given), "not finite")
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if op == "GRU" and g.draw.random() < 0.5:
        attributes["linear_before_reset"] = 1
    outputs = [True] * (3 if op == "LSTM" else 2)
    g.add(op, [x, *weights, bias, None, start], outputs, **attributes)


def loss(g: Growth, op: str) -> None:
    kind = g.choose_type([t for t in g.types(op) if t != TensorProto.BFLOAT16])
    classes, batch = g.draw.choice((2, 3, 5)), g.draw.choice((1, 3))
    rest: list[Dim] = [g.draw.choice((2, 3)) for _ in range(g.draw.randint(0, 2))]
    x = g.new(kind, [batch, classes, *rest])

    def labels(shape: tuple[int, ...]) -> Array:
        return np.random.default_rng(g.draw.getrandbits(63)).integers(0, classes, shape)

    target = g.new(TensorProto.INT64, [batch, *rest], make=labels)
    weight = _positive(g, kind, [classes]) if g.draw.random() < 0.4 else None
    ignored = {"ignore_index": g.draw.randrange(classes)} if g.draw.random() < 0.3 else {}
    g.add(op, [x, target, weight], reduction=g.draw.choice(("none", "sum", "mean")), **ignored)


def window_function(g: Growth, op: str) -> None:
    size = g.parameter(np.array(g.draw.randint(2, 9), np.int64))
    g.add(op, [size], periodic=g.draw.randint(0, 1))


def dft(g: Growth, op: str) -> None:
    kind = g.choose_type([t for t in g.types(op) if t in {TensorProto.FLOAT, TensorProto.DOUBLE}])
    x = g.new(kind, [g.draw.choice((1, 2)), g.draw.randint(2, 9), g.draw.choice((1, 2))])
    require(x.all(lambda a: np.isfinite(a).all()), "infinities cancel in some order")
    attributes: dict[str, Any] = {"inverse": g.draw.randint(0, 1)}
    if not attributes["inverse"] and x.shape[-1] == 1:
        attributes["onesided"] = g.draw.randint(0, 1)
    length = (
        g.parameter(np.array(g.draw.randint(2, 10), np.int64)) if g.draw.random() < 0.3 else None
    )
    if g.opset < 20:
        g.add(op, [x, length], axis=1, **attributes)
    else:
        g.add(op, [x, length, g.parameter(np.array(1, np.int64))], **attributes)


def rotary(g: Growth, op: str) -> None:
    kind = g.choose_type(g.types(op))
    batch, heads, seq, width = (
        g.draw.choice((1, 2)),
        g.draw.choice((1, 2)),
        g.draw.choice((1, 3)),
        g.draw.choice((2, 4)),
    )
    x = g.new(kind, [batch, heads, seq, width])
    tables = [g.new(kind, [5, width // 2], constant=0.8) for _ in range(2)]

    def places(shape: tuple[int, ...]) -> Array:
        return np.random.default_rng(g.draw.getrandbits(63)).integers(0, 5, shape)

    ids = g.new(TensorProto.INT64, [batch, seq], make=places)
    g.add(op, [x, *tables, ids], interleaved=g.draw.randint(0, 1))


RULES: Final = {
    **dict.fromkeys(("GRU", "LSTM", "RNN"), recurrent),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), layer_normalization),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), loss),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), window_function),
    "BatchNormalization": batch_normalization,
    "DFT": dft,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
    "GroupNormalization": group_normalization,
    "InstanceNormalization": instance_normalization,
    "MeanVarianceNormalization": mean_variance,
    "QuantizeLinear": quantize,
    "RotaryEmbedding": rotary,
}
