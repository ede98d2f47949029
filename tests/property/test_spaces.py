"""Every point of a recipe's space can be followed, and computes what the program means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.cycles import contraction_cycles
from tilewright.schedule.recipes.contraction.space import ContractionShape, contraction_space
from tilewright.target import Target
from tilewright.tensor import library

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
SIZES = st.sampled_from([1, 2, 3, 5, 7, 16, 17, 31, 64, 77, 100, 128])
DEPTHS = st.sampled_from([1, 3, 16, 64, 192, 384, 555, 768, 1024])


def space_of(m, n, k, target, threads):
    shape = ContractionShape(
        1, m, n, k, 4, right_is_constant=True, threads=min(threads, 2), pitch_bytes=4 * k
    )
    return shape, contraction_space(shape, target)


@pytest.mark.parametrize("name", TARGETS)
@given(m=SIZES, n=SIZES, k=DEPTHS, threads=st.sampled_from([1, 8]), data=st.data())
def test_points_of_products_can_be_followed(name, m, n, k, threads, data):
    target = Target.named(name)
    _, space = space_of(m, n, k, target, threads)
    point = space.point(data.draw(st.integers(0, len(space) - 1)))
    schedule = draft(library.matmul(m, n, k), target, threads, ["B"], point)
    assert schedule.remarks == []
    assert schedule.trace.steps


@settings(max_examples=12)
@given(m=SIZES, n=SIZES, k=DEPTHS, data=st.data())
def test_points_of_products_compute_the_product(m, n, k, data):
    target = Target.host()
    _, space = space_of(m, n, k, target, 1)
    point = space.point(data.draw(st.integers(0, len(space) - 1)))
    program = library.matmul(m, n, k)
    trace = draft(program, target, 1, ["B"], point).trace
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=size).astype(np.float32) for size in ((m, k), (k, n)))
    found = tw.build(program, threads=1, trace=trace, constants={"B": b})(a)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(found, exact, atol=1e-5 * max(1.0, np.abs(exact).max()))


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
