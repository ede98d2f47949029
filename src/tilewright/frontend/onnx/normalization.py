"""Normalisations: sums over dimensions, and elementwise arithmetic around them.

Each is written as the folds and maps that it is, so that passes see nothing new in them. Inside,
narrow floats are f32; results are rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tilewright.dtypes import DType, f32
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.node import OnnxNode, normal_axis, normal_border
from tilewright.frontend.onnx.reductions import mean, widened
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.spending import pay_steps
from tilewright.graph import Builder, Value
from tilewright.graph.ops import computed_as
from tilewright.graph.sizes import fixed
from tilewright.graph.spread import onto
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["layer_norm", "rms_norm", "softmax_over"]


def _on_channels(b: Builder, vector: Value, rank: int) -> Value:
    """A value for each channel, in a shape that meets dimension 1."""
    return b.reshape(vector, (*vector.shape, *(1 for _ in range(rank - 2))))


def _variance(b: Builder, centred: Value, axes: Sequence[int]) -> Value:
    return mean(b, b.map(lambda v: v * v, centred), axes)


def _inverse_deviation(b: Builder, variance: Value, epsilon: float) -> Value:
    return b.map(lambda v: call("rsqrt", v + epsilon), variance)


def _centred(b: Builder, x: Value, axes: Sequence[int]) -> tuple[Value, Value]:
    middle = mean(b, x, axes)
    return b.map(lambda v, m: v - m, x, middle), middle


def _scaled(
    b: Builder, x: Value, factor: Value, scale: Value, bias: Value | None, dtype: DType
) -> Value:
    """x·factor·scale + bias, stored as `dtype`."""
    scale = onto(b, scale, x.shape)
    if bias is None:
        return b.map(lambda v, f, s: v * f * s.to(v.dtype), x, factor, scale, dtype=dtype)
    return b.map(
        lambda v, f, s, c: v * f * s.to(v.dtype) + c.to(v.dtype),
        x,
        factor,
        scale,
        onto(b, bias, x.shape),
        dtype=dtype,
    )


@onnx_op("Softmax", "LogSoftmax")
def softmax(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Along one axis; before opset 13 along all from that axis on."""
    if not x.dtype.is_float:
        raise TypeError(f"it takes floats, and is given {x.dtype.name}")
    if node.opset >= 13:
        axes = [normal_axis(node.int("axis", -1), x.rank)]
    else:
        axes = list(range(normal_border(node.int("axis", 1), x.rank), x.rank))
    return softmax_over(b, x, axes, logarithm=node.op == "LogSoftmax")


def softmax_over(b: Builder, x: Value, axes: Sequence[int], *, logarithm: bool) -> Value:
    """With the greatest element taken out, so that nothing overflows.

    Logarithms need an exact one for it, so that a single element has the logarithm zero.
    """
    wide = computed_as(x.dtype)
    top = b.reduce(tir.Fold.MAX, x, axes)
    exp = "exp" if logarithm else "exp_bounded"
    power = b.map(lambda v, m: call(exp, v - m), x, top, dtype=wide)
    total = b.reduce(tir.Fold.ADD, power, axes)
    if logarithm:
        return b.map(lambda v, m, s: v - m - call("log", s), x, top, total, dtype=x.dtype)
    share = b.map(lambda s: 1 / s, total)
    return b.map(lambda e, r: e * r, power, share, dtype=x.dtype)


