"""Distances, complex products, inverse matrices, hashes (domain com.microsoft)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tilewright.dtypes import f32, f64, i32, u32, u64
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.pivots import pivoted
from tilewright.frontend.onnx.reductions import widened
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.spending import pay_steps
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.loops import Outside, Turn, loop
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.scatter import Scatter
from tilewright.graph.sizes import product, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []

DOMAIN: Final = "com.microsoft"


@onnx_op("CDist", domain=DOMAIN)
def distances(b: Builder, node: OnnxNode, x: Value, y: Value) -> Value:
    """How far each row of one matrix is from each row of the other."""
    metric = node.string("metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean"):
        node.decline(f"the metric {metric}")
    rows = b.reshape(x, (x.shape[0], 1, x.shape[1]))
    away = b.map(lambda v, w: (v - w) * (v - w), rows, y)
    total = b.reduce(tir.Fold.ADD, away, (2,), keepdims=False)
    return total if metric == "sqeuclidean" else b.map(lambda v: call("sqrt", v), total)


@onnx_op("ComplexMul", "ComplexMulConj", domain=DOMAIN)
def complex_product(b: Builder, node: OnnxNode, x: Value, y: Value) -> Value:
    """Products of complex numbers, which are pairs; of the second its conjugate may be taken."""
    sign = -1.0 if node.op == "ComplexMulConj" else 1.0

    def part(v: Value, at: int) -> Value:
        return b.remap(v, (*v.shape[:-1], 1), lambda *o: [*o[:-1], at])

    a, c, d, e = part(x, 0), part(x, 1), part(y, 0), part(y, 1)
    real = b.map(lambda p, q, r, s: p * r - q * s * sign, a, c, d, e)
    imaginary = b.map(lambda p, q, r, s: p * s * sign + q * r, a, c, d, e)
    return b.concat([real, imaginary], real.rank - 1)


@onnx_op("Inverse", domain=DOMAIN)
def inverse(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The inverse of each matrix: columns are cleared one by one, beside a matrix of ones."""
    lead, size = x.shape[:-2], x.shape[-1]
    matrices = b.reshape(widened(b, x), (product(lead), size, size))
    shape = (*matrices.shape[:2], tidy(size * 2))
    left = b.remap(matrices, shape, lambda *o: o, lambda *o: o[2] < size)
    ones = b.remap(
        b.constant(1, "one", left.dtype), shape[1:], lambda *_: (), lambda i, j: j.eq(i + size)
    )
    both = b.map(lambda v, w: v + w, left, ones)
    (found,) = loop(b, _clear, b.reshape(b.sizes([size]), ()), [both])
    right = b.remap(found, matrices.shape, lambda n, i, j: (n, i, j + size))
    return converted(b, b.reshape(right, x.shape), x.dtype)


def _clear(b: Builder, step: Value, carried: Sequence[Value], outside: Outside) -> Turn:
    """One column: its greatest element comes to the diagonal, and clears all others."""
    (matrices,) = carried
    swapped, _, numbers = pivoted(b, step, matrices)
    count, size, width = matrices.shape
    top = take(b, swapped, step, 1)
    corner = b.reshape(take(b, top, step, 1), (count, 1))
    top = b.reshape(b.map(lambda v, c: v / c, top, corner), (count, 1, width))
    factors = b.reshape(take(b, swapped, step, 2), (count, size, 1))
    places = b.reshape(numbers, (1, size, 1))
    after = b.map(
        lambda v, t, f, i, k: select(i.eq(k), t, v - f * t), swapped, top, factors, places, step
    )
    return Turn([after])


@onnx_op("MurmurHash3", domain=DOMAIN)
def murmur_hash(b: Builder, node: OnnxNode, x: Value) -> Value:
    """A hash of the bytes of each element, in 32 bits."""
    if x.dtype.bits not in (32, 64):
        node.decline(f"elements of type {x.dtype}")
    seed = node.int("seed") & 0xFFFFFFFF
    result = u32 if node.int("positive", 1) else i32

    def words(v: tir.Expr) -> list[tir.Expr]:
        if v.dtype in (f32, i32, u32):
            return [v if v.dtype == u32 else tir.Reinterpret(u32, v)]
        whole = tir.Reinterpret(u64, v) if v.dtype == f64 or v.dtype.is_signed else v
        low = (whole & 0xFFFFFFFF).to(u32)
        return [low, (whole >> 32).to(u32)]

    def body(v: tir.Expr) -> tir.Expr:
        found: tir.Expr = tir.Const(seed, u32)
        parts = words(v)
        for part in parts:
            mixed = _turned(part * _word(0xCC9E2D51), 15) * _word(0x1B873593)
            found = _turned(found ^ mixed, 13) * _word(5) + _word(0xE6546B64)
        found = found ^ _word(4 * len(parts))
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            found = (found ^ (found >> shift)) * _word(factor)
        found = found ^ (found >> 16)
        return found if result == u32 else tir.Reinterpret(i32, found)

    return b.map(body, x, dtype=result)


def _word(value: int) -> tir.Const:
    return tir.Const(value, u32)


def _turned(value: tir.Expr, by: int) -> tir.Expr:
    """Bits turned to the left."""
    return (value << by) | (value >> (32 - by))


@onnx_op("NGramRepeatBlock", domain=DOMAIN)
def ngram_repeat_block(b: Builder, node: OnnxNode, tokens: Value, scores: Value) -> Value:
    """Scores, with minus infinity for tokens that would repeat a run of `ngram_size`."""
    size = node.int("ngram_size")
    pay_steps(b, node, size, "a run of tokens")
    batch, length = tokens.shape
    count = tidy(tir.maximum(length - (size - 1), 0))
    # There are places in front of the first token: a text may be shorter than a run.
    longer = b.remap(
        tokens,
        (batch, tidy(length + (size - 1))),
        lambda n, i: (n, i - (size - 1)),
        lambda n, i: i >= size - 1,  # noqa: ARG005
    )

    def at(shift: int) -> Value:
        return b.remap(tokens, (batch, count), lambda n, i: (n, i + shift))

    repeats: Value | None = None
    for place in range(size - 1):
        last = b.remap(longer, (batch, 1), lambda n, _, p=place: (n, length + p))
        same = b.map(lambda v, w: v.eq(w), at(place), last)
        repeats = same if repeats is None else b.map(lambda p, q: p & q, repeats, same)
    infinite = tir.const(np.inf, scores.dtype)
    if repeats is None:
        values = b.expand(b.constant(-np.inf, "banned", scores.dtype), (batch, count))
    else:
        values = b.map(lambda r: select(r, -infinite, infinite), repeats, dtype=scores.dtype)
    op = Scatter(((2, (axis(0), axis(1))),), (axis(0), picked(0)), tir.Fold.MIN)
    return b.add(op, scores, values, at(size - 1))
