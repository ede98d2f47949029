import pytest

from tests.expect import raises_code
from tests.programs import assert_same_meaning, matmul, quantised_matmul, row_sum
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, sum_over


def tiled(program: tir.Func, i: int, j: int, k: int, *inner: str) -> Schedule:
    """A matmul cut into tiles with the start value outside."""
    schedule = Schedule(program)
    for loop, tile in (("i", i), ("j", j), ("k", k)):
        schedule.split(loop, tile)
    schedule.reorder("i_0", "j_0", "k_0", *(inner or ("i_1", "j_1", "k_1")))
    schedule.decompose_reduction("C", "k_0")
    return schedule


def test_tensorize_a_register_tile(golden, rng):
    program = matmul(4, 8, 6)
    schedule = tiled(program, 2, 4, 3)
    assert schedule.tensorize("i_1", "f32.gemm(2,4,3)") == "C_tile"
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


@pytest.mark.parametrize(
    "inner", [("k_1", "i_1", "j_1"), ("j_1", "k_1", "i_1"), ("i_1", "k_1", "j_1")]
)
def test_tensorize_does_not_mind_the_order_of_loops(rng, inner):
    program = matmul(4, 8, 6)
    schedule = tiled(program, 2, 4, 3, *inner)
    schedule.tensorize(inner[0], "f32.gemm(2,4,3)")
    assert_same_meaning(schedule, program, rng)


def test_tensorize_finds_axes_of_equal_extent(rng):
    program = matmul(8, 8, 8)
    schedule = tiled(program, 4, 4, 4)
    schedule.tensorize("i_1", "f32.gemm(4,4,4)")
    assert_same_meaning(schedule, program, rng)


def test_tensorize_swaps_the_operands_of_a_product(rng):
    a, b = placeholder("A", (4, 6)), placeholder("B", (6, 8))
    r = reduce_axis(6, "k")
    c = compute("C", (4, 8), lambda i, j: sum_over(b[r, j] * a[i, r], r))
    program = func("swapped", [a, b], [c])
    schedule = tiled(program, 2, 4, 3)
    schedule.tensorize("i_1", "f32.gemm(2,4,3)")
    assert_same_meaning(schedule, program, rng)


def test_tensorize_a_block_made_by_blockize(rng):
    program = matmul(4, 8, 6)
    schedule = tiled(program, 2, 4, 3)
    tile = schedule.blockize("i_1")
    schedule.tensorize(tile, "f32.gemm(2,4,3)")
    assert_same_meaning(schedule, program, rng)


def test_tensorize_a_blockized_reduction_before_it_is_decomposed(rng):
    program = matmul(4, 8, 6)
    schedule = Schedule(program)
    for loop, tile in (("i", 2), ("j", 4), ("k", 3)):
        schedule.split(loop, tile)
    schedule.reorder("i_0", "j_0", "k_0", "i_1", "j_1", "k_1")
    schedule.tensorize("i_1", "f32.gemm(2,4,3)")
    assert schedule.block("C_tile").init is not None
    assert_same_meaning(schedule, program, rng)


def test_tensorize_a_dot_product(golden, rng):
    a, b = placeholder("A", (3, 16)), placeholder("B", (3, 16))
    r = reduce_axis(16, "k")
    program = func("dots", [a, b], [compute("C", (3,), lambda i: sum_over(a[i, r] * b[i, r], r))])
    schedule = Schedule(program)
    schedule.split("k", 8)
    schedule.decompose_reduction("C", "k_0")
    schedule.tensorize("k_1", "f32.dot(8)")
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_tensorize_dot4(golden, rng):
    program = quantised_matmul(2, 8, 8)
    schedule = Schedule(program)
    schedule.reorder("i", "k", "j", "r")
    schedule.decompose_reduction("C", "k")
    schedule.tensorize("j", "i32.dot4(8)")
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_tensorize_records_what_the_instruction_requires():
    schedule = Schedule(quantised_matmul(2, 8, 8, packed=True))
    schedule.reorder("i", "k", "j", "r")
    schedule.decompose_reduction("C", "k")
    schedule.tensorize("j", "x86.avx2.dot4")
    assert dict(schedule.block("C_tile").notes)["requires"] == ("avx2",)


def test_tensorize_rejects_a_tile_of_another_extent():
    schedule = tiled(matmul(4, 8, 6), 2, 4, 3)
    with raises_code("S425", text="i: S(2), j: S(4), r: R(6)"):
        schedule.tensorize("i_1", "f32.gemm(2,4,6)")


def test_tensorize_rejects_another_computation():
    schedule = Schedule(row_sum(4, 8))
    schedule.decompose_reduction("C", "k")
    with raises_code("S423", facts={"expected": "a mul", "found": "a load"}):
        schedule.tensorize("k", "f32.dot(8)")


def test_tensorize_rejects_columns_that_are_not_contiguous():
    a, b = placeholder("A", (4, 6)), placeholder("B", (8, 6))
    r = reduce_axis(6, "k")
    c = compute("C", (4, 8), lambda i, j: sum_over(a[i, r] * b[j, r], r))
    schedule = tiled(func("transposed", [a, b], [c]), 2, 4, 3)
    with raises_code("S427", text="change the layout"):
        schedule.tensorize("i_1", "f32.gemm(2,4,3)")
