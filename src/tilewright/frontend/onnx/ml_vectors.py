"""Support vector machines: kernels with the support vectors, then one product for all classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.dtypes import f32, i64
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
from tilewright.frontend.onnx.spending import pay_elements
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.ir import Array
from tilewright.graph.loops import Outside, Turn, loop
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []

SMALL = 1e-7
"""Probabilities of pairs stay this far away from 0 and 1."""


@onnx_op("SVMRegressor", domain=DOMAIN)
def svm_regressor(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Kernels with the support vectors, weighted; of one class, whether the sum is positive."""
    weights = np.array(node.floats("coefficients", ()), np.float32)
    start = (node.floats("rho") or [0.0])[0]
    rows, count = as_f32(b, x), node.int("n_supports")
    if count:
        support = np.array(node.floats("support_vectors", ()), np.float32).reshape(count, -1)
        rows = _kernels(b, node, rows, support)
    total = b.matmul(rows, b.constant(weights.reshape(-1, 1), "coefficients"))
    scores = b.map(lambda v: v + start, total)
    if node.int("one_class"):
        return b.map(lambda v: select(v > 0, tir.const(1.0, f32), tir.const(-1.0, f32)), scores)
    return transformed(b, node, scores, node.string("post_transform", "NONE"))


def _kernels(b: Builder, node: OnnxNode, x: Value, support: Array) -> Value:
    """[n, vectors]: how alike rows of data and support vectors are."""
    gamma, shift, degree = [*(node.floats("kernel_params", ()) or []), 0.0, 0.0, 0.0][:3]
    kind = node.string("kernel_type", "LINEAR")
    if fixed(x.shape[1]) not in (None, support.shape[1]):
        raise ValueError(f"support vectors of {support.shape[1]} features for {x.shape[1]}")
    if kind == "RBF":
        rows = b.reshape(x, (x.shape[0], 1, support.shape[1]))
        away = b.map(lambda v, s: (v - s) * (v - s), rows, b.constant(support, "support"))
        total = b.reduce(tir.Fold.ADD, away, (2,), keepdims=False)
        return b.map(lambda v: call("exp", v * -gamma), total)
    products = b.matmul(x, b.constant(np.ascontiguousarray(support.T), "support"))
    if kind == "LINEAR":
        return products
    if kind == "SIGMOID":
        return b.map(lambda v: call("tanh", v * gamma + shift), products)
    if kind != "POLY":
        node.decline(f"the kernel {kind}")
    return b.map(lambda v: _power(v * gamma + shift, degree), products)


def _power(x: tir.Expr, degree: float) -> tir.Expr:
    if degree != int(degree) or not 0 <= degree <= 16:
        return call("pow", x, degree)
    result: tir.Expr = tir.const(1.0, x.dtype)
    for _ in range(int(degree)):
        result = result * x
    return result


@onnx_op("SVMClassifier", domain=DOMAIN)
def svm_classifier(b: Builder, node: OnnxNode, x: Value) -> Sequence[Value]:
    """A vote for each pair of classes; scores of pairs, or probabilities of classes."""
    labels = labels_of(node, "classlabels_ints")
    counts = node.ints("vectors_per_class", ()) or []
    if len(labels) < 2 or len(counts) != len(labels) or not sum(counts):
        node.decline("no support vectors for each class")
    weights, starts = _pairs(b, node, counts)
    support = np.array(node.floats("support_vectors", ()), np.float32).reshape(sum(counts), -1)
    kernels = _kernels(b, node, as_f32(b, x), support)
    scores = b.matmul(kernels, b.constant(weights, "coefficients"))
    scores = b.map(lambda v, r: v + r, scores, b.constant(starts, "rho"))
    chosen = best(b, _votes(b, scores, len(labels)))
    if node.floats("prob_a"):
        scores = _probabilities(b, node, scores, len(labels))
    elif len(labels) == 2:
        scores = b.concat([b.map(lambda v: -v, scores), scores], 1)
    final = transformed(b, node, scores, node.string("post_transform", "NONE"))
    return labelled(b, chosen, labels), final


