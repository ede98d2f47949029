"""Numbers as small integers or floats: value = (small - zero point)·scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.dtypes import DTYPES, DType, bf16, f8e8m0, f16, f32, i8, i16, i32, u8, u16
from tilewright.frontend.onnx.conversions import converted, held
from tilewright.frontend.onnx.node import OnnxNode, dtype_of_onnx, normal_border
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.guards import is_one
from tilewright.graph.sizes import as_shape, fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select
from tilewright.tensor.printer import print_node

__all__ = ["Quantized", "QuantizedPair", "aligned", "quantized_dynamically", "requantized"]
__all__ += ["saturated"]

QUANTIZED: Final = (i8, u8, i16, u16, *(t for t in DTYPES.values() if t.is_small and t != f8e8m0))


@dataclass(frozen=True)
class Quantized:
    """A tensor of small integers; no zero point means zero."""

    values: Value
    scale: Value
    zero: Value | None


@dataclass(frozen=True)
class QuantizedPair:
    """What operators of two quantised tensors take: both of them, and how the result is stored."""

    x: Quantized
    y: Quantized
    scale: Value
    zero: Value | None

    @classmethod
    def of(cls, inputs: Sequence[Value | None]) -> QuantizedPair:
        """The inputs in ONNX's order; only zero points may be missing."""
        given = (*inputs, None)[:8]
        needed = [given[k] for k in (0, 1, 3, 4, 6)]
        x, x_scale, y, y_scale, scale = (value for value in needed if value is not None)
        return cls(
            Quantized(x, x_scale, given[2]), Quantized(y, y_scale, given[5]), scale, given[7]
        )

    @property
    def dtype(self) -> DType:
        """The element type of the result."""
        return self.x.values.dtype if self.zero is None else self.zero.dtype


