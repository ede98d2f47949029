"""Features of `ai.onnx.ml` before a model sees them: scaled, filled in, chosen, encoded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.dtypes import dtype_of, f32, i64
from tilewright.frontend.onnx.control import fails
from tilewright.frontend.onnx.lookup import looked_up
from tilewright.frontend.onnx.ml_scores import DOMAIN, as_f32
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.ir import Array
from tilewright.graph.loops import branch
from tilewright.graph.sizes import fixed, product
from tilewright.shown import quoted
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []


@onnx_op("Scaler", domain=DOMAIN)
def scaler(b: Builder, node: OnnxNode, x: Value) -> Value:
    """(x - offset)·scale for each feature."""
    offset, scale = (np.array(node.floats(n, ()), np.float32) for n in ("offset", "scale"))
    if not len(offset) or len(offset) != len(scale):
        node.decline("offsets and scales that differ in number")
    parts = [b.constant(v, n) for v, n in ((offset, "offset"), (scale, "scale"))]
    return b.map(lambda v, o, s: (v.to(f32) - o) * s, x, *parts)


@onnx_op("Normalizer", domain=DOMAIN)
def normalizer(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Rows by their greatest element, the sum of sizes, or the root of the sum of squares."""
    norm, wide = node.string("norm", "MAX"), as_f32(b, x)
    axes = (x.rank - 1,)
    if norm == "MAX":
        whole = b.reduce(tir.Fold.MAX, wide, axes)
        return b.map(lambda v, w: select(w.eq(0.0), v, v / w), wide, whole)
    if norm == "L1":
        whole = b.reduce(tir.Fold.ADD, b.map(lambda v: call("abs", v), wide), axes)
        return b.map(lambda v, w: select(w.eq(0.0), v, v / w), wide, whole)
    if norm != "L2":
        node.decline(f"the norm {norm}")
    whole = b.reduce(tir.Fold.ADD, b.map(lambda v: v * v, wide), axes)
    return b.map(lambda v, w: select(w.eq(0.0), v, v / call("sqrt", w)), wide, whole)


