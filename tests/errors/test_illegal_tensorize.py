"""Tensor instructions on blocks that do not fit them."""

from __future__ import annotations

import pytest

from tests.errors.handmade import maximum_rows
from tests.errors.illegal import Illegal, decompose_k, tiles
from tests.programs import (
    matmul,
    quantised_matmul,
    row_sum,
    symbolic_matmul,
)
from tilewright.dtypes import f64, i32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    compute,
    func,
    placeholder,
    reduce_axis,
    sum_over,
)


def transposed() -> tir.Func:
    a, b, k = placeholder("A", (4, 8)), placeholder("B", (6, 8)), reduce_axis(8, "k")
    c = compute("C", (4, 6), lambda i, j: sum_over(a[i, k] * b[j, k], k))
    return func("transposed", [a, b], [c])


def dots(dtype: object = None, stride: int = 1) -> tir.Func:
    kind = {} if dtype is None else {"dtype": dtype}
    a = placeholder("A", (3, 8 * stride), **kind)
    b, k = placeholder("B", (3, 8), **kind), reduce_axis(8, "k")
    c = compute("C", (3,), lambda i: sum_over(a[i, k * stride] * b[i, k], k))
    return func("dots", [a, b], [c])


def squares() -> tir.Func:
    a, b, k = placeholder("A", (3, 8)), placeholder("B", (3, 8)), reduce_axis(8, "k")
    c = compute("C", (3,), lambda i: sum_over(a[i, k * k % 8] * b[i, k], k))
    return func("squares", [a, b], [c])


def scaled() -> tir.Func:
    a, b, k = placeholder("A", (3, 8)), placeholder("B", (3, 8)), reduce_axis(8, "k")
    c = compute("C", (3,), lambda i: sum_over(a[i, k] * b[i, k] * 2.0, k))
    return func("scaled", [a, b], [c])


CASES = [
    # tensorize
    Illegal(
        "tensorize_name",
        matmul,
        lambda s: s.tensorize("i", "f32.gem(4,4,4)"),
        "S420",
        ("`f32.gem(4,4,4)`", "f32.gemm(m,n,k)"),
    ),
    Illegal(
        "tensorize_parameters",
        matmul,
        lambda s: s.tensorize("i", "f32.gemm(4)"),
        "S420",
        ("known",),
    ),
    Illegal(
        "tensorize_zero", matmul, lambda s: s.tensorize("i", "f32.dot(0)"), "S420", ("f32.dot",)
    ),
    Illegal(
        "tensorize_leaf", matmul, lambda s: s.tensorize("C", "f32.gemm(4,6,8)"), "S421", ("`C`",)
    ),
    Illegal(
        "tensorize_two_blocks",
        matmul,
        lambda s: s.tensorize("i", "f32.gemm(4,6,8)"),
        "S421",
        ("one block of one store",),
        decompose_k,
    ),
    Illegal(
        "tensorize_symbolic",
        symbolic_matmul,
        lambda s: s.tensorize("k", "f32.dot(8)"),
        "S421",
        ("constant extent",),
    ),
    Illegal(
        "tensorize_uneven",
        lambda: matmul(5, 6, 8),
        lambda s: s.tensorize("i_1", "f32.gemm(2,3,4)"),
        "S421",
        ("sizes that divide",),
        tiles,
    ),
    Illegal(
        "tensorize_start_value",
        dots,
        lambda s: s.tensorize("k", "f32.dot(8)"),
        "S422",
        ('decompose_reduction("C"',),
    ),
    Illegal(
        "tensorize_other_value",
        row_sum,
        lambda s: s.tensorize("k_1", "f32.dot(4)"),
        "S423",
        ("expected: a mul", "found: a load"),
        lambda s: (s.split("k", 4), s.decompose_reduction("C", "k_0")),
    ),
    Illegal(
        "tensorize_scaled",
        scaled,
        lambda s: s.tensorize("k", "f32.dot(8)"),
        "S423",
        ("does not compute",),
        decompose_k,
    ),
    Illegal(
        "tensorize_maximum",
        maximum_rows,
        lambda s: s.tensorize("k", "f32.dot(8)"),
        "S423",
        ("expected: a add", "found: a max"),
        decompose_k,
    ),
    Illegal(
        "tensorize_dtype",
        lambda: dots(f64),
        lambda s: s.tensorize("k", "f32.dot(8)"),
        "S424",
        ("f32 for operand `acc`", "f64 in `C`"),
        decompose_k,
    ),
    Illegal(
        "tensorize_integers",
        lambda: dots(i32),
        lambda s: s.tensorize("k", "f32.dot(8)"),
        "S424",
        ("i32 in",),
        decompose_k,
    ),
    Illegal(
        "tensorize_extent",
        dots,
        lambda s: s.tensorize("k", "f32.dot(4)"),
        "S425",
        ("r: R(4)", "k: R(8)"),
        decompose_k,
    ),
    Illegal(
        "tensorize_missing_loop",
        matmul,
        lambda s: s.tensorize("j_1", "f32.gemm(2,3,4)"),
        "S425",
        ("i: S(2), j: S(3), r: R(4)",),
        tiles,
    ),
    Illegal(
        "tensorize_quadratic",
        squares,
        lambda s: s.tensorize("k", "f32.dot(8)"),
        "S426",
        ("linear in the loops",),
        decompose_k,
    ),
    Illegal(
        "tensorize_stride",
        lambda: dots(None, 2),
        lambda s: s.tensorize("k", "f32.dot(8)"),
        "S427",
        ("1 apart", "2 apart in `A`"),
        decompose_k,
    ),
    Illegal(
        "tensorize_transposed",
        transposed,
        lambda s: s.tensorize("i_1", "f32.gemm(2,3,4)"),
        "S427",
        ("8 apart in `B`", "layout"),
        tiles,
    ),
    Illegal(
        "tensorize_unpacked",
        lambda: quantised_matmul(2, 8, 8),
        lambda s: s.tensorize("j", "x86.avx2.dot4"),
        "S426",
        ("`b`",),
        lambda s: (s.reorder("i", "k", "j", "r"), s.decompose_reduction("C", "k")),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_illegal_tensorize(case):
    case.check()