@onnx_op("BatchNormalization")
def batch_normalization(
    b: Builder, node: OnnxNode, x: Value, scale: Value, bias: Value, middle: Value, variance: Value
) -> Value | Sequence[Value]:
    """x·factor + shift for each channel; both follow from constants, or from x in training.

    Before opset 9, statistics may be those of each element of a sample.
    """
    if node.int("training_mode"):
        return _in_training(b, node, x, scale, bias, middle, variance)
    if node.wants(1):
        node.decline("training mode of an opset before 14")
    epsilon = node.float("epsilon", 1e-5)
    wide = [widened(b, v) for v in (scale, bias, middle, variance)]
    factor = b.map(lambda s, v: s * call("rsqrt", v + epsilon), wide[0], wide[3])
    shift = b.map(lambda c, m, f: c - m * f, wide[1], wide[2], factor)
    if node.int("spatial", 1):
        factor, shift = (_on_channels(b, v, x.rank) for v in (factor, shift))
    elif factor.rank != x.rank - 1 or shift.rank != x.rank - 1:
        raise ValueError(f"statistics of {factor.rank} dimensions for samples of {x.rank - 1}")
    return b.map(lambda v, f, s: v * f.to(v.dtype) + s.to(v.dtype), x, factor, shift, dtype=x.dtype)


def _in_training(
    b: Builder, node: OnnxNode, x: Value, scale: Value, bias: Value, middle: Value, variance: Value
) -> Sequence[Value]:
    """By the mean and variance of x itself; also gives those of all batches so far."""
    axes = [0, *range(2, x.rank)]
    centred, mean_here = _centred(b, widened(b, x), axes)
    spread = _variance(b, centred, axes)
    factor = _inverse_deviation(b, spread, node.float("epsilon", 1e-5))
    scale, bias = (_on_channels(b, v, x.rank) for v in (scale, bias))
    y = _scaled(b, centred, factor, scale, bias, x.dtype)
    kept = node.float("momentum", 0.9)

    def updated(before: Value, here: Value) -> Value:
        new = b.reshape(here, before.shape)
        return b.map(
            lambda v, w: v * kept + w.to(v.dtype) * (1 - kept), before, new, dtype=before.dtype
        )

    return y, updated(middle, mean_here), updated(variance, spread)


@onnx_op("InstanceNormalization")
def instance_normalization(
    b: Builder, node: OnnxNode, x: Value, scale: Value, bias: Value
) -> Value:
    """Each channel of each sample by its own mean and deviation."""
    axes = range(2, x.rank)
    centred, _ = _centred(b, widened(b, x), axes)
    factor = _inverse_deviation(b, _variance(b, centred, axes), node.float("epsilon", 1e-5))
    scale, bias = (_on_channels(b, v, x.rank) for v in (scale, bias))
    return _scaled(b, centred, factor, scale, bias, x.dtype)


@onnx_op("LayerNormalization")
def layer_normalization(
    b: Builder, node: OnnxNode, x: Value, scale: Value, bias: Value | None = None
) -> Sequence[Value]:
    """Over all dimensions from `axis` on; also gives the mean and the inverse deviation."""
    axis = normal_axis(node.int("axis", -1), x.rank)
    stash = f32 if node.int("stash_type", 1) == 1 else x.dtype
    y, middle, factor = layer_norm(b, x, scale, bias, axis, node.float("epsilon", 1e-5))
    return y, converted(b, middle, stash), converted(b, factor, stash)


def layer_norm(
    b: Builder, x: Value, scale: Value, bias: Value | None, axis: int, epsilon: float
) -> tuple[Value, Value, Value]:
    """The normalised tensor, the mean, and the inverse deviation."""
    axes = range(axis, x.rank)
    centred, middle = _centred(b, widened(b, x), axes)
    factor = _inverse_deviation(b, _variance(b, centred, axes), epsilon)
    return _scaled(b, centred, factor, scale, bias, x.dtype), middle, factor


def rms_norm(b: Builder, x: Value, scale: Value, axis: int, epsilon: float) -> tuple[Value, Value]:
    """The tensor by the root of its mean square, and that root's inverse."""
    wide = widened(b, x)
    factor = _inverse_deviation(b, _variance(b, wide, range(axis, x.rank)), epsilon)
    return _scaled(b, wide, factor, scale, None, x.dtype), factor


@onnx_op("RMSNormalization", "SimplifiedLayerNormalization")
@onnx_op("SimplifiedLayerNormalization", domain="com.microsoft")
def rms_normalization(b: Builder, node: OnnxNode, x: Value, scale: Value) -> Sequence[Value]:
    """By the root of the mean square of all dimensions from `axis` on."""
    axis = normal_axis(node.int("axis", -1), x.rank)
    return rms_norm(b, x, scale, axis, node.float("epsilon", 1e-5))