def _pairs(b: Builder, node: OnnxNode, counts: Sequence[int]) -> tuple[Array, Array]:
    """The weights [vectors, pairs] and constants of all pairs of classes."""
    total, classes = sum(counts), len(counts)
    lists = [node.floats(name, ()) for name in ("coefficients", "support_vectors", "rho")]
    size = total * (classes * (classes - 1) // 2)
    pay_elements(b, node, size, "weights of all pairs", sum(len(v or ()) for v in lists))
    given = np.array(lists[0], np.float32).reshape(-1, total)
    if min(counts) < 0 or len(given) < classes - 1:
        raise ValueError("there is no coefficient for each vector and each other class")
    firsts = np.cumsum([0, *counts])
    numbers = np.arange(classes)
    begins = numbers * (2 * classes - 1 - numbers) // 2  # pairs are (0, 1), (0, 2), … (1, 2), …
    weights = np.zeros((total, size // total), np.float32)
    for k in range(classes):
        own, others = slice(firsts[k], firsts[k + 1]), classes - 1 - k
        weights[own, begins[k] : begins[k] + others] = given[k : classes - 1, own].T
        weights[own, begins[:k] + k - 1 - numbers[:k]] = given[:k, own].T
    return weights, np.array(node.floats("rho", ()), np.float32)[: size // total]


def _votes(b: Builder, scores: Value, classes: int) -> Value:
    """How many pairs each class wins."""
    won = b.map(lambda v: (v > 0).to(f32), scores)
    return b.reduce(tir.Fold.ADD, _square(b, won, classes), (2,), keepdims=False)


def _square(b: Builder, chances: Value, classes: int) -> Value:
    """[n, classes, classes]: of pairs (i, j), and one less these for (j, i); else zeros."""
    shape = (chances.shape[0], classes, classes)

    def place(n: tir.Expr, i: tir.Expr, j: tir.Expr) -> list[tir.Expr]:
        first, second = tir.minimum(i, j), tir.maximum(i, j)
        return [n, first * (2 * classes - 1 - first) // 2 + (second - first - 1)]

    both = b.remap(chances, shape, place, lambda _, i, j: i.ne(j))
    below = b.tabulate(shape[1:], lambda i, j: (j < i).to(i64))
    return b.map(lambda v, w: select(w > 0, 1 - v, v), both, below)


def _probabilities(b: Builder, node: OnnxNode, scores: Value, classes: int) -> Value:
    """[n, classes]: probabilities that agree best with those of the pairs.

    Found step by step, as the library from which such models come does it, until no probability
    would change by much; every row of data ends for itself.
    """
    first, second = (np.array(node.floats(f"prob_{c}", ()), np.float32) for c in "ab")

    def likely(v: tir.Expr, p: tir.Expr, q: tir.Expr) -> tir.Expr:
        return tir.maximum(tir.minimum(call("sigmoid", -(v * p + q)), 1 - SMALL), SMALL)

    wins = b.map(likely, scores, b.constant(first), b.constant(second))
    square = _system(b, wins, classes)
    rows = scores.shape[0]
    start = b.expand(b.constant(np.float32(1 / classes)), (rows, classes))
    limit = 0.005 / classes

    def body(b: Builder, step: Value, carried: Sequence[Value], outside: Outside) -> Turn:
        (p,), q = carried, outside(square)
        product = b.contract("nij", "nj", "ni", q, p)
        whole = b.reduce(tir.Fold.ADD, b.map(lambda u, v: u * v, p, product), (1,))
        errors = b.map(lambda u, w: call("abs", u - w), product, whole)
        worst = b.reduce(tir.Fold.MAX, errors, (1,))

        def one(b: Builder, step: Value, carried: Sequence[Value], around: Outside) -> Turn:
            return Turn(_step(b, step, around(q), *carried))

        new, _, _ = loop(b, one, b.constant(np.int64(classes)), [p, product, whole])
        after = b.map(lambda e, u, v: select(e < limit, u, v), worst, p, new)
        going = b.map(lambda e: (e >= limit).to(i64), worst)
        some = b.reduce(tir.Fold.MAX, going, (0, 1), keepdims=False)
        return Turn([after], goes_on=b.map(lambda v: v > 0, some))

    times = b.constant(np.int64(max(100, classes)))
    return loop(b, body, times, [start])[0]


def _system(b: Builder, wins: Value, classes: int) -> Value:
    """[n, classes, classes] from the probabilities of pairs, whose form is to be made least."""
    chances = _square(b, wins, classes)
    mirror = b.transpose(chances, (0, 2, 1))
    eye = b.tabulate((classes, classes), lambda i, j: i.eq(j).to(i64))
    sums = b.reduce(tir.Fold.ADD, b.map(lambda r: r * r, mirror), (2,))
    return b.map(lambda e, s, r, m: select(e > 0, s, -r * m), eye, sums, chances, mirror)


def _step(b: Builder, t: Value, q: Value, p: Value, product: Value, whole: Value) -> list[Value]:
    """One probability better, and the others in proportion."""
    row = take(b, q, t, 1)
    own, here = (b.reshape(take(b, v, t, 1), whole.shape) for v in (row, product))
    change = b.map(lambda o, u, w: (w - u) / o, own, here, whole)
    numbers = b.tabulate(p.shape[1:], lambda k: k)
    new_p = b.map(lambda v, d, k, n: (v + select(k.eq(n), d, 0.0)) / (1 + d), p, change, numbers, t)
    new_whole = b.map(
        lambda w, d, o, u: (w + d * (d * o + u * 2)) / (1 + d) / (1 + d), whole, change, own, here
    )
    after = b.map(lambda u, d, r: (u + d * r) / (1 + d), product, change, row)
    return [new_p, after, new_whole]
