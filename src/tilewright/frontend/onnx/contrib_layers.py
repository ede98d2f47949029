"""Layers that onnxruntime's optimiser writes as one operator: an activation, a residual, a bias."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tilewright.frontend.onnx.convolution import conv, conv_transpose
from tilewright.frontend.onnx.fused import fused_matmul
from tilewright.frontend.onnx.node import OnnxNode, normal_border
from tilewright.frontend.onnx.normalization import softmax_over
from tilewright.frontend.onnx.reductions import mean, widened
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.windows import channels_first, channels_last
from tilewright.graph import Builder, Value
from tilewright.graph.sizes import dims_equal, fixed, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []

DOMAIN: Final = "com.microsoft"

Function = Callable[[tir.Expr], tir.Expr]


def _activation(node: OnnxNode, name: str, given: Sequence[float]) -> Function:
    """An activation by name, with parameters in order."""

    def parameter(number: int, default: float) -> float:
        return given[number] if len(given) > number else default

    first = parameter(0, {"HardSigmoid": 0.2, "LeakyRelu": 0.01}.get(name, 0.0))
    second = parameter(1, {"HardSigmoid": 0.5}.get(name, 0.0))
    known: dict[str, Function] = {
        "": lambda v: v,
        "Relu": lambda v: tir.maximum(v, 0),
        "LeakyRelu": lambda v: select(v < 0, v * first, v),
        "Sigmoid": lambda v: call("sigmoid", v),
        "Tanh": lambda v: call("tanh", v),
        "Clip": lambda v: tir.maximum(tir.minimum(v, second), first),
        "HardSigmoid": lambda v: tir.maximum(tir.minimum(v * first + second, 1), 0),
    }
    if name not in known or (name == "Clip" and len(given) != 2):
        node.decline(f"activation {name}")
    return known[name]


@onnx_op("FusedConv", domain=DOMAIN)
def fused_conv(
    b: Builder,
    node: OnnxNode,
    x: Value,
    w: Value,
    bias: Value | None = None,
    residual: Value | None = None,
) -> Value:
    """A convolution, plus a residual, then an activation."""
    function = _activation(node, node.string("activation"), node.floats("activation_params") or [])
    y = conv(b, node, x, w, bias)
    assert isinstance(y, Value)
    return b.map(function, y) if residual is None else _added(b, function, y, residual)


def _added(b: Builder, function: Function, y: Value, residual: Value) -> Value:
    return b.map(lambda v, z: function(v + z), y, residual)


@onnx_op("NhwcConv", "NhwcFusedConv", domain=DOMAIN)
def channels_last_conv(
    b: Builder,
    node: OnnxNode,
    x: Value,
    w: Value,
    bias: Value | None = None,
    residual: Value | None = None,
) -> Value:
    """`FusedConv` of channels-last data."""
    z = None if residual is None else channels_first(b, residual)
    y = fused_conv(b, node, channels_first(b, x), w, bias, z)
    assert isinstance(y, Value)
    return channels_last(b, y)


@onnx_op("ConvTransposeWithDynamicPads", domain=DOMAIN)
def conv_transpose_with_pads(
    b: Builder,
    node: OnnxNode,
    x: Value,
    w: Value,
    pads: Value | None = None,
    bias: Value | None = None,
) -> Value:
    """A transposed convolution whose border is an input."""
    known = [0] * (2 * (x.rank - 2)) if pads is None else b.numbers(pads)
    if known is None:
        node.decline("a border that depends on data")
    settled = OnnxNode(node.proto, node.opset, node.build, {**node.attributes, "pads": known})
    y = conv_transpose(b, settled, x, w, bias)
    assert isinstance(y, Value)
    return y


@onnx_op("FusedMatMulActivation", domain=DOMAIN)
def fused_matmul_activation(b: Builder, node: OnnxNode, x: Value, y: Value) -> Value:
    """`FusedMatMul`, then an activation."""
    given = [
        node.float(f"activation_{n}") for n in ("alpha", "beta") if node.has(f"activation_{n}")
    ]
    function = _activation(node, node.string("activation"), given)
    found = fused_matmul(b, node, x, y)
    assert isinstance(found, Value)
    return b.map(function, found)


@onnx_op("BiasAdd", domain=DOMAIN)
def bias_add(b: Builder, node: OnnxNode, x: Value, bias: Value, skip: Value) -> Value:
    """The sum of all inputs."""
    return b.map(lambda v, c, s: v + c + s, x, bias, skip)


@onnx_op("BiasSplitGelu", domain=DOMAIN)
def bias_split_gelu(b: Builder, node: OnnxNode, x: Value, bias: Value) -> Value:
    """The first half of x + bias times the `Gelu` of the second."""
    half = tidy(x.shape[-1] // 2)
    total = b.map(lambda v, c: v + c, x, bias)
    shape = (*x.shape[:-1], half)
    left = b.remap(total, shape, lambda *o: o)
    right = b.remap(total, shape, lambda *o: [*o[:-1], o[-1] + half])
    return b.map(lambda v, w: v * call("gelu", w), left, right)


@onnx_op("BiasSoftmax", domain=DOMAIN)
def bias_softmax(b: Builder, node: OnnxNode, x: Value, bias: Value) -> Value:
    """Softmax of x + bias over all dimensions from `axis` on.

    The bias has the last dimensions of x, with ones where it is broadcast inside of them.
    """
    axis = normal_border(node.int("axis", 1), x.rank)
    if bias.rank < x.rank and node.int("is_inner_broadcast", 1):
        node.decline("a bias with fewer dimensions that is broadcast inside")
    total = b.map(lambda v, c: v + c, x, bias)
    return softmax_over(b, total, tuple(range(axis, x.rank)), logarithm=False)


@onnx_op("GemmFastGelu", domain=DOMAIN)
def gemm_fast_gelu(
    b: Builder, node: OnnxNode, x: Value, w: Value, bias: Value | None = None
) -> Value:
    """A product, a bias, and `FastGelu`."""
    from tilewright.frontend.onnx.activations import gelu_tanh

    y = b.matmul(x, w)
    if bias is None:
        return b.map(gelu_tanh, y)
    return b.map(lambda v, c: gelu_tanh(v + c), y, bias)


@onnx_op("GroupNorm", domain=DOMAIN)
def group_norm(b: Builder, node: OnnxNode, x: Value, scale: Value, shift: Value) -> Value:
    """Groups of channels by their mean and deviation, then perhaps x·sigmoid(x)."""
    return _normalised(b, node, x, scale, shift)


@onnx_op("SkipGroupNorm", domain=DOMAIN)
def skip_group_norm(
    b: Builder,
    node: OnnxNode,
    x: Value,
    scale: Value,
    shift: Value,
    skip: Value,
    bias: Value | None = None,
) -> Sequence[Value]:
    """`GroupNorm` of x + skip + bias, and that sum."""
    last = bool(node.int("channels_last", 1))

    def on_channels(part: Value) -> Value:
        """(batch, channels) or (channels) in a shape that meets x."""
        ones: list[tir.Expr] = [tir.Const(1)] * (x.rank - 2)
        shape = [*part.shape[:-1], *ones, part.shape[-1]] if last else [*part.shape, *ones]
        return b.reshape(part, shape) if part.rank < x.rank else part

    total = b.map(lambda v, s: v + s, x, on_channels(skip))
    if bias is not None:
        total = b.map(lambda v, c: v + c, total, on_channels(bias))
    return _normalised(b, node, total, scale, shift), total


def _normalised(b: Builder, node: OnnxNode, x: Value, scale: Value, shift: Value) -> Value:
    last, groups = bool(node.int("channels_last", 1)), node.int("groups")
    first = channels_first(b, x) if last else x
    size = tidy(first.shape[1] // groups)
    if fixed(first.shape[1]) is not None and not dims_equal(first.shape[1], size * groups):
        node.decline("channels that are no multiple of the groups")
    wide = b.reshape(widened(b, first), (first.shape[0], groups, size, *first.shape[2:]))
    axes = range(2, wide.rank)
    middle = mean(b, wide, axes)
    centred = b.map(lambda v, m: v - m, wide, middle)
    variance = mean(b, b.map(lambda v: v * v, centred), axes)
    own = (tir.Const(groups), size, *(tir.Const(1) for _ in first.shape[2:]))
    epsilon, swish = node.float("epsilon", 1e-5), node.int("activation") == 1

    def body(*args: tir.Expr) -> tir.Expr:
        v, q, s, c = args
        y = v * call("rsqrt", q + epsilon) * s.to(v.dtype) + c.to(v.dtype)
        return y * call("sigmoid", y) if swish else y

    parts = [b.reshape(p, own) for p in (scale, shift)]
    y = b.reshape(b.map(body, centred, variance, *parts, dtype=x.dtype), first.shape)
    return channels_last(b, y) if last else y
