"""Every point of a recipe's space can be followed, and computes what the program means."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.cycles import contraction_cycles
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.space import (
    ContractionPoint,
    ContractionShape,
    contraction_points,
    contraction_space,
)
from tilewright.schedule.recipes.recipe import Decision
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, sum_over
from tilewright.tensor.library.convolve import convolve

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
SIZES = st.sampled_from([1, 2, 3, 5, 7, 16, 17, 31, 64, 77, 100, 128])
DEPTHS = st.sampled_from([1, 3, 16, 64, 192, 384, 555, 768, 1024])


@dataclass(frozen=True)
class Case:
    """A product of some kind, what it means, and what of it is constant."""

    program: tir.Func
    meaning: Callable[..., np.ndarray]
    constants: tuple[str, ...] = ()


def grouped(side: int, channels: int, constants: tuple[str, ...]) -> Case:
    """A convolution with two groups of channels, which share lines of memory."""
    x = placeholder("A", (1, side, side, 2 * channels))
    w = placeholder("B", (2 * channels, channels, 3, 3))

    def meaning(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
        halves = [slice(None, channels), slice(channels, None)]
        parts = [np.einsum("nhwcij,ocij->nhwo", windows[..., g, :, :], w[g]) for g in halves]
        return np.concatenate(parts, axis=-1)

    return Case(func("grouped", [x, w], [convolve(x, w, groups=2)]), meaning, constants)


def along_image(rows: int, steps: int, side: int) -> Case:
    """Data with channels first: a right operand whose columns are the places of an image."""
    x, w = placeholder("A", (steps, side, side)), placeholder("B", (rows, steps))
    c = reduce_axis(steps, "c")
    y = compute("Y", (rows, side, side), lambda o, h, v: sum_over(w[o, c] * x[c, h, v], c))
    return Case(func("along", [x, w], [y]), lambda x, w: np.einsum("chv,oc->ohv", x, w))


def across(m: int, n: int, k: int, constants: tuple[str, ...]) -> Case:
    """The right operand is stored column by column."""
    a, b = placeholder("A", (m, k)), placeholder("B", (n, k))
    r = reduce_axis(k, "k")
    c = compute("C", (m, n), lambda i, j: sum_over(a[i, r] * b[j, r], r))
    return Case(func("across", [a, b], [c]), lambda a, b: a @ b.T, constants)


def along_lines(filters: int, width: int, multiple: int, constants: tuple[str, ...]) -> Case:
    """A convolution whose places are in vectors: lines stand between its rows and columns."""
    x, w = placeholder("A", (1, 6, width, 5)), placeholder("B", (filters, 5, 3, 3))

    def meaning(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
        return np.einsum("nhwcij,ocij->nhwo", windows, w)

    return Case(func("lines", [x, w], [convolve(x, w, lines=multiple)]), meaning, constants)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Products with operands of all kinds, some with sizes that only a call tells."""
    sizes = m, n, k = draw(SIZES), draw(SIZES), draw(DEPTHS)
    constants: tuple[str, ...] = draw(st.sampled_from([(), ("B",)]))
    kinds = ["plain", "unknown", "batch", "groups", "image", "across", "lines"]
    match draw(st.sampled_from(kinds)):
        case "unknown":
            unknown = draw(st.sampled_from(["m", "n", "k", "mnk"]))
            named = [tw.size(d) if d in unknown else e for d, e in zip("mnk", sizes, strict=True)]
            known = constants if unknown == "m" else ()
            return Case(library.matmul(*named), np.matmul, known)
        case "batch":
            batch = draw(st.sampled_from([2, 12]))
            return Case(library.batched_matmul(batch, m, n, min(k, 64)), np.matmul)
        case "groups":
            side, channels = draw(st.sampled_from([5, 9])), draw(st.sampled_from([4, 8, 24]))
            return grouped(side, channels, constants)
        case "image":
            return along_image(m, min(k, 64), draw(st.sampled_from([4, 7, 8])))
        case "across":
            return across(m, n, k, constants)
        case "lines":
            width, multiple = draw(st.sampled_from([10, 18, 33])), draw(st.sampled_from([1, 8]))
            return along_lines(min(m, 17), width, multiple, constants)
    return Case(library.matmul(m, n, k), np.matmul, constants)