@onnx_op("Imputer", domain=DOMAIN)
def imputer(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Another value for elements that equal one, or that are NaN."""
    kind = "floats" if x.dtype.is_float else "int64s"
    values = np.array(node.attributes.get(f"imputed_value_{kind}", ()), x.dtype.numpy)
    count = fixed(x.shape[-1])
    if not len(values):
        node.decline("no values to fill in")
    if len(values) > 1 and count not in (None, len(values)):
        values = values[:1]
    filled = b.constant(values, "imputed")
    if x.dtype.is_float:
        old = node.float("replaced_value_float")
        if math.isnan(old):
            return b.map(lambda v, w: select(v.ne(v), w, v), x, filled)
        return b.map(lambda v, w: select(v.eq(old), w, v), x, filled)
    number = tir.const(node.int("replaced_value_int64"), x.dtype)
    return b.map(lambda v, w: select(v.eq(number), w, v), x, filled)


@onnx_op("Binarizer", domain=DOMAIN)
def binarizer(b: Builder, node: OnnxNode, x: Value) -> Value:
    """1 above a threshold, else 0."""
    edge = node.float("threshold")
    return b.map(lambda v: (v.to(f32) if not v.dtype.is_float else v) > edge, x, dtype=x.dtype)


@onnx_op("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(b: Builder, node: OnnxNode, x: Value, places: Value) -> Value:
    """Some of the columns; of a vector, one row of them."""
    count = product(places.shape)
    found = take(b, x, b.reshape(places, (count,)), x.rank - 1)
    return b.reshape(found, (1, count)) if x.rank == 1 else found


@onnx_op("FeatureVectorizer", domain=DOMAIN)
def feature_vectorizer(b: Builder, node: OnnxNode, *parts: Value) -> Value:
    """Columns side by side; what a part has more or less than was said is cut off, or zero."""
    widths = node.ints("inputdimensions", ()) or []
    if len(widths) != len(parts):
        node.decline("parts of unknown width")
    rows: list[Value] = []
    for x, width in zip(parts, widths, strict=True):
        wide = as_f32(b, x)
        if wide.rank == 1:
            wide = b.reshape(wide, (wide.shape[0], 1))
        elif wide.rank != 2:
            wide = b.reshape(wide, (wide.shape[0], product(wide.shape[1:])))
        have = wide.shape[1]
        if fixed(have) != width:
            shape = (wide.shape[0], width)
            wide = b.remap(wide, shape, lambda n, c: (n, c), lambda _, c, have=have: c < have)
        rows.append(wide)
    return b.concat(rows, 1)


@onnx_op("OneHotEncoder", domain=DOMAIN)
def one_hot_encoder(b: Builder, node: OnnxNode, x: Value) -> Value:
    """A new dimension with a one at the place of the category."""
    known = node.ints("cats_int64s", ()) or []
    if not known:
        node.decline("categories that are texts")
    wide = b.reshape(b.map(lambda v: v.to(i64), x, dtype=i64), (*x.shape, 1))
    table = b.constant(np.array(known, np.int64), "cats")
    found = b.map(lambda v, c: v.eq(c).to(f32), wide, table)
    return found if node.int("zeros", 1) else _all_known(b, node, found)


def _all_known(b: Builder, node: OnnxNode, found: Value) -> Value:
    """The ones of categories; a run in which one is not known fails."""
    ones = b.reduce(tir.Fold.MAX, found, (found.rank - 1,))
    lacks = b.map(lambda v: select(v > 0, tir.Const(0), tir.Const(1)), ones, dtype=i64)
    worst = b.reduce(tir.Fold.MAX, lacks, range(lacks.rank), keepdims=False)
    message = f"{quoted(node.label)} got a category that it does not know"
    (result,) = branch(
        b,
        b.map(lambda v: v > 0, worst),
        lambda inner, _: fails(inner, message, [found.type]),
        lambda _, outside: [outside(found)],
    )
    return result


@onnx_op("LabelEncoder", domain=DOMAIN)
def label_encoder(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Numbers for numbers, by a sorted table."""
    keys, values = _list(node, "keys"), _list(node, "values")
    if keys is None or values is None:
        node.decline("keys or values that are texts")
    if len(keys) != len(values) or not len(keys):
        node.decline("keys and values that differ in number")
    default = np.asarray(_default(node, values), values.dtype).reshape(())
    is_nan = np.isnan(keys) if keys.dtype.kind == "f" else np.zeros(len(keys), bool)
    missing = values[is_nan][-1] if is_nan.any() else default
    plain = dict(zip(keys[~is_nan].tolist(), values[~is_nan].tolist(), strict=True))
    order = sorted(plain)
    if not order:
        node.decline("no keys but NaN")
    table = np.array(order, keys.dtype if keys.dtype == x.dtype.numpy else x.dtype.numpy)
    results = np.array([plain[key] for key in order], values.dtype)
    held = b.constant(table, "keys")
    place = looked_up(b, x, table)
    key = take(b, held, place, 0)
    value = take(b, b.constant(results, "values"), place, 0)
    fill = [b.constant(v, n) for v, n in ((default, "default"), (np.asarray(missing), "missing"))]
    kind = dtype_of(values.dtype)
    other = b.map(lambda v, d, m: select(v.ne(v), m, d), x, *fill, dtype=kind)
    return b.map(lambda v, k, w, o: select(v.eq(k), w, o), x, key, value, other, dtype=kind)


def _list(node: OnnxNode, name: str) -> Array | None:
    """Keys or values as an array; None if they are texts."""
    tensor = node.array(f"{name}_tensor")
    if tensor is not None:
        return tensor.ravel() if tensor.dtype.kind in "fiu" else None
    for kind, dtype in (("int64s", np.int64), ("floats", np.float32)):
        if node.has(f"{name}_{kind}"):
            return np.array(node.attributes[f"{name}_{kind}"], dtype)
    return None


def _default(node: OnnxNode, values: Array) -> Any:
    tensor = node.array("default_tensor")
    if tensor is not None:
        return tensor.ravel()[:1]
    if values.dtype.kind == "f":
        return node.float("default_float", -0.0)
    return node.int("default_int64", -1)
