"""Products of channels with an image, channels first: panels run along the whole image."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright.schedule.draft import draft
from tilewright.target import Target
from tilewright.tensor import ir as tir


def pointwise(filters: int, channels: int, *space: int, batch: int = 1, relu: bool = True):
    """Windows of one element over an image, weights first."""
    x = tw.placeholder("x", (batch, channels, *space))
    w = tw.placeholder("w", (filters, channels))
    c = tw.reduce_axis(channels, "c")
    y = tw.compute(
        "y", (batch, filters, *space), lambda n, o, *at: tw.sum_over(x[(n, c, *at)] * w[o, c], c)
    )
    z = tw.compute("z", y.shape, lambda *at: tir.maximum(y[at], 0.0)) if relu else y
    return tw.func("pointwise", [x, w], [z])


def extents(program) -> list[int | None]:
    """Of the product, as it is drafted."""
    schedule = draft(program, Target.named("x86-64-v3"), 1, frozenset({"w"}))
    return [tir.int_value(it.extent) for it in schedule.block("y").iters]


@pytest.mark.parametrize(
    ("space", "wanted"),
    [
        ((14, 20), 280),  # no line is whole vectors, all of them together are
        ((3, 4, 6), 72),
        ((7, 7), None),  # what is left over would be copied twice
    ],
)
def test_columns_are_all_places_if_these_are_whole_vectors(space, wanted):
    assert (wanted in extents(pointwise(32, 16, *space))) == (wanted is not None)


def test_few_rows_are_not_worth_a_copy():
    assert 64 * 64 not in extents(pointwise(4, 64, 64, 64))
    assert 64 * 64 in extents(pointwise(32, 64, 64, 64))


@settings(max_examples=25, deadline=None)
@given(
    space=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    filters=st.sampled_from([1, 7, 24, 50]),
    channels=st.sampled_from([1, 3, 40]),
    batch=st.sampled_from([1, 2]),
    threads=st.sampled_from([1, 2]),
    relu=st.booleans(),
)
def test_results_are_those_of_numpy(space, filters, channels, batch, threads, relu):
    program = pointwise(filters, channels, *space, batch=batch, relu=relu)
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (batch, channels, *space)).astype(np.float32)
    w = rng.uniform(-1, 1, (filters, channels)).astype(np.float32)
    kernel = tw.build(program, constants={"w": w}, threads=threads)
    assert kernel.report.remarks == ()
    wanted = np.moveaxis(np.tensordot(w, x, (1, 1)), 0, 1)
    wanted = np.maximum(wanted, 0) if relu else wanted
    np.testing.assert_allclose(kernel(x), wanted, rtol=1e-5, atol=1e-5)
