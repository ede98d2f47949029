"""Resizing with `antialias`: each result is a mean over as much of the source as it stands for.

What shrinks to a half takes twice as many neighbours. Where all sizes are known, these and their
shares are constants: a matrix, and resizing a product with it, if it is small. Else tables
[result, neighbour] are computed by the run, whose number of neighbours is a size of its own. What
grows needs no mean: its neighbours are as many as without smoothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import floor
from typing import Final

import numpy as np

from tilewright.dtypes import DType, f32, i64, index
from tilewright.frontend.onnx.coordinates import (
    Along,
    Interpolation,
    coordinate,
    cubic_weight,
    held,
    linear_weight,
)
from tilewright.frontend.onnx.taking import take
from tilewright.frontend.onnx.told import counted
from tilewright.graph import Builder, Value
from tilewright.graph.ir import Array
from tilewright.graph.sizes import fixed, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["smoothed_along"]

TABLES: Final = 4
"""Tables of the size of the weights that computing them takes."""


def smoothed_along(b: Builder, how: Interpolation, x: Value, along: Along) -> Value:
    """A tensor of floats resized along one dimension, which may shrink."""
    n, m, scale = fixed(along.before), fixed(along.after), along.scale
    if n is None or m is None or along.operands or not isinstance(scale, tir.Const):
        return _by_tables(b, how, x, along)
    first = _first(how.kind, float(scale.value))
    near = b.tabulate((m,), partial(coordinate, how.mode, along), f32)
    at = b.contents(near)
    if at is None or not b.purse.spends(TABLES * m * 2 * (1 - first)):
        return _by_tables(b, how, x, along)
    places, shares = _shares(at.astype(np.float64), n, float(scale.value), how)
    return _weighted(b, places, shares.astype(x.dtype.numpy), x, along)


def _first(kind: str, scale: float) -> int:
    """The number of the first neighbour that counts; the one on the left has number 0."""
    return floor(-_reach(kind) / scale) + 1


def _reach(kind: str) -> int:
    return 1 if kind == "linear" else 2


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
    return _summed(b, x, along, b.constant(places), b.constant(shares))


def _summed(b: Builder, x: Value, along: int, places: Value, shares: Value) -> Value:
    """Sums of elements at `places` [result, neighbour] along a dimension, each with its share."""
    several = take(b, x, places, along)
    table = b.reshape(shares, (*shares.shape, *[1] * (x.rank - along - 1)))
    parts = b.map(lambda v, w: v * w.to(v.dtype), several, table)
    return b.reduce(tir.Fold.ADD, parts, (along + 1,), keepdims=False)


def _shares(at: Array, n: int, scale: float, how: Interpolation) -> tuple[Array, Array]:
    """[result, neighbour]: which elements of the source count, and how much."""
    first = _first(how.kind, scale)
    base = np.ceil(at) - 1  # the neighbour on the left, also of a point on the grid
    places = base[:, None] + np.arange(first, 2 - first)
    away = np.abs((places - at[:, None]) * scale)
    if how.kind == "linear":
        weights = np.clip(1 - away, 0, 1)
    else:
        a = how.steepness
        inner = ((a + 2) * away - (a + 3)) * away**2 + 1
        outer = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
        weights = np.where(away <= 1, inner, np.where(away < 2, outer, 0))
    if how.inside_only:
        weights = np.where((places >= 0) & (places < n), weights, 0)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(places, 0, n - 1).astype(np.int64), weights


def _by_tables(b: Builder, how: Interpolation, x: Value, along: Along) -> Value:
    """The same with tables that a run computes; what grows has a scale of one here."""
    half = _half(b, how, along)

    def number(own: Along, o: tir.Expr, k: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
        """The coordinate of a result, and its neighbour."""
        at = coordinate(how.mode, own, o)
        return at, call("ceil", at) + (k - half).to(f32)

    def place(own: Along, o: tir.Expr, k: tir.Expr) -> tir.Expr:
        return held(number(own, o, k)[1].to(index), own.before)

    def weight(own: Along, o: tir.Expr, k: tir.Expr) -> tir.Expr:
        at, near = number(own, o, k)
        away = (near - at) * tir.minimum(own.scale, 1.0)
        value = linear_weight(away) if how.kind == "linear" else cubic_weight(away, how.steepness)
        inside = (near >= 0.0) & (near < own.before.to(f32))
        return select(inside, value, 0.0) if how.inside_only else value

    shares = _table(b, along, half, weight, f32)
    total = b.reduce(tir.Fold.ADD, shares, (1,))
    shares = b.map(lambda w, all_: w / all_, shares, total)
    return _summed(b, x, along.axis, _table(b, along, half, place, i64), shares)


def _half(b: Builder, how: Interpolation, along: Along) -> tir.Expr:
    """How many neighbours on each side count. A result without elements needs none."""
    reach = _reach(how.kind)
    if along.ratio is not None:

        def count(scale: tir.Expr) -> tir.Expr:
            wide = call("ceil", reach / tir.minimum(scale, 1.0)).to(i64)
            return select(along.after < 1, reach, wide)

        return counted(b, b.map(count, along.ratio, dtype=i64)).shape[0]
    if isinstance(along.scale, tir.Const):
        return tir.Const(1 - _first(how.kind, min(float(along.scale.value), 1.0)))
    after = tir.maximum(along.after, 1)
    return tidy(tir.maximum((reach * along.before + after - 1) // after, reach))


def _table(
    b: Builder,
    along: Along,
    half: tir.Expr,
    function: Callable[[Along, tir.Expr, tir.Expr], tir.Expr],
    dtype: DType,
) -> Value:
    """A number for each result and neighbour."""
    shape = (along.after, tidy(half * 2))
    if not along.operands:
        return b.tabulate(shape, partial(function, along), dtype)
    rows = b.tabulate((along.after, 1), lambda o, _: o, i64)
    columns = b.tabulate((1, shape[1]), lambda _, k: k, i64)

    def entry(o: tir.Expr, k: tir.Expr, *given: tir.Expr) -> tir.Expr:
        return function(along.bound(*given), o, k)

    return b.map(entry, rows, columns, *along.operands, dtype=dtype)
