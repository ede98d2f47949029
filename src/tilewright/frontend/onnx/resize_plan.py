"""How each dimension is resized: by scales or by sizes, known now or data of a run.

A size that is data is counted (`told`), and is a symbolic size from there on. A scale that is data
decides the length as well, and stays an operand of whatever is computed with it (`Along.ratio`).
One that keeps an aspect ratio of symbolic sizes is such a scale, too: it is the least or greatest
of their quotients, which only a run knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Final

import numpy as np

from tilewright.dtypes import f32, i64
from tilewright.frontend.onnx.coordinates import Along
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.told import REFUSED, Told, counted, elements
from tilewright.graph import Builder, Value
from tilewright.graph.folding import MAX_ELEMENTS
from tilewright.graph.ops import Concat
from tilewright.graph.sizes import fixed, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["by_scales", "by_sizes", "with_region"]

MAX_SCALE: Final = 1 << 32
"""No dimension grows by more: products with sizes, and with denominators, stay integers."""

EXACT: Final = 1 << 24
"""Denominators of scales with which a symbolic size is multiplied exactly."""


def by_scales(
    b: Builder, node: OnnxNode, x: Value, axes: Sequence[int], scales: Value | None
) -> list[Along]:
    """The new length is the product, rounded down."""
    factors: Sequence[float | Value] | None = node.floats("scales")
    if factors is None and scales is not None:
        factors = _floats(b, scales)
    if factors is None:
        return node.decline("how many scales there are depends on data")
    return [
        _scaled(b, position, x.shape[position], factor)
        for position, factor in zip(axes, factors, strict=True)
    ]


def _scaled(b: Builder, position: int, before: tir.Expr, factor: float | Value) -> Along:
    if isinstance(factor, Value):
        return _by_ratio(b, position, before, factor)
    if not 0 < factor < MAX_SCALE:
        raise ValueError(f"it scales by {factor}")
    scale = tir.const(factor, f32)
    along = Along(position, before, before, scale, before.to(f32) * scale)
    number, simple = fixed(before), along.factor
    if number is not None:
        after: tir.Expr = tir.Const(floor(np.float32(number) * np.float32(factor)))
        return replace(along, after=after)
    near = simple or Fraction(factor).limit_denominator(EXACT)
    if np.float32(float(near)) != np.float32(factor):
        return _by_ratio(b, position, before, _single(b, factor))
    return replace(along, after=tidy(before * near.numerator // near.denominator))


def _by_ratio(
    b: Builder, position: int, before: tir.Expr, ratio: Value, rounding: float = 0.0
) -> Along:
    """A scale that a run computes; `rounding` is added to the product before it is cut off."""

    def length(scale: tir.Expr) -> tir.Expr:
        wide = before.to(f32) * scale + rounding
        possible = (scale > 0.0) & (scale < float(MAX_SCALE)) & (wide < float(MAX_ELEMENTS))
        return select(possible, call("floor", wide).to(i64), REFUSED)

    after = counted(b, b.map(length, ratio, dtype=i64)).shape[0]
    return replace(_stretched(position, before, after), ratio=ratio)


def by_sizes(
    b: Builder, node: OnnxNode, x: Value, axes: Sequence[int], sizes: Value
) -> list[Along]:
    """The scale is the quotient of the lengths."""
    wanted = elements(b, node, "sizes", sizes)
    before = [x.shape[a] for a in axes]
    policy = node.string("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        return _by_aspect(b, axes, before, wanted, larger=policy != "not_larger")
    return [
        _stretched(position, old, new if isinstance(new, tir.Expr) else _size(b, new))
        for position, old, new in zip(axes, before, wanted, strict=True)
    ]


def _size(b: Builder, wanted: Value) -> tir.Expr:
    """A length that data tells, as a size."""

    def length(n: tir.Expr) -> tir.Expr:
        return select((n >= 0) & (n <= MAX_ELEMENTS), n, REFUSED)

    return counted(b, b.map(length, wanted, dtype=i64)).shape[0]


def _stretched(position: int, before: tir.Expr, after: tir.Expr) -> Along:
    scale = after.to(f32) / before.to(f32)
    n, m = fixed(before), fixed(after)
    if n and m is not None:
        scale = tir.const(float(np.float32(m) / np.float32(n)), f32)
    return Along(position, before, after, scale, after.to(f32))


def _by_aspect(
    b: Builder,
    axes: Sequence[int],
    before: Sequence[tir.Expr],
    wanted: Sequence[Told],
    *,
    larger: bool,
) -> list[Along]:
    """One scale for all dimensions: the least or greatest of those that the sizes ask for."""
    lengths = list(zip(axes, before, strict=True))
    numbers = [fixed(d) if isinstance(d, tir.Expr) else None for d in (*before, *wanted)]
    if None not in numbers:
        known = [n or 0 for n in numbers]
        pairs = zip(known[: len(axes)], known[len(axes) :], strict=True)
        factor = (max if larger else min)(m / n for n, m in pairs if n)
        scale = tir.const(factor, f32)
        return [
            Along(k, d, tir.Const(floor((fixed(d) or 0) * factor + 0.5)), scale, d.to(f32) * scale)
            for k, d in lengths
        ]
    choose: Callable[[tir.Expr, tir.Expr], tir.Expr] = tir.maximum if larger else tir.minimum

    def chosen(*new: tir.Expr) -> tir.Expr:
        first, *others = (m.to(f32) / n.to(f32) for n, m in zip(before, new, strict=True))
        for quotient in others:
            first = choose(first, quotient)
        return first

    vectors = [b.sizes([d]) if isinstance(d, tir.Expr) else d for d in wanted]
    ratio = b.map(chosen, *vectors, dtype=f32)
    return [_by_ratio(b, position, dim, ratio, rounding=0.5) for position, dim in lengths]


def with_region(b: Builder, plan: Sequence[Along], roi: Value | None) -> list[Along]:
    """Which part of each dimension is resized: the starts, then the ends, known or data."""
    numbers = [] if roi is None else _floats(b, roi)
    if numbers is None:
        raise ValueError("the length of its region is not known")
    pairs = list(zip(numbers[: len(plan)], numbers[len(plan) :], strict=True))
    if len(pairs) < len(plan):
        raise ValueError(f"its region has {len(numbers)} numbers for {len(plan)} dimensions")
    made: list[Along] = []
    for along, (start, end) in zip(plan, pairs, strict=True):
        if isinstance(start, Value) or isinstance(end, Value):
            first, last = (v if isinstance(v, Value) else _single(b, v) for v in (start, end))
            made.append(replace(along, region=(first, last)))
        elif (start, end) != (0.0, 1.0) or not along.stays:
            made.append(replace(along, roi=(start, end)))
    return made


def _single(b: Builder, number: float) -> Value:
    return b.constant([number], dtype=f32)


def _floats(b: Builder, vector: Value) -> list[float | Value] | None:
    """The elements of a vector: numbers as far as they are known, also in one that joins them.

    None if only a run tells how many there are.
    """
    held = b.contents(vector)
    if held is not None and held.dtype != object:
        return [float(v) for v in held.flat]
    maker = next((n for n in reversed(b.nodes) if vector in n.outputs), None)
    if maker is not None and isinstance(maker.op, Concat):
        parts = [_floats(b, part) for part in maker.inputs]
        return [e for part in parts for e in part or ()] if None not in parts else None
    count = fixed(vector.shape[0]) if vector.rank == 1 else None
    if count is None:
        return None
    ones = (b.remap(vector, (1,), lambda _, k=k: (k,)) for k in range(count))
    return [b.map(lambda v: v.to(f32), one, dtype=f32) for one in ones]
