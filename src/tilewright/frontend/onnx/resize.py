"""`Resize` and `Upsample`.

Dimensions are resized one after another, as `resize_plan` says. Along each, tables say which
elements of the source a result is made of and with which weights; they are constants where sizes
are known, else computed with the sizes and scales of the call. Smoothing while shrinking
(`antialias`) has many weights: `resize_smooth`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from tilewright.dtypes import DType, boolean, f32, f64, i8, i32, i64, u8
from tilewright.frontend.onnx.coordinates import (
    COORDINATES,
    ROUNDINGS,
    Along,
    Interpolation,
    coordinate,
    rounded,
)
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.quantization import saturated
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.resize_plan import by_scales, by_sizes, with_region
from tilewright.frontend.onnx.resize_smooth import smoothed_along
from tilewright.frontend.onnx.shapes import MANY_DIMS, known_axes
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.gather import Gather
from tilewright.graph.sizes import fixed, product
from tilewright.shown import shown
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call

__all__: list[str] = []

KINDS: Final = ("nearest", "linear", "cubic")
"""What a result is made of, since opset 11."""

CUT: Final = (boolean, i8, u8, i32)
"""Where onnxruntime cuts off fractions, between two neighbours without smoothing. ONNX does not say
what happens to fractions; its reference rounds, which is right for all other integers."""


@onnx_op("Upsample")
def upsample(b: Builder, node: OnnxNode, x: Value, scales: Value | None = None) -> Value:
    """`Resize` as it was before coordinates had names."""
    return _old_resize(b, node, x, scales)


@onnx_op("Resize")
def resize(
    b: Builder,
    node: OnnxNode,
    x: Value,
    roi: Value | None = None,
    scales: Value | None = None,
    sizes: Value | None = None,
) -> Value:
    """Another number of elements along some dimensions, nearest or interpolated."""
    if node.opset < 11:
        return _old_resize(b, node, x, roi)
    mode = _word(node, "mode", KINDS)
    coordinates = _word(node, "coordinate_transformation_mode", COORDINATES)
    rounding = _word(node, "nearest_mode", ROUNDINGS)
    axes = known_axes(b, node, x.rank) or list(range(x.rank))
    plan = (
        by_scales(b, node, x, axes, scales)
        if sizes is None or not _given(sizes)
        else by_sizes(b, node, x, axes, sizes)
    )
    if coordinates == "tf_crop_and_resize":
        return _cropped(b, node, x, with_region(b, plan, roi), mode)
    plan = [a for a in plan if not a.stays]
    if node.int("antialias") and mode != "nearest":
        return _smoothed(b, x, plan, _interpolation(node, coordinates, mode))
    if mode == "nearest":
        return _nearest(b, x, plan, coordinates, rounding)
    return _interpolated(b, x, plan, _interpolation(node, coordinates, mode))


def _word(node: OnnxNode, name: str, known: Sequence[str]) -> str:
    """An attribute that is one of some words, the first if it is left out."""
    found = node.string(name, known[0])
    if found not in known:
        raise ValueError(f"its attribute `{name}` is `{shown(found)}`, none of {', '.join(known)}")
    return found


def _interpolation(node: OnnxNode, coordinates: str, kind: str) -> Interpolation:
    steepness = node.float("cubic_coeff_a", -0.75)
    return Interpolation(coordinates, kind, steepness, bool(node.int("exclude_outside")))


def _given(value: Value) -> bool:
    return fixed(value.shape[0]) != 0


def _old_resize(b: Builder, node: OnnxNode, x: Value, scales: Value | None) -> Value:
    plan = by_scales(b, node, x, list(range(x.rank)), scales)
    plan = [a for a in plan if not a.stays]
    if node.string("mode", "nearest") == "nearest":
        return _nearest(b, x, plan, "asymmetric", "simple")
    return _interpolated(b, x, plan, Interpolation("asymmetric", "linear"))


def _nearest(b: Builder, x: Value, plan: Sequence[Along], mode: str, rounding: str) -> Value:
    shape = list(x.shape)
    for along in plan:
        shape[along.axis] = along.after
    repeats = [_repeat(along, mode, rounding) for along in plan]
    if None not in repeats:
        times = {a.axis: n for a, n in zip(plan, repeats, strict=True) if n is not None}
        return b.remap(x, shape, lambda *o: [i // times.get(k, 1) for k, i in enumerate(o)])
    places: list[tir.Expr] = [axis(k) for k in range(x.rank)]
    tables, reads = [], []
    for number, along in enumerate(plan):

        def place(a: Along, o: tir.Expr) -> tir.Expr:
            return rounded(rounding, coordinate(mode, a, o), a)

        tables.append(_table(b, along, place, i64))
        reads.append((number + 1, (axis(along.axis),)))
        places[along.axis] = picked(number)
    return b.add(Gather(tuple(shape), tuple(reads), tuple(places)), x, *tables)


def _table(
    b: Builder, along: Along, function: Callable[[Along, tir.Expr], tir.Expr], dtype: DType
) -> Value:
    """A number for each place of the result; computed by a run from what is data."""
    if not along.operands:
        return b.tabulate((along.after,), partial(function, along), dtype)
    places = b.tabulate((along.after,), lambda o: o, i64)

    def number(o: tir.Expr, *given: tir.Expr) -> tir.Expr:
        return function(along.bound(*given), o)

    return b.map(number, places, *along.operands, dtype=dtype)


def _repeat(along: Along, mode: str, rounding: str) -> int | None:
    """How often each element stands in the result, if all stand equally often."""
    factor = along.factor
    if factor is None or factor.denominator != 1:
        return None
    centred = mode in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")
    even = centred and rounding.startswith("round") and fixed(along.after) != 1
    plain = mode == "asymmetric" and rounding in ("floor", "simple")
    return factor.numerator if even or plain else None


def _interpolated(b: Builder, x: Value, plan: Sequence[Along], how: Interpolation) -> Value:
    """A weighted sum of neighbours along one dimension after another."""
    cuts = how.kind == "linear" and x.dtype in CUT
    wide = _wide(b, x, f32 if cuts or x.dtype.bits <= 16 else f64)
    for along in plan:
        wide = _along(b, wide, along, partial(_interpolated_along, b, how))
    return _narrow(b, wide, x.dtype, cuts=cuts)


def _wide(b: Builder, x: Value, dtype: DType) -> Value:
    """Floats, as they are or of a type that holds the integers of an image."""
    return x if x.dtype.is_float else b.map(lambda v: v.to(dtype), x, dtype=dtype)


def _narrow(b: Builder, x: Value, dtype: DType, *, cuts: bool = False) -> Value:
    """Results as they are stored; cubic ones may lie beyond what integers hold."""
    if x.dtype == dtype:
        return x
    change = (lambda v: v.to(dtype)) if cuts else (lambda v: saturated(call("round", v), dtype))
    return b.map(change, x, dtype=dtype)


def _interpolated_along(b: Builder, how: Interpolation, x: Value, along: Along) -> Value:
    parts: list[Value] = []
    weights: list[Value] = []
    for offset in how.offsets:
        table = _table(b, along, partial(how.place, offset), i64)
        weight = _table(b, along, partial(how.weight, offset), f32)
        parts.append(take(b, x, table, along.axis))
        weights.append(b.reshape(weight, _column(along, x)))
    return b.map(_weighted_sum, *parts, *weights, dtype=x.dtype)


def _along(b: Builder, x: Value, along: Along, change: Callable[[Value, Along], Value]) -> Value:
    """A tensor changed along a dimension; if there are very many others, they are two."""
    if x.rank <= MANY_DIMS:
        return change(x, along)
    before, after = x.shape[: along.axis], x.shape[along.axis + 1 :]
    flat = b.reshape(x, (product(before), along.before, product(after)))
    changed = change(flat, replace(along, axis=1))
    return b.reshape(changed, (*before, along.after, *after))


def _column(along: Along, x: Value) -> tuple[tir.Expr | int, ...]:
    """The shape in which a table along a dimension is broadcast with the result."""
    return (along.after, *[1] * (x.rank - along.axis - 1))


def _weighted_sum(*values: tir.Expr) -> tir.Expr:
    parts, weights = values[: len(values) // 2], values[len(values) // 2 :]
    products = [p * w.to(p.dtype) for p, w in zip(parts, weights, strict=True)]
    return sum(products[1:], products[0])


def _smoothed(b: Builder, x: Value, plan: Sequence[Along], how: Interpolation) -> Value:
    """Each result is a mean over as much of the source as it stands for."""
    wide = _wide(b, x, f32 if x.dtype.bits <= 16 else f64)
    for along in plan:
        if isinstance(along.scale, tir.Const) and along.scale.value >= 1:
            wide = _interpolated(b, wide, [along], how)
        else:
            wide = _along(b, wide, along, partial(smoothed_along, b, how))
    return _narrow(b, wide, x.dtype)


def _cropped(
    b: Builder,
    node: OnnxNode,
    x: Value,
    plan: Sequence[Along],
    kind: str,
) -> Value:
    """A part of the source is resized; outside of the source there is a constant."""
    mode = "tf_crop_and_resize"
    if kind == "nearest":
        made = _nearest(b, x, plan, mode, node.string("nearest_mode", "round_prefer_floor"))
    else:
        change = _smoothed if node.int("antialias") else _interpolated
        made = change(b, x, plan, _interpolation(node, mode, kind))
    beyond = node.float("extrapolation_value")
    for along in plan:

        def outside(a: Along, o: tir.Expr) -> tir.Expr:
            at = coordinate(mode, a, o)
            return ((at < 0.0) | (a.before.to(f32) - 1.0 < at)).to(i64)

        where = _table(b, along, outside, i64)
        table = b.reshape(where, _column(along, x))
        made = b.map(
            lambda v, w: tir.Select(w.ne(0), tir.const(beyond, v.dtype), v),
            made,
            table,
            dtype=x.dtype,
        )
    return made