def aligned(b: Builder, part: Value, x: Value, axis: int, block: int = 0) -> Value:
    """A scale or zero point in a shape that meets x: for all, for each slice, or for each block."""
    if block:
        return b.remap(
            _fitting(b, part, x, axis, block),
            x.shape,
            lambda *o: tuple(i // block if k == axis else i for k, i in enumerate(o)),
        )
    if part.rank == 0 or (part.rank == 1 and is_one(b, part.shape[0], "scales")):
        return b.reshape(part, ())
    if part.rank > 1:
        return part
    return b.reshape(part, [part.shape[0] if k == axis else 1 for k in range(x.rank)])


def _fitting(b: Builder, part: Value, x: Value, axis: int, block: int) -> Value:
    """One element for each block of x, and no more; where sizes are symbolic, a run finds out."""
    if block < 0:
        raise ValueError(f"blocks of {block} elements")
    wanted = as_shape((d + (block - 1)) // block if k == axis else d for k, d in enumerate(x.shape))
    pairs = list(zip(part.shape, wanted, strict=True))
    if any(None not in (fixed(d), fixed(w)) and fixed(d) != fixed(w) for d, w in pairs):
        have, want = (", ".join(map(print_node, shape)) for shape in (part.shape, wanted))
        raise ValueError(f"scales or zero points [{have}], where there are blocks [{want}]")
    return b.expand(part, [d if fixed(d) == 1 else w for d, w in pairs])


def saturated(value: tir.Expr, dtype: DType) -> tir.Expr:
    """A whole number held in the range of an integer type."""
    low, high = float(dtype.min_value), float(dtype.max_value)
    return tir.maximum(tir.minimum(value, high), low).to(dtype)


def _quantized(v: tir.Expr, scale: tir.Expr, zero: tir.Expr | None, dtype: DType) -> tir.Expr:
    return _moved(v / scale, zero, dtype)


def _moved(v: tir.Expr, zero: tir.Expr | None, dtype: DType) -> tir.Expr:
    """A quotient as a quantised number."""
    if dtype.is_float:  # rounded when it is stored
        return v if zero is None else v + zero.to(v.dtype)
    whole = call("round", v)
    return saturated(whole if zero is None else whole + zero.to(v.dtype), dtype)


@onnx_op("QuantizeLinear")
@onnx_op("QuantizeLinear", domain="com.microsoft")
def quantize_linear(
    b: Builder, node: OnnxNode, x: Value, scale: Value, zero: Value | None = None
) -> Value:
    """round(x / scale) + zero point, ties to even, held in the range of the type.

    Small floats are rounded to their own digits. They may turn into NaN or infinity where they
    do not saturate. Since opset 23 the quotient has the digits of the scale, or of `precision`.
    """
    if zero is not None:
        dtype = zero.dtype
    else:
        dtype = dtype_of_onnx(node.int("output_dtype")) if node.int("output_dtype") else u8
    if dtype not in QUANTIZED:
        node.decline(f"quantized type {dtype}")
    given = dtype_of_onnx(node.int("precision")) if node.int("precision") else None
    digits = given or (scale.dtype if node.opset >= 23 and not node.proto.domain else f32)
    axis, block = normal_border(node.int("axis", 1), x.rank), node.int("block_size")
    parts = [aligned(b, p, x, axis, block) for p in (scale, zero) if p is not None]

    form = dtype.format if node.int("saturate", 1) else None

    def last(quotient: tir.Expr, z: tir.Expr | None = None) -> tir.Expr:
        value = _moved(quotient, z, dtype)
        return value if form is None else held(value, form)

    if digits in (f16, bf16):
        both = (converted(b, v, digits) for v in (x, parts[0]))
        quotient = b.map(lambda v, s: v / s, *both, dtype=digits)
        return b.map(last, quotient, *parts[1:], dtype=dtype)
    if digits != f32:
        node.decline("division in another precision")
    return b.map(lambda v, s, *z: last(v.to(s.dtype) / s, *z), x, *parts, dtype=dtype)


@onnx_op("DequantizeLinear")
@onnx_op("DequantizeLinear", domain="com.microsoft")
def dequantize_linear(
    b: Builder, node: OnnxNode, x: Value, scale: Value, zero: Value | None = None
) -> Value:
    """(x - zero point)·scale."""
    if x.dtype not in (*QUANTIZED, i32):
        node.decline(f"quantized type {x.dtype}")
    dtype = dtype_of_onnx(node.int("output_dtype")) if node.int("output_dtype") else scale.dtype
    axis, block = normal_border(node.int("axis", 1), x.rank), node.int("block_size")
    parts = [aligned(b, p, x, axis, block) for p in (scale, zero) if p is not None]

    def body(v: tir.Expr, s: tir.Expr, z: tir.Expr | None = None) -> tir.Expr:
        wide = f32 if v.dtype.is_float else i32
        moved = v.to(wide) if z is None else v.to(wide) - z.to(wide)
        return moved.to(f32) * s.to(f32)

    # Constants stay integers, for `passes/integer_products.py`.
    return b.map(body, x, *parts, dtype=dtype, fold=x.dtype not in (i8, u8))


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(b: Builder, node: OnnxNode, x: Value) -> Sequence[Value]:
    """Values as u8 with the scale and the zero point that fit them."""
    return quantized_dynamically(b, x)


def quantized_dynamically(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """Scale and zero point such that all values, and zero, have a place in u8."""
    axes = range(x.rank)
    least = b.reduce(tir.Fold.MIN, x, axes, keepdims=False)
    greatest = b.reduce(tir.Fold.MAX, x, axes, keepdims=False)

    def spread(low: tir.Expr, high: tir.Expr) -> tir.Expr:
        width = tir.maximum(high, 0) - tir.minimum(low, 0)
        return select(width.eq(0), 1.0, width) / 255

    def place(low: tir.Expr, s: tir.Expr) -> tir.Expr:
        # A quotient that is none (0/0, ∞/∞) counts as large, as in the reference implementation.
        found = call("round", -(tir.minimum(low, 0) / s))
        return select(found < u8.max_value, saturated(found, u8), u8.max_value)

    scale = b.map(spread, least, greatest)
    zero = b.map(place, least, scale)
    y = b.map(lambda v, s, z: _quantized(v, s, z, u8), x, scale, zero)
    return y, scale, zero


def requantized(b: Builder, x: Value, factor: Value, zero: Value | None, dtype: DType) -> Value:
    """Sums of integer products, scaled and rounded to a small type.

    As all quantisation: what is halfway between two numbers is rounded before it is moved.
    """

    def body(v: tir.Expr, f: tir.Expr, z: tir.Expr | None = None) -> tir.Expr:
        return _moved(v.to(f32) * f, z, dtype)

    return b.map(body, x, factor) if zero is None else b.map(body, x, factor, zero)
