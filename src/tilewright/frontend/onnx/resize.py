"""`Resize` and `Upsample`.

Dimensions are resized one after another. Along each, tables say which elements of the source a
result is made of and with which weights; they are constants where sizes are known, else computed
with the sizes of the call. Smoothing while shrinking (`antialias`) has many weights, so there the
table is a matrix and resizing a product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import floor
from typing import Final

import numpy as np

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
from tilewright.frontend.onnx.shapes import MANY_DIMS, known_axes
from tilewright.frontend.onnx.spending import pay_elements
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.ir import Array
from tilewright.graph.ops import Concat, axis, picked
from tilewright.graph.ops.gather import Gather
from tilewright.graph.sizes import fixed, product, tidy
from tilewright.shown import shown
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call

__all__: list[str] = []

MAX_SCALE: Final = 1 << 32
"""No dimension grows by more: products with sizes, and with denominators, stay integers."""

KINDS: Final = ("nearest", "linear", "cubic")
"""What a result is made of, since opset 11."""

CUT: Final = (boolean, i8, u8, i32)
"""Where onnxruntime cuts off fractions, between two neighbours without smoothing. ONNX does not say
what happens to fractions; its reference rounds, which is right for all other integers."""

TABLES: Final = 4
"""Tables of the size of the weights that computing them takes."""


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
        _by_sizes(b, node, x, axes, sizes)
        if _given(sizes)
        else _by_scales(b, node, x, axes, scales)
    )
    if coordinates == "tf_crop_and_resize":
        return _cropped(b, node, x, _parts(b, plan, roi), mode)
    plan = [a for a in plan if tidy(a.before) != tidy(a.after)]
    if node.int("antialias") and mode != "nearest":
        return _smoothed(b, node, x, plan, coordinates, mode)
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


def _given(value: Value | None) -> bool:
    return value is not None and fixed(value.shape[0]) != 0


def _old_resize(b: Builder, node: OnnxNode, x: Value, scales: Value | None) -> Value:
    plan = _by_scales(b, node, x, list(range(x.rank)), scales)
    plan = [a for a in plan if tidy(a.before) != tidy(a.after)]
    if node.string("mode", "nearest") == "nearest":
        return _nearest(b, x, plan, "asymmetric", "simple")
    return _interpolated(b, x, plan, Interpolation("asymmetric", "linear"))


def _by_scales(
    b: Builder, node: OnnxNode, x: Value, axes: Sequence[int], scales: Value | None
) -> list[Along]:
    """The new length is the product, rounded down."""
    held = b.contents(scales) if scales is not None else None
    factors = node.floats("scales") if held is None else [float(v) for v in held.flat]
    if factors is None:
        return node.decline("scales depend on data")
    plan = []
    for position, factor in zip(axes, factors, strict=True):
        if not 0 < factor < MAX_SCALE:
            raise ValueError(f"it scales by {factor}")
        before = x.shape[position]
        scale = tir.const(factor, f32)
        width = before.to(f32) * scale
        along = Along(position, before, before, scale, width)
        number, simple = fixed(before), along.factor
        if number is not None:
            after: tir.Expr = tir.Const(floor(np.float32(number) * np.float32(factor)))
        elif simple is not None:
            after = tidy(before * simple.numerator // simple.denominator)
        else:
            near = Fraction(factor).limit_denominator(1 << 24)
            if np.float32(float(near)) != np.float32(factor):
                return node.decline(f"it scales a symbolic size by {factor}")
            after = tidy(before * near.numerator // near.denominator)
        plan.append(Along(position, before, after, scale, width))
    return plan


def _by_sizes(
    b: Builder, node: OnnxNode, x: Value, axes: Sequence[int], sizes: Value | None
) -> list[Along]:
    """The scale is the quotient of the lengths."""
    wanted = b.integers(sizes) if sizes is not None else None
    if wanted is None:
        return node.decline("sizes depend on data")
    before = [x.shape[a] for a in axes]
    policy = node.string("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        return _by_ratio(node, axes, before, wanted, min if policy == "not_larger" else max)
    plan = []
    for position, old, new in zip(axes, before, wanted, strict=True):
        scale = new.to(f32) / old.to(f32)
        n, m = fixed(old), fixed(new)
        if n and m is not None:
            scale = tir.const(float(np.float32(m) / np.float32(n)), f32)
        plan.append(Along(position, old, new, scale, new.to(f32)))
    return plan


def _by_ratio(
    node: OnnxNode,
    axes: Sequence[int],
    before: Sequence[tir.Expr],
    wanted: Sequence[tir.Expr],
    choose: Callable[[Sequence[float]], float],
) -> list[Along]:
    """One scale for all dimensions: the least or greatest of those that the sizes ask for."""
    old, new = [fixed(d) for d in before], [fixed(d) for d in wanted]
    ratios = [m / n for n, m in zip(old, new, strict=True) if n and m is not None]
    if len(ratios) < len(before):
        return node.decline("an aspect ratio is kept of symbolic sizes")
    scale = tir.const(choose(ratios), f32)
    return [
        Along(
            position,
            dim,
            tir.Const(floor((n or 0) * choose(ratios) + 0.5)),
            scale,
            dim.to(f32) * scale,
        )
        for position, dim, n in zip(axes, before, old, strict=True)
    ]


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
    """A number for each place of the result; computed by a run where data tells a part."""
    if along.told is None:
        return b.tabulate((along.after,), partial(function, along), dtype)
    places = b.tabulate((along.after,), lambda o: o, i64)

    def number(o: tir.Expr, start: tir.Expr, end: tir.Expr) -> tir.Expr:
        return function(replace(along, roi=(start, end)), o)

    return b.map(number, places, *along.told, dtype=dtype)


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


def _smoothed(
    b: Builder, node: OnnxNode, x: Value, plan: Sequence[Along], mode: str, kind: str
) -> Value:
    """Each result is a mean over as much of the source as it stands for.

    What grows needs no mean: its neighbours are as many as without smoothing.
    """
    wide = _wide(b, x, f32 if x.dtype.bits <= 16 else f64)
    how = _interpolation(node, mode, kind)
    for along in plan:
        n, m, scale = fixed(along.before), fixed(along.after), along.scale
        if isinstance(scale, tir.Const) and scale.value >= 1:
            wide = _interpolated(b, wide, [along], how)
            continue
        if n is None or m is None or not isinstance(scale, tir.Const):
            node.decline("symbolic sizes with antialias")
        first = _first(kind, float(scale.value))
        pay_elements(b, node, TABLES * m * 2 * (1 - first), "the table of weights")
        near = b.tabulate((m,), partial(coordinate, mode, along), f32)
        at = b.contents(near)
        if at is None:
            node.decline(f"{m} places with antialias")
        places, shares = _shares(at.astype(np.float64), n, float(scale.value), node, kind)
        table = shares.astype(wide.dtype.numpy)
        wide = _along(b, wide, along, partial(_weighted, b, places, table))
    return _narrow(b, wide, x.dtype)


def _first(kind: str, scale: float) -> int:
    """The number of the first neighbour that counts; the one on the left has number 0."""
    reach = 1 if kind == "linear" else 2
    return floor(-reach / scale) + 1


def _weighted(b: Builder, places: Array, shares: Array, x: Value, where: Along) -> Value:
    """Sums of shares [result, neighbour] of elements: a product with a matrix if it is small."""
    along, n = where.axis, fixed(where.before)
    assert n is not None
    if b.purse.spends(n * len(places)):
        matrix = np.zeros((len(places), n), shares.dtype)
        np.add.at(matrix, (np.arange(len(places))[:, None], places), shares)
        letters = "abcdefgh"[: x.rank]
        result = letters.replace(letters[along], "z")
        return b.contract(letters, f"z{letters[along]}", result, x, b.constant(matrix))
    several = take(b, x, b.constant(places), along)
    table = b.constant(shares.reshape(*shares.shape, *[1] * (x.rank - along - 1)))
    parts = b.map(lambda v, w: v * w, several, table)
    return b.reduce(tir.Fold.ADD, parts, (along + 1,), keepdims=False)


def _shares(at: Array, n: int, scale: float, node: OnnxNode, kind: str) -> tuple[Array, Array]:
    """[result, neighbour]: which elements of the source count, and how much."""
    first = _first(kind, scale)
    base = np.ceil(at) - 1  # the neighbour on the left, also of a point on the grid
    places = base[:, None] + np.arange(first, 2 - first)
    away = np.abs((places - at[:, None]) * scale)
    if kind == "linear":
        weights = np.clip(1 - away, 0, 1)
    else:
        a = node.float("cubic_coeff_a", -0.75)
        inner = ((a + 2) * away - (a + 3)) * away**2 + 1
        outer = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
        weights = np.where(away <= 1, inner, np.where(away < 2, outer, 0))
    if node.int("exclude_outside"):
        weights = np.where((places >= 0) & (places < n), weights, 0)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(places, 0, n - 1).astype(np.int64), weights


def _parts(b: Builder, plan: Sequence[Along], roi: Value | None) -> list[Along]:
    """Which part of each dimension is resized: the starts, then the ends, known or told by data."""
    numbers = [] if roi is None else _elements(b, roi)
    pairs = list(zip(numbers[: len(plan)], numbers[len(plan) :], strict=True))
    if len(pairs) < len(plan):
        raise ValueError(f"its region has {len(numbers)} numbers for {len(plan)} dimensions")
    made: list[Along] = []
    for along, (start, end) in zip(plan, pairs, strict=True):
        if isinstance(start, Value) or isinstance(end, Value):
            first, last = (v if isinstance(v, Value) else _single(b, v) for v in (start, end))
            made.append(replace(along, told=(first, last)))
        elif (start, end) != (0.0, 1.0) or tidy(along.before) != tidy(along.after):
            made.append(replace(along, roi=(start, end)))
    return made


def _single(b: Builder, number: float) -> Value:
    return b.constant([number], dtype=f32)


def _elements(b: Builder, vector: Value) -> list[float | Value]:
    """The elements of a vector: numbers as far as they are known, also in one that joins them."""
    held = b.contents(vector)
    if held is not None:
        return [float(v) for v in held.flat]
    maker = next((n for n in reversed(b.nodes) if vector in n.outputs), None)
    if maker is not None and isinstance(maker.op, Concat):
        return [element for part in maker.inputs for element in _elements(b, part)]
    count = fixed(vector.shape[0])
    if count is None:
        raise ValueError("the length of its region is not known")
    ones = (b.remap(vector, (1,), lambda _, k=k: (k,)) for k in range(count))
    return [b.map(lambda v: v.to(f32), one, dtype=f32) for one in ones]


def _cropped(
    b: Builder,
    node: OnnxNode,
    x: Value,
    plan: Sequence[Along],
    kind: str,
) -> Value:
    """A part of the source is resized; outside of the source there is a constant."""
    mode = "tf_crop_and_resize"
    if node.int("antialias"):
        node.decline("antialias of a part")
    if kind == "nearest":
        made = _nearest(b, x, plan, mode, node.string("nearest_mode", "round_prefer_floor"))
    else:
        made = _interpolated(b, x, plan, _interpolation(node, mode, kind))
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
