"""What the classifiers and regressors of `ai.onnx.ml` do with scores: transforms, and labels."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tilewright.dtypes import f32, i64
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.ops import ArgReduce, computed_as
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["DOMAIN", "as_f32", "as_floats", "best", "labelled", "labels_of", "probit"]
__all__ += ["transformed"]

DOMAIN: Final = "ai.onnx.ml"
NEARLY_ZERO: Final = 1e-7


def as_floats(b: Builder, x: Value) -> Value:
    """Data in the type in which it is computed: doubles stay, all others are f32."""
    if x.dtype.is_float:
        wide = computed_as(x.dtype)
        return x if wide == x.dtype else b.map(lambda v: v, x, dtype=wide)
    return b.map(lambda v: v.to(f32), x)


def as_f32(b: Builder, x: Value) -> Value:
    """Data as f32, whatever it is."""
    return x if x.dtype == f32 else b.map(lambda v: v.to(f32), x, dtype=f32)


def transformed(b: Builder, node: OnnxNode, scores: Value, name: str) -> Value:
    """Scores [n, classes] as the attribute `post_transform` says."""
    if name in ("", "NONE"):
        return scores
    if name == "LOGISTIC":
        return b.map(lambda v: call("sigmoid", v), scores)
    if name == "PROBIT":
        return probit(b, scores)
    if name not in ("SOFTMAX", "SOFTMAX_ZERO"):
        node.decline(f"the transform {name}")
    top = b.reduce(tir.Fold.MAX, scores, (1,))

    def power(v: tir.Expr, m: tir.Expr) -> tir.Expr:
        usual = call("exp", v - m)
        if name == "SOFTMAX":
            return usual
        return select(call("abs", v) > NEARLY_ZERO, usual, v * call("exp", -m))

    powers = b.map(power, scores, top)
    total = b.reduce(tir.Fold.ADD, powers, (1,))
    return b.map(lambda p, s: select(s.eq(0.0), 0.5, p / s), powers, total)


def probit(b: Builder, scores: Value) -> Value:
    """The transform of this name."""
    return b.map(_probit, scores)


def _probit(v: tir.Expr) -> tir.Expr:
    """The inverse of the normal distribution, by a formula for the inverse error function."""
    x = v * 2 - 1
    log = call("log", (1 - x) * (1 + x))
    middle = 2 / (math.pi * 0.147) + log * 0.5
    size = call("sqrt", call("sqrt", middle * middle - log * (1 / 0.147)) - middle)
    return select(x < 0, -size, size) * 1.41421356


def best(b: Builder, scores: Value) -> Value:
    """The number of the first greatest score in each row."""
    found = b.add(ArgReduce(tir.Fold.MAX, 1, last=False), scores)
    return b.reshape(found, scores.shape[:1])


def labels_of(node: OnnxNode, *names: str) -> list[int]:
    """Labels of classes, which must be integers."""
    for name in names:
        if node.has(name) and node.attributes[name]:
            return [int(v) for v in node.attributes[name]]
    return node.decline("labels that are texts")


def labelled(b: Builder, numbers: Value, labels: list[int]) -> Value:
    """The labels of classes, by their numbers."""
    if labels == list(range(len(labels))):
        return numbers
    return take(b, b.constant(np.array(labels, np.int64), "labels", i64), numbers, 0)
