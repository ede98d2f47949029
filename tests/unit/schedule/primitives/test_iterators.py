"""`fuse_iters` and `split_iter`: a block as if it had been written for other dimensions."""

import pytest

from tests.expect import raises_code
from tests.programs import assert_same_meaning, conv1d, copy_2d, matmul, symbolic_matmul, total
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder


def test_fuse_iters_with_layouts_gives_a_block_of_fewer_dimensions(golden, rng):
    a = placeholder("A", (4, 6))
    t = compute("T", (4, 6), lambda i, j: a[i, j] * 2.0)
    program = func("chain", [a], [compute("C", (4, 6), lambda x, y: t[x, y] + 1.0)])
    schedule = Schedule(program)
    schedule.layout_fuse("T", 0)
    assert schedule.fuse_iters("T", ["vi", "vj"]) == "i_j"
    assert schedule.block("T").body.indices == (schedule.block("T").iters[0].var,)
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_fuse_iters_of_a_reduction(rng):
    program = total(4, 6)
    schedule = Schedule(program)
    schedule.fuse_iters("C", ["vp", "vq"])
    assert [it.kind for it in schedule.block("C").iters] == [tir.IterKind.REDUCE]
    assert_same_meaning(schedule, program, rng)


@pytest.mark.parametrize("rows", [1, 3])
def test_fuse_iters_with_a_symbolic_extent(rng, rows):
    program = symbolic_matmul()
    schedule = Schedule(program)
    schedule.fuse_iters("C", ["vi", "vj"])
    assert_same_meaning(schedule, program, rng, {"rows": rows, "depth": 4})


def test_split_iter_brings_out_a_group(golden, rng):
    a = placeholder("A", (3, 5))
    c = compute("C", (6, 5), lambda o, i: a[o // 2, i] + 1.0)
    program = func("grouped", [a], [c])
    schedule = Schedule(program)
    assert schedule.split_iter("C", "vo", 2) == ("o_0", "o_1")
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_split_iter_of_a_reduction(rng):
    program = matmul(3, 4, 6)
    schedule = Schedule(program)
    schedule.split_iter("C", "vk", 3)
    assert_same_meaning(schedule, program, rng)


def test_split_and_fuse_are_inverse(rng):
    program = matmul(3, 4, 6)
    schedule = Schedule(program)
    schedule.split_iter("C", "vk", 3)
    schedule.fuse_iters("C", ["vk_0", "vk_1"])
    block = schedule.block("C")
    assert len(block.iters) == 3
    assert all(isinstance(i, tir.Var) for r in (*block.reads, *block.writes) for i in _starts(r))
    assert_same_meaning(schedule, program, rng)


def _starts(region: tir.Region) -> list[tir.Expr]:
    return [span.start for span in region.ranges]


def test_fuse_iters_rejects_iterators_of_two_kinds():
    with raises_code("S431", text="`vj` and `vk`"):
        Schedule(matmul()).fuse_iters("C", ["vj", "vk"])


def test_fuse_iters_rejects_loops_that_lie_apart():
    with raises_code("S432", text="`reorder`"):
        Schedule(copy_2d()).fuse_iters("C", ["vj", "vi"])


def test_fuse_iters_rejects_an_unknown_iterator():
    with raises_code("S430", text="two or more of vi, vc, vr"):
        Schedule(conv1d()).fuse_iters("C", ["vi", "vx"])


def test_split_iter_rejects_a_size_that_leaves_a_rest():
    with raises_code("S433", text="tiles of 4 do not divide"):
        Schedule(matmul(6, 4, 4)).split_iter("C", "vi", 4)


def test_split_iter_rejects_a_split_loop():
    schedule = Schedule(matmul(6, 4, 4))
    schedule.split("i", 2)
    with raises_code("S432"):
        schedule.split_iter("C", "vi", 3)
