"""Linear models of `ai.onnx.ml`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.dtypes import i64
from tilewright.frontend.onnx.ml_scores import (
    DOMAIN,
    as_f32,
    best,
    labelled,
    labels_of,
    transformed,
)
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.sizes import fixed

__all__: list[str] = []


@onnx_op("LinearRegressor", domain=DOMAIN)
def linear_regressor(b: Builder, node: OnnxNode, x: Value) -> Value:
    """x·W + intercepts for each target."""
    scores = _linear(b, node, as_f32(b, x), node.int("targets", 1))
    return transformed(b, node, scores, node.string("post_transform", "NONE"))


def _linear(b: Builder, node: OnnxNode, x: Value, targets: int) -> Value:
    weights = np.array(node.floats("coefficients", ()), np.float32)
    features = len(weights) // targets
    if features * targets != len(weights) or fixed(x.shape[-1]) not in (None, features):
        raise ValueError(f"{len(weights)} coefficients for {targets} results of {x.shape[-1]}")
    rows = b.reshape(x, (1, *x.shape) if x.rank == 1 else (x.shape[0], features))
    table = b.constant(weights.reshape(targets, features).T, "coefficients")
    scores, start = b.matmul(rows, table), node.floats("intercepts", ()) or []
    if not start:
        return scores
    return b.map(lambda v, c: v + c, scores, b.constant(np.array(start, np.float32), "intercepts"))


@onnx_op("LinearClassifier", domain=DOMAIN)
def linear_classifier(b: Builder, node: OnnxNode, x: Value) -> Sequence[Value]:
    """The class of the greatest score; a single score is that of the second of two classes."""
    labels = labels_of(node, "classlabels_ints")
    count = max(len(node.floats("intercepts", ()) or []), 1)
    if len(node.floats("coefficients", ()) or []) % count:
        node.decline("coefficients that do not fit the intercepts")
    scores, transform = _linear(b, node, as_f32(b, x), count), node.string("post_transform")
    if count == 1:
        if len(labels) != 2 or transform in ("SOFTMAX_ZERO", "PROBIT"):
            node.decline("a single score")
        chosen = b.reshape(b.map(lambda v: (v > 0).to(i64), scores), scores.shape[:1])
        scores = b.concat([b.map(lambda v: -v, scores), scores], 1)
        return labelled(b, chosen, labels), transformed(b, node, scores, transform)
    if len(labels) != count:
        node.decline(f"{count} scores of {len(labels)} classes")
    return labelled(b, best(b, scores), labels), transformed(b, node, scores, transform)
