"""What the draft does to blocks that no recipe schedules."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.schedule.draft import draft
from tilewright.target import Target

PRODUCT = """
def product(A: f32[{n}, {m}], B: f32[{n}, {m}], C: f32[()]):
    for i in range({n}):
        for j in range({m}):
            with block("C", vi=R({n}, i), vj=R({m}, j)):
                reads(A[vi, vj], B[vi, vj])
                writes(C[()])
                with init():
                    C[()] = 0.0
                C[()] = C[()] + A[vi, vj] * B[vi, vj]
"""


@pytest.mark.parametrize(("n", "m", "is_apart"), [("n", "m", True), ("n", 5, True), (5, 5, False)])
def test_a_sum_over_sizes_that_may_be_zero_starts_in_front_of_its_loops(n, m, is_apart):
    """One that has a first iteration in any case starts there, as it is written."""
    made = draft(tw.parse(PRODUCT.format(n=n, m=m)), Target.named("x86-64-v3"))
    assert made.remarks == []
    assert made.blocks() == (("C_init", "C") if is_apart else ("C",))
