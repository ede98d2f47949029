"""Matrix products, of floats and of quantised integers."""

from __future__ import annotations

from tilewright.dtypes import i32
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.quantization import QuantizedPair, requantized
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ops import computed_as
from tilewright.graph.spread import onto
from tilewright.tensor import ir as tir

__all__ = ["combined", "integer_product", "product"]


@onnx_op("MatMul")
def matmul(b: Builder, node: OnnxNode, x: Value, y: Value) -> Value:
    """NumPy's `x @ y`."""
    return b.matmul(x, y)


@onnx_op("Gemm")
def gemm(b: Builder, node: OnnxNode, x: Value, y: Value, c: Value | None = None) -> Value:
    """The product of two matrices, scaled, and a third one."""
    return product(b, node, x, y, c)


def product(b: Builder, node: OnnxNode, x: Value, y: Value, c: Value | None) -> Value:
    """The sum alpha · x·y + beta · c, either operand transposed."""
    left = "km" if node.int("transA") else "mk"
    right = "nk" if node.int("transB") else "kn"
    alpha, beta = node.float("alpha", 1.0), node.float("beta", 1.0)
    if x.dtype.is_float:
        return combined(b, b.contract(left, right, "mn", x, y), c, alpha, beta)
    if alpha != int(alpha) or beta != int(beta):
        node.decline("fractions of integers")
    return combined(b, b.contract(left, right, "mn", x, y), c, int(alpha), int(beta))


def combined(b: Builder, x: Value, c: Value | None, alpha: float, beta: float) -> Value:
    """The sum alpha · x + beta · c."""
    if c is None or beta == 0:
        return x if alpha == 1 else b.map(lambda v: v * alpha, x)
    return b.map(
        lambda v, w: (v if alpha == 1 else v * alpha) + (w if beta == 1 else w * beta),
        x,
        onto(b, c, x.shape),
    )


@onnx_op("MatMulInteger")
def matmul_integer(
    b: Builder,
    node: OnnxNode,
    x: Value,
    y: Value,
    x_zero: Value | None = None,
    y_zero: Value | None = None,
) -> Value:
    """The product of small integers less their zero points, as i32."""
    return integer_product(b, x, y, x_zero, y_zero)


def integer_product(
    b: Builder, x: Value, y: Value, x_zero: Value | None, y_zero: Value | None
) -> Value:
    """Σ(x - p)(y - q) = Σxy - qΣx - pΣy + n·p·q: the large product stays one of small integers."""
    if x.rank == 1 or y.rank == 1:
        return b.matmul(_moved(b, x, x_zero), _moved(b, y, y_zero), i32)
    result = b.matmul(x, y, i32)
    p, q = _zero_point(b, x_zero, column=True), _zero_point(b, y_zero, column=False)
    if p is not None:
        sums = b.reduce(tir.Fold.ADD, converted(b, y, i32), (y.rank - 2,))
        result = b.map(lambda v, s, z: v - s * z, result, sums, p)
    if q is not None:
        rows = converted(b, x, i32) if p is None else _moved_by(b, x, p)
        sums = b.reduce(tir.Fold.ADD, rows, (x.rank - 1,))
        result = b.map(lambda v, s, z: v - s * z, result, sums, q)
    return result


def _moved(b: Builder, x: Value, zero: Value | None) -> Value:
    return converted(b, x, i32) if zero is None else _moved_by(b, x, zero)


def _moved_by(b: Builder, x: Value, zero: Value) -> Value:
    return b.map(lambda v, z: v.to(i32) - z.to(i32), x, zero)


def _zero_point(b: Builder, zero: Value | None, *, column: bool) -> Value | None:
    """A zero point as i32, None if it is zero; one for each row of the left operand is a column."""
    if zero is None:
        return None
    held = b.contents(zero)
    if held is not None and not held.any():
        return None
    wide = converted(b, zero, i32)
    return b.reshape(wide, (*wide.shape, 1)) if column and wide.rank == 1 else wide


@onnx_op("QLinearMatMul")
def quantized_matmul(b: Builder, node: OnnxNode, *inputs: Value | None) -> Value:
    """The product of quantised tensors, quantised."""
    pair = QuantizedPair.of(inputs)
    x, y = pair.x, pair.y
    total = integer_product(b, x.values, y.values, x.zero, y.zero)
    own = b.reshape(x.scale, (*x.scale.shape, 1)) if x.scale.rank == 1 else x.scale
    wide = [converted(b, v, computed_as(v.dtype)) for v in (own, y.scale, pair.scale)]
    factor = b.map(lambda s, t, u: s * t / u, *wide)
    return requantized(b, total, factor, pair.zero, pair.dtype)