@onnx_op("GroupNormalization")
def group_normalization(b: Builder, node: OnnxNode, x: Value, scale: Value, bias: Value) -> Value:
    """Groups of channels by their mean and deviation; scaled by group before opset 21."""
    groups = node.int("num_groups")
    size = x.shape[1] // groups
    grouped = b.reshape(widened(b, x), (x.shape[0], groups, size, *x.shape[2:]))
    axes = range(2, grouped.rank)
    centred, _ = _centred(b, grouped, axes)
    factor = _inverse_deviation(b, _variance(b, centred, axes), node.float("epsilon", 1e-5))
    own = (groups, size if node.opset >= 21 else 1, *(1 for _ in x.shape[2:]))
    scale, bias = b.reshape(scale, own), b.reshape(bias, own)
    return b.reshape(_scaled(b, centred, factor, scale, bias, x.dtype), x.shape)


@onnx_op("LpNormalization")
def lp_normalization(b: Builder, node: OnnxNode, x: Value) -> Value:
    """By the sum of sizes, or by the root of the sum of squares; zero stays zero."""
    axis = normal_axis(node.int("axis", -1), x.rank)
    is_plain = node.int("p", 2) == 1
    wide = widened(b, x)
    terms = b.map(lambda v: call("abs", v) if is_plain else v * v, wide)
    total = b.reduce(tir.Fold.ADD, terms, (axis,))
    norm = total if is_plain else b.map(lambda v: call("sqrt", v), total)
    return b.map(lambda v, n: select(n.eq(0), 0, v / n), wide, norm, dtype=x.dtype)


@onnx_op("MeanVarianceNormalization")
def mean_variance_normalization(b: Builder, node: OnnxNode, x: Value) -> Value:
    """(x - mean) / deviation; before opset 9 the axes are all, or all but that of channels."""
    axes = sorted(normal_axis(a, x.rank) for a in node.ints("axes", (0, 2, 3)) or ())
    if node.opset < 9 and not node.has("axes"):
        channels = () if node.int("across_channels") else (1,)
        axes = [k for k in range(x.rank) if k not in channels]
    centred, _ = _centred(b, widened(b, x), axes)
    if not node.int("normalize_variance", 1):
        return converted(b, centred, x.dtype)
    variance = _variance(b, centred, axes)
    return b.map(lambda v, s: v / (call("sqrt", s) + 1e-9), centred, variance, dtype=x.dtype)


MAX_AROUND = 256
"""Channels on each side that a local normalisation sums up, where their number is not known."""


@onnx_op("LRN")
def local_response_normalization(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Divided by (bias + alpha·mean square of the channels around) ** beta."""
    size, bias = node.int("size"), node.float("bias", 1.0)
    alpha, beta = node.float("alpha", 1e-4) / size, node.float("beta", 0.75)
    first, most = -((size - 1) // 2), fixed(x.shape[1]) or MAX_AROUND
    if size > 2 * most and fixed(x.shape[1]) is None:
        node.decline(f"{size} channels around")
    around = range(max(first, 1 - most), min(first + size, most))
    pay_steps(b, node, len(around), "channels around")
    others = [_shifted(b, x, k) for k in around if k]

    def body(v: tir.Expr, *around: tir.Expr) -> tir.Expr:
        base = reduce(lambda total, w: total + w * w, around, v * v) * alpha + bias
        if beta == 0.75:
            root = call("rsqrt", base)
            return v * root * call("sqrt", root)
        return v * call("pow", base, -beta)

    return b.map(body, x, *others)


def _shifted(b: Builder, x: Value, by: int) -> Value:
    """The channels that lie `by` further on, zero where there are none."""
    channels = x.shape[1]
    return b.remap(
        x,
        x.shape,
        lambda n, c, *rest: (n, c + by, *rest),
        lambda _, c, *__: (c + by >= 0) & (c + by < channels),
    )
