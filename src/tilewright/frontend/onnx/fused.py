"""Operators that onnxruntime's optimiser writes into models: several of the standard's in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tilewright.dtypes import i32
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.normalization import layer_norm, rms_norm
from tilewright.frontend.onnx.products import combined, integer_product, product
from tilewright.frontend.onnx.quantization import QuantizedPair, quantized_dynamically
from tilewright.frontend.onnx.quantized_floats import as_floats, as_small, on_floats
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.gather import Gather
from tilewright.graph.spread import onto
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["fused_matmul"]

DOMAIN: Final = "com.microsoft"


@onnx_op("FusedMatMul", "TransposeMatMul", domain=DOMAIN)
def fused_matmul(b: Builder, node: OnnxNode, x: Value, y: Value) -> Value:
    """A product times alpha, either operand transposed in its last two dimensions."""
    x, y = (
        _rows_first(b, v) if node.int(f"transBatch{name}") and v.rank > 2 else v
        for v, name in ((x, "A"), (y, "B"))
    )
    left = _swapped(b, x) if node.int("transA") and x.rank > 1 else x
    right = _swapped(b, y) if node.int("transB") and y.rank > 1 else y
    return combined(b, b.matmul(left, right), None, node.float("alpha", 1.0), 0)


def _rows_first(b: Builder, x: Value) -> Value:
    """The first dimension moved behind the other ones of the batch."""
    return b.transpose(x, [*range(1, x.rank - 1), 0, x.rank - 1])


def _swapped(b: Builder, x: Value) -> Value:
    order = list(range(x.rank))
    return b.transpose(x, [*order[:-2], order[-1], order[-2]])


def _activation(name: str, alpha: float) -> Callable[[tir.Expr], tir.Expr] | None:
    known: dict[str, Callable[[tir.Expr], tir.Expr]] = {
        "": lambda x: x,
        "Relu": lambda x: tir.maximum(x, 0),
        "LeakyRelu": lambda x: select(x < 0, x * alpha, x),
        "Sigmoid": lambda x: call("sigmoid", x),
        "Tanh": lambda x: call("tanh", x),
    }
    return known.get(name)


@onnx_op("FusedGemm", domain=DOMAIN)
def fused_gemm(b: Builder, node: OnnxNode, x: Value, y: Value, c: Value | None = None) -> Value:
    """`Gemm`, then an activation."""
    name = node.string("activation")
    body = _activation(name, node.float("activation_alpha", 0.01))
    if body is None:
        node.decline(f"activation {name}")
    return b.map(body, product(b, node, x, y, c))


@onnx_op("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=DOMAIN)
def skip_layer_normalization(
    b: Builder, node: OnnxNode, x: Value, skip: Value, scale: Value, *optional: Value | None
) -> Sequence[Value]:
    """The normalised sum of two tensors and a bias; the sum is the last output."""
    simplified = node.op == "SkipSimplifiedLayerNormalization"
    shift, bias = (*((None,) if simplified else ()), *optional, None, None)[:2]
    total = b.map(lambda v, w: v + w, x, onto(b, skip, x.shape))
    if bias is not None:
        total = b.map(lambda v, w: v + w, total, bias)
    epsilon = node.float("epsilon", 1e-12)
    if simplified:
        y, factor = rms_norm(b, total, scale, x.rank - 1, epsilon)
        return y, factor, factor, total
    y, middle, factor = layer_norm(b, total, scale, shift, x.rank - 1, epsilon)
    return y, middle, factor, total


@onnx_op("EmbedLayerNormalization", domain=DOMAIN)
def embed_layer_normalization(
    b: Builder,
    node: OnnxNode,
    tokens: Value,
    segments: Value | None,
    words: Value,
    positions: Value,
    kinds: Value | None,
    scale: Value,
    shift: Value,
    mask: Value | None = None,
    places: Value | None = None,
) -> Sequence[Value]:
    """The normalised sum of the embeddings of words, places and segments; mask sums; the sum."""
    tables = (words, positions, kinds)
    return _embedded(b, node, (tokens, places, segments), tables, (scale, shift), mask)


def _embedded(
    b: Builder,
    node: OnnxNode,
    numbers: tuple[Value, Value | None, Value | None],
    tables: tuple[Value, Value, Value | None],
    norm: tuple[Value, Value],
    mask: Value | None,
) -> tuple[Value, Value, Value]:
    """Rows of the three tables by the three numbers of each token, summed up and normalised."""
    (tokens, places, segments), (words, positions, kinds) = numbers, tables
    if places is None:
        length, width = tokens.shape[1], positions.shape[1]
        own = b.remap(positions, (1, length, width), lambda _, s, h: (s, h))
    else:
        own = _rows(b, positions, places)
    total = b.map(lambda v, w: v + w, _rows(b, words, tokens), own)
    if segments is not None and kinds is not None:
        total = b.map(lambda v, w: v + w, total, _rows(b, kinds, segments))
    y, _, _ = layer_norm(b, total, *norm, 2, node.float("epsilon", 1e-12))
    if mask is None:
        lengths = b.expand(b.constant(0, "lengths", i32), tokens.shape[:1])
    else:
        lengths = b.reduce(tir.Fold.ADD, mask, (1,), keepdims=False)
    return y, lengths, total


@onnx_op("QEmbedLayerNormalization", domain=DOMAIN)
def quantized_embed_layer_normalization(
    b: Builder,
    node: OnnxNode,
    tokens: Value,
    segments: Value | None,
    words: Value,
    positions: Value,
    kinds: Value | None,
    scale: Value,
    shift: Value,
    mask: Value | None,
    *steps_and_zeros: Value | None,
) -> Sequence[Value]:
    """`EmbedLayerNormalization` of bytes: a step for each of five inputs, then a zero for each."""
    steps, zeros = steps_and_zeros[:5], steps_and_zeros[5:]

    def plain(place: int, x: Value) -> Value:
        step, zero = (part[place] if place < len(part) else None for part in (steps, zeros))
        if step is None or zero is None:
            raise ValueError("a scale or a zero point is left out")
        return b.map(lambda v, s, z: (v.to(i32) - z.to(i32)).to(s.dtype) * s, x, step, zero)

    tables = (plain(0, words), plain(1, positions), None if kinds is None else plain(2, kinds))
    norm = (plain(3, scale), plain(4, shift))
    return _embedded(b, node, (tokens, None, segments), tables, norm, mask)[:2]


def _rows(b: Builder, table: Value, numbers: Value) -> Value:
    o = tuple(axis(k) for k in range(numbers.rank + 1))
    shape = (*numbers.shape, table.shape[1])
    return b.add(Gather(shape, ((1, o[:-1]),), (picked(0), o[-1])), table, numbers)


@onnx_op("MatMulIntegerToFloat", domain=DOMAIN)
def integer_matmul_to_float(
    b: Builder,
    node: OnnxNode,
    x: Value,
    y: Value,
    x_scale: Value,
    y_scale: Value,
    x_zero: Value | None = None,
    y_zero: Value | None = None,
    bias: Value | None = None,
) -> Value:
    """The product of quantised matrices as floats, and a bias."""
    return _dequantized(b, integer_product(b, x, y, x_zero, y_zero), x_scale, y_scale, bias)


@onnx_op("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_quantize_matmul(
    b: Builder,
    node: OnnxNode,
    x: Value,
    y: Value,
    y_scale: Value,
    y_zero: Value | None = None,
    bias: Value | None = None,
) -> Value:
    """The product of floats, quantised as they are now, and a quantised matrix."""
    small, x_scale, x_zero = quantized_dynamically(b, x)
    return _dequantized(b, integer_product(b, small, y, x_zero, y_zero), x_scale, y_scale, bias)


def _dequantized(
    b: Builder, total: Value, x_scale: Value, y_scale: Value, bias: Value | None
) -> Value:
    result = b.map(lambda v, s, t: v.to(s.dtype) * (s * t), total, x_scale, y_scale)
    return result if bias is None else b.map(lambda v, w: v + w, result, bias)


@onnx_op("QLinearAdd", "QLinearMul", domain=DOMAIN)
def quantized_binary(b: Builder, node: OnnxNode, *inputs: Value | None) -> Value:
    """The sum or product of quantised tensors, quantised."""
    pair = QuantizedPair.of(inputs)
    is_sum = node.op == "QLinearAdd"
    floats = [as_floats(b, part) for part in (pair.x, pair.y)]
    result = b.map(lambda v, w: v + w if is_sum else v * w, *floats)
    return as_small(b, result, pair.scale, pair.zero, pair.x.values)


@onnx_op("QLinearSigmoid", "QLinearLeakyRelu", domain=DOMAIN)
@on_floats
def quantized_unary(b: Builder, node: OnnxNode, x: Value) -> Value:
    """A function of each element."""
    body = _activation(node.op.removeprefix("QLinear"), node.float("alpha", 0.01))
    assert body is not None
    return b.map(body, x)