def drawn_point(case: Case, target: Target, threads: int, seed: int) -> ContractionPoint:
    """A point at random of the space that the program has."""
    decisions: list[Decision] = []
    draft(case.program, target, threads, case.constants, decisions=decisions)
    (shape,) = [d.shape for d in decisions if d.recipe is CONTRACTION]
    assert isinstance(shape, ContractionShape)
    (point,) = contraction_points(shape, target).sample(random.Random(seed), 1)
    return point


@pytest.mark.parametrize("name", TARGETS)
@given(case=cases(), threads=st.sampled_from([1, 3, 8]), seed=st.integers(0, 1 << 30))
def test_points_can_be_followed(name, case, threads, seed):
    target = Target.named(name)
    point = drawn_point(case, target, threads, seed)
    schedule = draft(case.program, target, threads, case.constants, point)
    assert [r for r in schedule.remarks if "threads do not share" not in r] == []
    assert schedule.trace.steps


@settings(max_examples=30, deadline=None)
@given(case=cases(), threads=st.sampled_from([1, 3]), seed=st.integers(0, 1 << 30))
def test_points_compute_the_product(case, threads, seed):
    target = Target.host()
    point = drawn_point(case, target, threads, seed)
    trace = draft(case.program, target, threads, case.constants, point).trace
    rng = np.random.default_rng(0)
    known = {d: int(rng.integers(1, 40)) for p in case.program.params for d in p.shape}
    shapes = [[tir.int_value(d) or known[d] for d in p.shape] for p in case.program.params]
    *operands, result = (rng.integers(-3, 4, size).astype(np.float32) for size in shapes)
    names = [p.name for p in case.program.params]
    given_now = dict(zip(names, operands, strict=False))
    constants = {name: given_now.pop(name) for name in case.constants}
    kernel = tw.build(case.program, threads=threads, trace=trace, constants=constants)
    kernel(*given_now.values(), result)
    assert np.array_equal(result, case.meaning(*operands))  # small integers: exact in any order


@pytest.mark.parametrize("name", TARGETS)
def test_all_points_of_a_small_product_can_be_followed(name):
    target = Target.named(name)
    decisions: list[Decision] = []
    draft(library.matmul(3, 5, 6), target, 2, decisions=decisions)
    shape = decisions[0].shape
    assert isinstance(shape, ContractionShape)
    points = contraction_points(shape, target).table()
    for point in list(points)[:: max(1, len(points) // 40)]:
        assert draft(library.matmul(3, 5, 6), target, 2, (), point).remarks == []


def test_numbers_are_points():
    target = Target.named("x86-64-v3")
    shape, _ = space_of(3, 8, 128, target, 2)
    space = contraction_points(shape, target)
    every = {space.point(number) for number in range(space.size)} - {None}
    assert every == set(space.table())
    assert set(space.sample(random.Random(0), 50)) <= every


def space_of(m, n, k, target, threads):
    shape = ContractionShape(
        1, m, n, k, 4, right_is_constant=True, threads=min(threads, 2), pitch_bytes=4 * k
    )
    return shape, contraction_space(shape, target)


@pytest.mark.parametrize("name", TARGETS)
@given(m=SIZES, n=SIZES, k=DEPTHS, threads=st.sampled_from([1, 2]))
def test_costs_are_positive_and_finite(name, m, n, k, threads):
    target = Target.named(name)
    shape, space = space_of(m, n, k, target, threads)
    cycles = contraction_cycles(shape, target.machine, space)
    assert len(cycles) == len(space)
    assert np.isfinite(cycles).all()
    assert (cycles > 0).all()


@pytest.mark.parametrize("name", TARGETS)
@given(
    batch=st.sampled_from([1, 2, 8, 12, "b"]),
    m=st.sampled_from([1, 7, 24, 64, "m"]),
    n=st.sampled_from([1, 15, 64, 100, "n"]),
    k=st.sampled_from([1, 3, 64, 512, "k"]),
    threads=st.sampled_from([1, 2, 8]),
)
def test_batched_products_of_known_and_unknown_sizes_are_scheduled(name, batch, m, n, k, threads):
    """A product that is left without a schedule is right, and four hundred times slower."""
    sizes = [tw.size(d) if isinstance(d, str) else d for d in (batch, m, n, k)]
    schedule = draft(library.batched_matmul(*sizes), Target.named(name), threads)
    assert schedule.remarks == []
