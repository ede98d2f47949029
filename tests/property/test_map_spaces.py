"""Every point of the spaces for rows and elementwise code is followed and computes the program."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright.schedule.draft import draft
from tilewright.target import Target
from tilewright.tensor import library
from tilewright.tensor.build import compute, func, placeholder, select

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
SIZES = st.sampled_from([1, 2, 3, 7, 15, 16, 17, 31, 40])


def scaled(m, n):
    """Not dense, with a run of two loops inside."""
    x, s = placeholder("X", (3, m, n)), placeholder("S", (3,))
    return func("scaled", [x, s], [compute("Y", (3, m, n), lambda c, i, j: x[c, i, j] * s[c])])


def moved_last(m, n):
    x = placeholder("X", (n, 3, m))
    return func("moved", [x], [compute("Y", (3, m, n), lambda a, i, j: x[j, a, i])])


def moved_first(m, n):
    x = placeholder("X", (3, m, n))
    return func("moved", [x], [compute("Y", (n, 3, m), lambda j, a, i: x[a, i, j])])


def chosen(m, n):
    """A small transform, in which the first iterator chooses."""
    x = placeholder("X", (m + 1, n))

    def value(p, i, j):
        a, b = x[i, j], x[i + 1, j]
        return select(p.eq(0), a + b, select(p.eq(1), a - b, a))

    return func("chosen", [x], [compute("Y", (3, m, n), value)])


def pad(m, n):
    return library.pad2d(m, n, 1)


def softmax_of(x):
    power = np.exp(x - x.max(1, keepdims=True))
    return power / power.sum(1, keepdims=True)


def layernorm_of(x, scale, shift):
    middle = x - x.mean(1, keepdims=True)
    return middle / np.sqrt((middle**2).mean(1, keepdims=True) + 1e-5) * scale + shift


PROGRAMS = {
    "rows": {
        library.softmax: softmax_of,
        library.layernorm: layernorm_of,
        library.row_max: lambda x: x.max(1),
    },
    "across": {library.column_sum: lambda x: x.sum(0)},
    "elementwise": {
        library.add: lambda x, y: x + y,
        library.broadcast_add: lambda x, y: x + y,
        scaled: lambda x, s: x * s[:, None, None],
        partial(library.unary, "exp"): np.exp,
    },
    "transpose": {
        library.transpose: lambda x: x.T,
        moved_last: lambda x: x.transpose(1, 2, 0),
        moved_first: lambda x: x.transpose(2, 0, 1),
    },
    "border": {pad: lambda x: np.pad(x, 1)},
    "choices": {chosen: lambda x: np.stack([x[:-1] + x[1:], x[:-1] - x[1:], x[:-1]])},
}
"""Programs of two sizes by the recipe that schedules them, and what they mean."""


def decided(program, target, threads, points=None):
    """The only decision of a draft, and the schedule."""
    decisions = []
    schedule = draft(program, target, threads, points=points, decisions=decisions)
    assert schedule.remarks == []
    (decision,) = decisions
    return decision, schedule


def any_point(program, target, threads, data):
    """A decision with a random point, and the schedule that follows it."""
    decision, _ = decided(program, target, threads)
    space = decision.recipe.space(decision.shape, target)
    point = space.point(data.draw(st.integers(0, len(space) - 1)))
    return decided(program, target, threads, {decision.blocks[-1]: point})


@pytest.mark.parametrize("kind", PROGRAMS)
@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=20)
@given(data=st.data(), m=SIZES, n=SIZES, threads=st.sampled_from([1, 8]))
def test_points_can_be_followed(name, kind, data, m, n, threads):
    target, make = Target.named(name), data.draw(st.sampled_from(list(PROGRAMS[kind])))
    for program in (make(m, n), make(tw.size("m"), n), make(m, tw.size("n"))):
        decision, _ = any_point(program, target, threads, data)
        assert decision.recipe.name == kind


@pytest.mark.parametrize("kind", PROGRAMS)
@settings(max_examples=20)
@given(data=st.data(), m=SIZES, n=SIZES, symbolic=st.booleans())
def test_points_compute_the_program(kind, data, m, n, symbolic):
    make = data.draw(st.sampled_from(list(PROGRAMS[kind])))
    named = symbolic and kind not in ("border", "choices")  # no buffer may have a size `m + 1`
    sizes = (tw.size("m"), tw.size("n")) if named else (m, n)
    program = make(*sizes)
    _, schedule = any_point(program, Target.host(), 1, data)
    rng = np.random.default_rng(0)
    arrays = [
        rng.normal(size=[d.value for d in param.shape]).astype(np.float32)
        for param in make(m, n).params
    ]
    expected = PROGRAMS[kind][make](*(array.astype(np.float64) for array in arrays[:-1]))
    tw.build(program, threads=1, trace=schedule.trace)(*arrays)
    np.testing.assert_allclose(arrays[-1], expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=12)
@given(
    kind=st.sampled_from(sorted(PROGRAMS)),
    data=st.data(),
    m=SIZES,
    n=SIZES,
    threads=st.sampled_from([1, 8]),
)
def test_costs_are_positive_and_finite(name, kind, data, m, n, threads):
    target, make = Target.named(name), data.draw(st.sampled_from(list(PROGRAMS[kind])))
    decision, _ = decided(make(m, n), target, threads)
    space = decision.recipe.space(decision.shape, target)
    cycles = decision.recipe.cycles(decision.shape, target.machine, space)
    assert len(cycles) == len(space)
    assert np.isfinite(cycles).all()
    assert (cycles > 0).all()
    assert decision.point == space.point(int(np.argmin(cycles)))
