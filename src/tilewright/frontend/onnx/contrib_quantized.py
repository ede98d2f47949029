"""Quantised layers of onnxruntime's domain: as floats inside, rounded once at the end."""

from __future__ import annotations

from typing import Final

from tilewright.dtypes import DType, f32, i32, u32
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.convolution import qlinear_conv
from tilewright.frontend.onnx.node import OnnxNode, normal_axis, normal_border
from tilewright.frontend.onnx.normalization import softmax_over
from tilewright.frontend.onnx.pooling import average_pool, global_average_pool, max_pool
from tilewright.frontend.onnx.products import integer_product
from tilewright.frontend.onnx.quantization import Quantized, aligned
from tilewright.frontend.onnx.quantized_floats import as_floats, as_small, on_floats
from tilewright.frontend.onnx.reductions import mean
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.windows import channels_first, channels_last
from tilewright.graph import Builder, Value
from tilewright.graph.guards import is_one
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__: list[str] = []

DOMAIN: Final = "com.microsoft"


def _single(made: object) -> Value:
    """The only result of a handler."""
    found = made[0] if isinstance(made, list | tuple) else made
    assert isinstance(found, Value)
    return found


@onnx_op("QLinearSoftmax", domain=DOMAIN)
@on_floats
def quantized_softmax(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Along one axis; if `opset` is below 13, along all from that axis on."""
    modern = node.int("opset", 13) >= 13
    if modern:
        axes = [normal_axis(node.int("axis", -1), x.rank)]
    else:
        axes = list(range(normal_border(node.int("axis", 1), x.rank), x.rank))
    return softmax_over(b, x, axes, logarithm=False)


@onnx_op("QLinearConcat", domain=DOMAIN)
def quantized_concat(
    b: Builder, node: OnnxNode, scale: Value, zero: Value, *inputs: Value | None
) -> Value:
    """Tensors one after another, each given with its scale and zero point."""
    parts: list[Value] = []
    for x, x_scale, x_zero in zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True):
        if x is None or x_scale is None:
            raise ValueError("a part or its scale is left out")
        floats = as_floats(b, Quantized(x, x_scale, x_zero))
        parts.append(as_small(b, floats, scale, zero, x))
    return b.concat(parts, normal_axis(node.int("axis"), parts[0].rank))


@onnx_op("QLinearAveragePool", "QLinearGlobalAveragePool", domain=DOMAIN)
@on_floats
def quantized_average_pool(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The means of windows, or of whole channels; channels may be last."""
    last = bool(node.int("channels_last"))
    pool = average_pool if node.op == "QLinearAveragePool" else global_average_pool
    y = _single(pool(b, node, channels_first(b, x) if last else x))
    return channels_last(b, y) if last else y


@onnx_op("QLinearReduceMean", domain=DOMAIN)
@on_floats
def quantized_mean(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The mean over some dimensions, or over all."""
    axes = sorted(normal_axis(a, x.rank) for a in node.ints("axes") or range(x.rank))
    y = mean(b, x, axes)
    if not node.int("keepdims", 1):
        y = b.reshape(y, [d for k, d in enumerate(x.shape) if k not in axes])
    return y


@onnx_op("QLinearWhere", domain=DOMAIN)
def quantized_where(b: Builder, node: OnnxNode, condition: Value, *inputs: Value) -> Value:
    """One of two quantised tensors, quantised anew."""
    x, x_scale, x_zero, y, y_scale, y_zero, scale, zero = inputs
    parts = [
        as_small(b, as_floats(b, Quantized(*one)), scale, zero, one[0])
        for one in ((x, x_scale, x_zero), (y, y_scale, y_zero))
    ]
    return b.map(select, condition, *parts)


@onnx_op("QGemm", domain=DOMAIN)
def quantized_gemm(
    b: Builder,
    node: OnnxNode,
    x: Value,
    x_scale: Value,
    x_zero: Value | None,
    y: Value,
    y_scale: Value,
    y_zero: Value | None,
    c: Value | None = None,
    scale: Value | None = None,
    zero: Value | None = None,
) -> Value:
    """alpha·x·y + c of quantised matrices; floats if the result has no scale."""
    left = b.transpose(x, (1, 0)) if node.int("transA") else x
    right = b.transpose(y, (1, 0)) if node.int("transB") else y
    total = integer_product(b, left, right, _scalar(b, x_zero), _scalar(b, y_zero))
    if c is not None:
        total = b.map(lambda v, w: v + w, total, c)
    alpha = node.float("alpha", 1.0)
    steps = [aligned(b, s, total, 1) for s in (x_scale, y_scale)]
    floats = b.map(lambda v, s, t: v.to(f32) * (s * t * alpha), total, *steps)
    return floats if scale is None else as_small(b, floats, scale, zero, x)


def _scalar(b: Builder, zero: Value | None) -> Value | None:
    """A zero point for all without dimensions; one for each column as it is."""
    if zero is None or zero.rank == 0:
        return zero
    return b.reshape(zero, ()) if is_one(b, zero.shape[0], "zero points") else zero


@onnx_op("QLinearConv", domain=DOMAIN)
def channels_last_quantized_conv(
    b: Builder, node: OnnxNode, x: Value, *others: Value | None
) -> Value:
    """The standard's, or the same with channels last."""
    if not node.int("channels_last"):
        return _single(qlinear_conv(b, node, x, *others))
    return channels_last(b, _single(qlinear_conv(b, node, channels_first(b, x), *others)))


@onnx_op("NhwcMaxPool", domain=DOMAIN)
def channels_last_max_pool(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The greatest elements of windows over channels-last data."""
    return channels_last(b, _single(max_pool(b, node, channels_first(b, x))))


@onnx_op("MulInteger", domain=DOMAIN)
def integer_product_of_elements(
    b: Builder,
    node: OnnxNode,
    x: Value,
    x_zero: Value | None,
    y: Value,
    y_zero: Value | None = None,
) -> Value:
    """Products of elements less their zero points, as i32."""
    parts = [_moved(b, v, z) for v, z in ((x, x_zero), (y, y_zero))]
    return b.map(lambda v, w: v * w, *parts)


def _moved(b: Builder, x: Value, zero: Value | None) -> Value:
    if zero is None:
        return converted(b, x, i32)
    return b.map(lambda v, z: v.to(i32) - z.to(i32), x, aligned(b, zero, x, 0))


@onnx_op("ReduceSumInteger", domain=DOMAIN)
def integer_sum(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Sums over dimensions, in 32 bits of the same sign."""
    axes = sorted(normal_axis(a, x.rank) for a in node.ints("axes") or range(x.rank))
    wide = converted(b, x, _wide(x.dtype))
    return b.reduce(tir.Fold.ADD, wide, axes, keepdims=bool(node.int("keepdims", 1)))


@onnx_op("MatMulInteger16", domain=DOMAIN)
def product_of_short_integers(b: Builder, node: OnnxNode, x: Value, y: Value) -> Value:
    """The product of 16-bit integers, in 32 bits."""
    wide = _wide(x.dtype)
    return b.matmul(converted(b, x, wide), converted(b, y, wide), wide)


def _wide(dtype: DType) -> DType:
    return i32 if dtype.is_signed else u32
