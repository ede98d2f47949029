"""The analytic draft has a recipe for every contraction, whatever its sizes and its epilogue."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tilewright.lower import lower
from tilewright.schedule.draft import draft
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, sum_over
from tilewright.tensor.visit import walk

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64+dotprod")
SIZES = st.one_of(st.integers(1, 80), st.sampled_from([96, 197, 384, 768, 1500, 2048, 3072, 4096]))


@st.composite
def products(draw: st.DrawFn) -> tuple[tir.Func, list[str]]:
    """A product of matrices with or without an epilogue, its right operand constant or not."""
    m, n, k = (draw(SIZES) for _ in range(3))
    a, b, c = placeholder("A", (m, k)), placeholder("B", (k, n)), placeholder("C", (m, n))
    r = reduce_axis(k, "k")
    product = compute("P", (m, n), lambda i, j: sum_over(a[i, r] * b[r, j], r))
    constants = ["B"] if draw(st.booleans()) else []
    if draw(st.booleans()):
        return func("product", [a, b], [product]), constants
    result = compute("D", (m, n), lambda i, j: product[i, j] + c[i, j])
    return func("residual", [a, b, c], [result]), constants


@examples(60)
@given(case=products(), name=st.sampled_from(TARGETS), threads=st.sampled_from([1, 2, 4]))
def test_no_product_is_left_unscheduled(case, name, threads):
    program, constants = case
    assert not draft(program, Target.named(name), threads, constants).remarks


@examples(40)
@given(shape=st.lists(st.integers(1, 40), min_size=2, max_size=4), name=st.sampled_from(TARGETS))
def test_dense_maps_walk_through_memory_without_a_division(shape, name):
    x = placeholder("X", shape)
    program = func("map", [x], [compute("Y", shape, lambda *at: x[at] * 2.0)])
    target = Target.named(name)
    lowered = lower(draft(program, target, 1).func, target).func
    assert not any(isinstance(part, tir.FloorDiv | tir.FloorMod) for part in walk(lowered))
