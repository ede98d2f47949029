"""Reductions and blocks: steps that must be refused."""

from __future__ import annotations

import pytest

from tests.errors.handmade import maximum_rows
from tests.errors.illegal import Illegal, decompose_k, tiles
from tests.programs import (
    conv1d,
    copy_2d,
    matmul,
    matmul_relu,
    row_sum,
    symbolic_matmul,
    total,
)
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    compute,
    func,
    placeholder,
    reduce_axis,
    sum_over,
)


def sum_of_sums() -> tir.Func:
    a, b, k = placeholder("A", (4, 8)), placeholder("B", (8,)), reduce_axis(8, "k")
    return func("sums", [a, b], [compute("C", (4,), lambda i: sum_over(a[i, k] + b[k], k))])


def outer_iterator_only() -> tir.Func:
    """A reduction whose iterator is in no index: the sum of a value, repeated."""
    a, k = placeholder("A", (4,)), reduce_axis(3, "k")
    return func("repeated", [a], [compute("C", (4,), lambda i: sum_over(a[i] * 1.0, k))])


CASES = [
    # set_scope
    Illegal("scope_input", matmul, lambda s: s.set_scope("A", "register"), "S270", ("cache_read",)),
    Illegal("scope_output", matmul, lambda s: s.set_scope("C", "register"), "S270", ("`C`",)),
    Illegal("scope_name", matmul_relu, lambda s: s.set_scope("C", "L1"), "S215", ("`L1`",)),
    # decompose_reduction
    Illegal("decompose_map", copy_2d, lambda s: s.decompose_reduction("C", "i"), "S250", ("`C`",)),
    Illegal(
        "decompose_twice",
        matmul,
        lambda s: s.decompose_reduction("C", "k"),
        "S250",
        ("taken out before",),
        decompose_k,
    ),
    Illegal(
        "decompose_elsewhere",
        matmul_relu,
        lambda s: s.decompose_reduction("C", "x"),
        "S251",
        ("loop `x` is not around block `C`", "i, j, k"),
    ),
    Illegal(
        "decompose_inside",
        total,
        lambda s: s.decompose_reduction("C", "q"),
        "S252",
        ("also reduces over loop `p`",),
    ),
    Illegal(
        "decompose_inside_tiles",
        matmul,
        lambda s: s.decompose_reduction("C", "k_1"),
        "S252",
        ("loop `k_0`", "outside of loop `k_1`"),
        lambda s: s.split("k", 4),
    ),
    Illegal(
        "decompose_fused",
        matmul,
        lambda s: s.decompose_reduction("C", "i"),
        "S253",
        ("loop `j_k` drives both kinds",),
        lambda s: s.fuse("j", "k"),
    ),
    # rfactor
    Illegal(
        "rfactor_two_blocks",
        matmul,
        lambda s: s.rfactor("j"),
        "S260",
        ("C_init, C",),
        decompose_k,
    ),
    Illegal(
        "rfactor_decomposed",
        matmul,
        lambda s: s.rfactor("k"),
        "S261",
        ("before `decompose_reduction`",),
        decompose_k,
    ),
    Illegal("rfactor_map", copy_2d, lambda s: s.rfactor("i"), "S261", ("block `C`",)),
    Illegal("rfactor_spatial", matmul, lambda s: s.rfactor("i"), "S262", ("loop `i`",)),
    Illegal(
        "rfactor_fused",
        matmul,
        lambda s: s.rfactor("j_k"),
        "S253",
        ("loop `j_k`", "before the loops are fused"),
        lambda s: s.fuse("j", "k"),
    ),
    Illegal(
        "rfactor_uneven",
        lambda: row_sum(4, 10),
        lambda s: s.rfactor("k_1"),
        "S263",
        ("loop `k_1`",),
        lambda s: s.split("k", 4),
    ),
    Illegal("rfactor_axis", row_sum, lambda s: s.rfactor("k", axis=2), "S264", ("from -2 to 1",)),
    Illegal("rfactor_low_axis", row_sum, lambda s: s.rfactor("k", axis=-3), "S264", ("-3",)),
    # blockize
    Illegal(
        "blockize_uneven",
        lambda: matmul_relu(10, 4, 3),
        lambda s: s.blockize("y_0"),
        "S401",
        ("loop `x_1` around the tile",),
        lambda s: (s.split("x", 4), s.split("y", 2), s.compute_at("C", "y_0")),
    ),
    Illegal(
        "blockize_fused",
        matmul,
        lambda s: s.blockize("j_k_1"),
        "S253",
        ("loop `j_k_0` drives both",),
        lambda s: (s.fuse("j", "k"), s.split("j_k", 3)),
    ),
    Illegal(
        "blockize_implementation",
        matmul,
        lambda s: s.blockize("C_tile_p"),
        "S111",
        ("lies in the body of block `C_tile`",),
        lambda s: (tiles(s), s.tensorize("i_1", "f32.gemm(2,3,4)")),
    ),
    # pad_einsum
    Illegal("pad_count", matmul, lambda s: s.pad_einsum("C", [4, 4]), "S410", ("3 positive",)),
    Illegal("pad_zero", matmul, lambda s: s.pad_einsum("C", [4, 0, 4]), "S410", ("[4, 0, 4]",)),
    Illegal("pad_map", copy_2d, lambda s: s.pad_einsum("C", [4, 4]), "S411", ("`C`",)),
    Illegal("pad_maximum", maximum_rows, lambda s: s.pad_einsum("C", [8, 3]), "S411", ("product",)),
    Illegal("pad_sum", sum_of_sums, lambda s: s.pad_einsum("C", [8, 3]), "S411", ("A[…] * B[…]",)),
    Illegal(
        "pad_decomposed",
        matmul,
        lambda s: s.pad_einsum("C", [8, 8, 8]),
        "S411",
        ("before the start value is taken out",),
        decompose_k,
    ),
    Illegal("pad_window", conv1d, lambda s: s.pad_einsum("C", [4, 1, 1]), "S412", ("`vi`", "`A`")),
    Illegal(
        "pad_tap", conv1d, lambda s: s.pad_einsum("C", [1, 1, 4]), "S412", ("`vr`", "`reindex`")
    ),
    Illegal(
        "pad_split",
        lambda: matmul(5, 6, 7),
        lambda s: s.pad_einsum("C", [4, 1, 1]),
        "S413",
        ("iterator `vi`", "before the loops are split"),
        lambda s: s.split("i", 5),
    ),
    Illegal(
        "pad_parallel",
        lambda: matmul(5, 6, 7),
        lambda s: s.pad_einsum("C", [4, 1, 1]),
        "S101",
        ("parallel",),
        lambda s: s.parallel("i"),
    ),
    Illegal(
        "pad_repeated", outer_iterator_only, lambda s: s.pad_einsum("C", [1, 4]), "S414", ("`vk`",)
    ),
    # fuse_iters, split_iter
    Illegal(
        "fuse_iters_one", copy_2d, lambda s: s.fuse_iters("C", ["vi"]), "S430", ("two or more of",)
    ),
    Illegal(
        "fuse_iters_twice",
        copy_2d,
        lambda s: s.fuse_iters("C", ["vi", "vi"]),
        "S430",
        ("found: vi, vi",),
    ),
    Illegal(
        "fuse_iters_kinds",
        matmul,
        lambda s: s.fuse_iters("C", ["vj", "vk"]),
        "S431",
        ("differ in kind",),
    ),
    Illegal(
        "fuse_iters_gap",
        lambda: conv1d(10, 3, 2),
        lambda s: s.fuse_iters("C", ["vr", "vc"]),
        "S432",
        ("directly inside each other",),
    ),
    Illegal(
        "fuse_iters_parallel",
        copy_2d,
        lambda s: s.fuse_iters("C", ["vi", "vj"]),
        "S101",
        ("parallel",),
        lambda s: s.parallel("i"),
    ),
    Illegal(
        "split_iter_name", matmul, lambda s: s.split_iter("C", "k", 2), "S430", ("one of vi, vj",)
    ),
    Illegal(
        "split_iter_rest", matmul, lambda s: s.split_iter("C", "vk", 3), "S433", ("extent of 8",)
    ),
    Illegal(
        "split_iter_zero", matmul, lambda s: s.split_iter("C", "vk", 0), "S433", ("tiles of 0",)
    ),
    Illegal(
        "split_iter_symbolic",
        symbolic_matmul,
        lambda s: s.split_iter("C", "vi", 2),
        "S433",
        ("symbolic",),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_illegal_blocks(case):
    case.check()
