"""Ensembles of decision trees: the leaves that data reach, and what these say together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tilewright.dtypes import f32, f64, i64
from tilewright.frontend.onnx.ml_forest import Forest, forest_of_lists, forest_of_positions
from tilewright.frontend.onnx.ml_scores import (
    DOMAIN,
    as_f32,
    as_floats,
    best,
    labelled,
    labels_of,
    probit,
    transformed,
)
from tilewright.frontend.onnx.movement import cut
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.spending import pay_elements
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.ops.descend import Descend
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__: list[str] = []

AGGREGATES: Final = ("AVERAGE", "SUM", "MIN", "MAX")
TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""In the order of their numbers."""


@onnx_op("TreeEnsemble", domain=DOMAIN)
def tree_ensemble(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Each leaf has one target."""
    targets = node.int("n_targets", 1)
    _pay(b, node, targets, len(node.attributes.get("leaf_weights", ())), "leaf")
    forest = forest_of_positions(node.attributes, targets, _numpy_of(x))
    aggregate = AGGREGATES[node.int("aggregate_function", 1)]
    scores = _scores(b, node, forest, as_floats(b, x), aggregate)
    found = transformed(b, node, scores, TRANSFORMS[node.int("post_transform")])
    return found if found.dtype == x.dtype else b.map(lambda v: v, found, dtype=x.dtype)


@onnx_op("TreeEnsembleRegressor", domain=DOMAIN)
def tree_ensemble_regressor(b: Builder, node: OnnxNode, x: Value) -> Value:
    """A score for each target."""
    targets = node.int("n_targets", 1)
    _pay(b, node, targets, _leaves(node), "target")
    forest = forest_of_lists(node.attributes, "target", targets, _numpy_of(x))
    aggregate = node.string("aggregate_function", "SUM")
    scores = _scores(b, node, forest, as_floats(b, x), aggregate)
    base = _base_values(node, _numpy_of(x))
    if len(base):
        scores = b.map(lambda v, c: v + c, scores, b.constant(base, "base"))
    found = transformed(b, node, scores, node.string("post_transform", "NONE"))
    return found if found.dtype == f32 else b.map(lambda v: v.to(f32), found)


@onnx_op("TreeEnsembleClassifier", domain=DOMAIN)
def tree_ensemble_classifier(b: Builder, node: OnnxNode, x: Value) -> Sequence[Value]:
    """Labels, and scores of all classes; of two classes only one may have scores of its own."""
    labels = labels_of(node, "classlabels_int64s")
    _pay(b, node, len(labels), _leaves(node), "class")
    forest = forest_of_lists(node.attributes, "class", len(labels), _numpy_of(x))
    ends = _ends(b, forest, as_floats(b, x))
    scores, base = _summed(b, forest, ends), _base_values(node, _numpy_of(x))
    transform = node.string("post_transform", "NONE")
    if len(labels) == 1:
        return _of_single(b, scores, base, transform)
    if len(labels) == 2 and not forest.said.any(axis=0).all():
        chosen, final = _of_one(b, node, forest, scores, base, transform)
    else:
        if len(base):
            scores = b.map(lambda v, c: v + c, scores, b.constant(base, "base"))
        told = scores
        if not forest.always_said.all() and not len(
            base
        ):  # a class that no leaf mentions is not chosen
            said = b.reduce(
                tir.Fold.MAX, take(b, b.constant(forest.said), ends, 0), (1,), keepdims=False
            )
            told = b.map(lambda v, s: select(s, v, -math.inf), scores, said)
        chosen, final = best(b, told), transformed(b, node, scores, transform)
    final = final if final.dtype == f32 else b.map(lambda v: v.to(f32), final)
    return labelled(b, chosen, labels), final


def _of_single(b: Builder, scores: Value, base: Any, transform: str) -> tuple[Value, Value]:
    """The only class there is: 1 if its score is positive, else 0, whatever it is called.

    That is what onnxruntime makes of it; of the transforms it knows one here.
    """
    if len(base):
        scores = b.map(lambda v: v + float(base[0]), scores)
    chosen = b.reshape(b.map(lambda v: (v > 0).to(i64), scores), scores.shape[:1])
    final = probit(b, scores) if transform == "PROBIT" else scores
    return chosen, as_f32(b, final)


def _of_one(
    b: Builder, node: OnnxNode, forest: Forest, scores: Value, base: Any, transform: str
) -> tuple[Value, Value]:
    """The class and the scores of two classes of which leaves mention one.

    If that is the first, its score counts for the second one all the same.
    """
    number = int(np.flatnonzero(forest.said.any(axis=0))[0])
    if transform == "PROBIT" or (number and (len(base) or not forest.always_said[number])):
        node.decline("two classes, of which leaves mention one")
    is_share = bool((forest.weights >= 0).all())
    start = float(base[0]) if len(base) else 0.0
    score = cut(b, scores, 1, tir.Const(number), tir.Const(1))
    score = b.map(lambda v: v + start, score) if start else score
    edge = 0.5 if is_share else 0.0
    chosen = b.reshape(b.map(lambda v: (v > edge).to(i64), score), scores.shape[:1])
    if number:
        return chosen, transformed(b, node, scores, transform)
    if transform == "LOGISTIC":
        both = b.concat([b.map(lambda v: -v, score), score], 1)
        return chosen, transformed(b, node, both, transform)
    other = b.map(lambda v: 1 - v if is_share else -v, score)
    return chosen, b.concat([other, score], 1)


def _leaves(node: OnnxNode) -> int:
    return sum(mode in (b"LEAF", "LEAF") for mode in node.attributes.get("nodes_modes", ()))


def _pay(b: Builder, node: OnnxNode, targets: int, leaves: int, kind: str) -> None:
    """Tables have what each leaf says of each target; attributes only what it does say."""
    begin = ("nodes_", f"{kind}_")
    given = sum(np.size(v) for name, v in node.attributes.items() if name.startswith(begin))
    pay_elements(b, node, 2 * leaves * targets, "what leaves say", given)


def _numpy_of(x: Value) -> np.dtype[Any]:
    """The type of thresholds and weights."""
    return np.dtype(np.float64 if x.dtype == f64 else np.float32)


def _base_values(node: OnnxNode, dtype: np.dtype[Any]) -> Any:
    tensor = node.array("base_values_as_tensor")
    return np.asarray(node.floats("base_values", ()) if tensor is None else tensor, dtype)


def _ends(b: Builder, forest: Forest, x: Value) -> Value:
    """The leaf that each row of data reaches in each tree."""
    if x.rank == 1:
        x = b.reshape(x, (1, x.shape[0]))
    if x.rank != 2:
        raise ValueError(f"rows of features are a matrix, and this tensor has {x.rank} dimensions")
    features, known = int(forest.nodes[:, 0].max(initial=0)) + 1, fixed(x.shape[1])
    if known is not None and features > known:
        raise ValueError(f"a node tests feature {features - 1} of {known}")
    op = Descend(forest.levels, features, forest.outcomes)
    tables = [b.constant(forest.nodes, "nodes"), b.constant(forest.limits, "limits")]
    return b.add(op, x, *tables, b.constant(forest.roots, "roots"))


def _scores(b: Builder, node: OnnxNode, forest: Forest, x: Value, aggregate: str) -> Value:
    """[n, targets]: what the leaves say, folded."""
    if aggregate not in AGGREGATES:
        node.decline(f"the aggregate {aggregate}")
    ends = _ends(b, forest, x)
    if aggregate in ("SUM", "AVERAGE"):
        total = _summed(b, forest, ends)
        share = 1 / max(len(forest.roots), 1)
        return total if aggregate == "SUM" else b.map(lambda v: v * share, total)
    nothing = math.inf if aggregate == "MIN" else -math.inf
    weights = np.where(forest.said, forest.weights, forest.weights.dtype.type(nothing))
    fold = tir.Fold.MIN if aggregate == "MIN" else tir.Fold.MAX
    found = b.reduce(fold, take(b, b.constant(weights, "weights"), ends, 0), (1,), keepdims=False)
    return b.map(lambda v: select(v.eq(nothing), 0.0, v), found)


def _summed(b: Builder, forest: Forest, ends: Value) -> Value:
    """[n, targets]: the sums of weights; a product where each tree has one target."""
    targets = forest.weights.shape[1]
    own = forest.own_targets if targets > 1 else None
    if own is None:
        parts = take(b, b.constant(forest.weights, "weights"), ends, 0)
        return b.reduce(tir.Fold.ADD, parts, (1,), keepdims=False)
    single = forest.weights.sum(axis=1)
    parts = take(b, b.constant(single, "weights"), ends, 0)
    is_own = (own[:, None] == np.arange(targets)).astype(single.dtype)
    return b.matmul(parts, b.constant(is_own, "is_own"))
