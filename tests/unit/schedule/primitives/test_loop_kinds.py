"""`unroll`, `vectorize`, `parallel`: they only change how a loop runs."""

import pytest

from tests.expect import raises_code
from tests.programs import assert_same_meaning, copy_2d, matmul, row_sum, symbolic_add, vector_add
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir


@pytest.mark.parametrize(
    ("primitive", "kind"),
    [
        ("unroll", tir.LoopKind.UNROLLED),
        ("vectorize", tir.LoopKind.VECTOR),
        ("parallel", tir.LoopKind.PARALLEL),
    ],
)
def test_kind_is_set_and_nothing_else(rng, primitive, kind):
    program = copy_2d()
    schedule = Schedule(program)
    getattr(schedule, primitive)("j")
    assert schedule.loop("j").kind is kind
    assert schedule.loop("i").kind is tir.LoopKind.SERIAL
    assert_same_meaning(schedule, program, rng)


@pytest.mark.parametrize("primitive", ["unroll", "vectorize"])
def test_tiles_of_several_sizes_are_constant_once_cut(primitive):
    schedule = Schedule(vector_add(30))
    schedule.split("i", 8)
    getattr(schedule, primitive)("i_1")


@pytest.mark.parametrize("primitive", ["unroll", "vectorize"])
def test_kind_rejects_a_symbolic_extent(primitive):
    with raises_code("S110", text="split the loop by a constant tile first"):
        getattr(Schedule(symbolic_add()), primitive)("i")


def test_parallel_takes_a_symbolic_extent():
    schedule = Schedule(symbolic_add())
    schedule.parallel("i")
    assert schedule.loop("i").kind is tir.LoopKind.PARALLEL


@pytest.mark.parametrize("primitive", ["vectorize", "parallel"])
def test_kind_rejects_a_reduction(primitive):
    with raises_code("S108", text="rfactor"):
        getattr(Schedule(row_sum()), primitive)("k")


def test_vectorize_rejects_a_loop_around_a_loop():
    with raises_code("S112", text="loop `j` is inside"):
        Schedule(matmul()).vectorize("i")


def test_parallel_rejects_two_levels():
    schedule = Schedule(copy_2d())
    schedule.parallel("i")
    with raises_code("S114", text="fuse the two loops"):
        schedule.parallel("j")
