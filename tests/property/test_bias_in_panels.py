"""What an epilogue adds to columns lies with the panels of the weights, whatever else is decided.

Every kernel that such a point makes computes what its program means, and has one parameter for
the weights and all that is stored with them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.space import (
    ContractionPoint,
    ContractionShape,
    contraction_points,
)
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute, func, placeholder, reduce_axis, sum_over
from tilewright.tensor.layout import StoreAt
from tilewright.tensor.library.convolve import convolve

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
WIDTHS = st.sampled_from([2, 3, 5, 8, 16, 17, 48, 53, 64, 77, 130])


@dataclass(frozen=True)
class Case:
    """A biased sum and what it means; `rows` is a size that only a call tells."""

    program: tir.Func
    shapes: tuple[tuple[int, ...], ...]
    meaning: Callable[..., np.ndarray]
    vectors: tuple[str, ...]


def finished(y: Tensor, form: str) -> tuple[list[Tensor], Tensor]:
    """What follows the sums: vectors along the columns, and the result."""
    n, rank = y.shape[-1], len(y.shape)
    b = placeholder("b", (*[1] * (rank - 1), n) if form == "broadcast" else (n,))
    if form == "scaled":
        g = placeholder("g", (n,))
        return [g, b], compute("Z", y.shape, lambda *at: y[at] * g[at[-1]] + b[at[-1]])
    if form == "broadcast":
        place = (0,) * (rank - 1)
        return [b], compute("Z", y.shape, lambda *at: y[at] + b[(*place, at[-1])])
    return [b], compute("Z", y.shape, lambda *at: tir.maximum(y[at] + b[at[-1]], 0.0))


def meant(y: np.ndarray, form: str, *vectors: np.ndarray) -> np.ndarray:
    if form == "scaled":
        return y * vectors[0] + vectors[1]
    return y + vectors[0] if form == "broadcast" else np.maximum(y + vectors[0], 0)


def product(m: int, n: int, k: int, form: str, *, is_known: bool, across: bool) -> Case:
    a = placeholder("A", (m if is_known else tw.size("m"), k))
    w = placeholder("W", (n, k) if across else (k, n))
    r = reduce_axis(k, "k")
    y = compute(
        "Y", (a.shape[0], n), lambda i, j: sum_over(a[i, r] * (w[j, r] if across else w[r, j]), r)
    )
    vectors, z = finished(y, form)
    shapes = (m, k), tuple(tir.int_value(d) or 0 for d in w.shape)

    def meaning(a: np.ndarray, w: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        return meant(a @ (w.T if across else w), form, *rest)

    return _case("product", [a, w], shapes, vectors, z, meaning)


def convolution(side: int, channels: int, filters: int, taps: int, groups: int, form: str) -> Case:
    x = placeholder("A", (1, side, side, groups * channels))
    w = placeholder("W", (groups * filters, channels, taps, taps))
    vectors, z = finished(convolve(x, w, groups=groups), form)

    def meaning(x: np.ndarray, w: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(x, (taps, taps), axis=(1, 2))
        pairs = zip(np.split(windows, groups, axis=3), np.split(w, groups), strict=True)
        parts = [np.einsum("nhwcij,ocij->nhwo", *pair) for pair in pairs]
        return meant(np.concatenate(parts, axis=-1), form, *rest)

    shapes = (1, side, side, groups * channels), (groups * filters, channels, taps, taps)
    return _case("convolution", [x, w], shapes, vectors, z, meaning)


def _case(
    name: str,
    operands: list[Tensor],
    shapes: tuple[tuple[int, ...], ...],
    vectors: list[Tensor],
    z: Tensor,
    meaning: Callable[..., np.ndarray],
) -> Case:
    sizes = (tuple(tir.int_value(d) or 0 for d in v.shape) for v in vectors)
    program = func(name, [*operands, *vectors], [z])
    return Case(program, (*shapes, *sizes), meaning, tuple(p.name for p in program.params[2:-1]))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Products and convolutions with something behind them that has numbers for each column."""
    form = draw(st.sampled_from(["bias", "bias", "scaled", "broadcast"]))
    n, depth = draw(WIDTHS), draw(st.sampled_from([1, 3, 16, 96, 384]))
    if draw(st.booleans()):
        m = draw(st.sampled_from([1, 2, 7, 16, 37, 64]))
        is_known, across = draw(st.booleans()), draw(st.booleans())
        return product(m, n, depth, form, is_known=is_known, across=across)
    taps, groups = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([1, 1, 2, 3]))
    side = draw(st.sampled_from([4, 7, 9]))
    return convolution(side, min(depth, 24), n, taps, groups, form)


def shape_of(case: Case, target: Target, threads: int) -> ContractionShape | None:
    """The shape of the sum; None where it is no contraction."""
    made = draft(case.program, target, threads, ("W", *case.vectors))
    found = [d.shape for d in made.decisions if d.recipe is CONTRACTION]
    return found[0] if len(found) == 1 else None


def drawn(shape: ContractionShape, target: Target, seed: int) -> ContractionPoint:
    """A point at random with the bias in the panels."""
    space = contraction_points(shape, target)
    points = space.sample(random.Random(seed), 64)
    return next(point for point in points if point.bias_in_panels)


@pytest.mark.parametrize("name", TARGETS)
@given(case=cases(), threads=st.sampled_from([1, 3, 8]), seed=st.integers(0, 1 << 30))
def test_points_with_it_can_be_followed(name, case, threads, seed):
    target = Target.named(name)
    shape = shape_of(case, target, threads)
    if shape is None:
        return
    assert shape.biases == len(case.vectors)
    point = drawn(shape, target, seed)
    made = draft(case.program, target, threads, ("W", *case.vectors), point)
    assert [r for r in made.remarks if "threads do not share" not in r] == []
    names = [param.name for param in made.func.params]
    assert names == ["A", "W", "Z"]
    guests = [step for step in made.buffer("W").layout if isinstance(step, StoreAt)]
    assert [guest.name for guest in guests] == list(case.vectors)


@settings(max_examples=40, deadline=None)
@given(case=cases(), threads=st.sampled_from([1, 3]), seed=st.integers(0, 1 << 30))
def test_points_with_it_compute_the_same(case, threads, seed):
    target = Target.host()
    shape = shape_of(case, target, threads)
    if shape is None:
        return
    point = drawn(shape, target, seed)
    note(str(point))
    event("cut" if point.reduce_per_block < shape.reduce else "whole")
    event(f"batch {shape.batch > 1}, order {point.order}, tails {point.all_tails}")
    trace = draft(case.program, target, threads, ("W", *case.vectors), point).trace
    rng = np.random.default_rng(seed)
    a, w, *vectors = (rng.integers(-3, 4, size).astype(np.float32) for size in case.shapes)
    constants = {"W": w, **dict(zip(case.vectors, vectors, strict=True))}
    kernel = tw.build(case.program, threads=threads, trace=trace, constants=constants)
    expected = case.meaning(a, w, *vectors)
    result = np.empty(expected.shape, np.float32)
    kernel(a, result)
    assert np.array_equal(result, expected)  # small integers: exact in any order
