"""Steps that must be refused: each with its code, and with words that say what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.expect import raises_code
from tests.programs import (
    conv1d,
    copy_2d,
    matmul,
    matmul_relu,
    quantised_matmul,
    row_sum,
    symbolic_add,
    symbolic_matmul,
    total,
    vector_add,
)
from tilewright.dtypes import f64, i32
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, max_over, placeholder, reduce_axis, sum_over


@dataclass(frozen=True)
class Illegal:
    """After `before`, the step `step` is refused with `code` and a text that has `words`."""

    name: str
    program: Callable[[], tir.Func]
    step: Callable[[Schedule], object]
    code: str
    words: tuple[str, ...]
    before: Callable[[Schedule], object] = lambda _: None


def tiles(s: Schedule, i: int = 2, j: int = 3, k: int = 4, *, decompose: bool = True) -> None:
    for loop, tile in (("i", i), ("j", j), ("k", k)):
        s.split(loop, tile)
    s.reorder("i_0", "j_0", "k_0", "i_1", "j_1", "k_1")
    if decompose:
        s.decompose_reduction("C", "k_0")


def maximum_rows() -> tir.Func:
    a, k = placeholder("A", (4, 8)), reduce_axis(8, "k")
    return func("rows", [a], [compute("C", (4,), lambda i: max_over(a[i, k], k))])


def sum_of_sums() -> tir.Func:
    a, b, k = placeholder("A", (4, 8)), placeholder("B", (8,)), reduce_axis(8, "k")
    return func("sums", [a, b], [compute("C", (4,), lambda i: sum_over(a[i, k] + b[k], k))])


def outer_iterator_only() -> tir.Func:
    """A reduction whose iterator is in no index: the sum of a value, repeated."""
    a, k = placeholder("A", (4,)), reduce_axis(3, "k")
    return func("repeated", [a], [compute("C", (4,), lambda i: sum_over(a[i] * 1.0, k))])


def transposed() -> tir.Func:
    a, b, k = placeholder("A", (4, 8)), placeholder("B", (6, 8)), reduce_axis(8, "k")
    c = compute("C", (4, 6), lambda i, j: sum_over(a[i, k] * b[j, k], k))
    return func("transposed", [a, b], [c])


def dots(dtype: object = None, stride: int = 1) -> tir.Func:
    kind = {} if dtype is None else {"dtype": dtype}
    a = placeholder("A", (3, 8 * stride), **kind)
    b, k = placeholder("B", (3, 8), **kind), reduce_axis(8, "k")
    value = lambda i: sum_over(a[i, k * stride] * b[i, k], k)  # noqa: E731
    return func("dots", [a, b], [compute("C", (3,), value)])


def squares() -> tir.Func:
    a, b, k = placeholder("A", (3, 8)), placeholder("B", (3, 8)), reduce_axis(8, "k")
    value = lambda i: sum_over(a[i, k * k % 8] * b[i, k], k)  # noqa: E731
    return func("squares", [a, b], [compute("C", (3,), value)])


def scaled() -> tir.Func:
    a, b, k = placeholder("A", (3, 8)), placeholder("B", (3, 8)), reduce_axis(8, "k")
    value = lambda i: sum_over(a[i, k] * b[i, k] * 2.0, k)  # noqa: E731
    return func("scaled", [a, b], [compute("C", (3,), value)])


def decompose_k(s: Schedule) -> None:
    s.decompose_reduction("C", "k")


CASES = [
    # Handles and arguments
    Illegal("loop", vector_add, lambda s: s.split("x", 4), "S001", ("no loop `x`", "loops: i")),
    Illegal(
        "near_loop",
        matmul,
        lambda s: s.unroll("kk"),
        "S001",
        ("no loop `kk`", "did you mean `k`"),
    ),
    Illegal(
        "block",
        matmul,
        lambda s: s.decompose_reduction("D", "k"),
        "S001",
        ("no block `D`", "blocks: C"),
    ),
    Illegal(
        "buffer", matmul, lambda s: s.set_scope("T", "memory"), "S001", ("no buffer `T`", "A, B, C")
    ),
    Illegal(
        "loop_or_block",
        matmul,
        lambda s: s.annotate("x", "a", 1),
        "S001",
        ("no loop or block `x`",),
    ),
    Illegal(
        "stale",
        vector_add,
        lambda s: s.unroll("i"),
        "S001",
        ("no loop `i`", "`i_0`"),
        lambda s: s.split("i", 5),
    ),
    Illegal(
        "tiles_text",
        vector_add,
        lambda s: s.split("i", "8"),
        "S002",
        ("wrong argument for `tiles`", "a tile size"),
    ),
    Illegal(
        "tiles_flat",
        vector_add,
        lambda s: s.split("i", [6, 24]),
        "S103",
        ("tile sizes from large to small", "(6, 24)", "say [24, 6]"),
    ),
    Illegal(
        "tiles_float", vector_add, lambda s: s.split("i", 2.5), "S002", ("found: 2.5", "`tiles`")
    ),
    Illegal("tiles_missing", vector_add, lambda s: s.split("i"), "S002", ("found: nothing",)),
    Illegal("loop_number", vector_add, lambda s: s.split(0, 4), "S002", ("the name of a loop",)),
    Illegal("fuse_number", copy_2d, lambda s: s.fuse("i", 1), "S002", ("`fuse`", "found: 1")),
    Illegal(
        "padding_text", matmul, lambda s: s.pad_einsum("C", "444"), "S002", ("a list of whole",)
    ),
    Illegal("axis_text", row_sum, lambda s: s.rfactor("k", "last"), "S002", ("a whole number",)),
    # split
    Illegal(
        "split_parallel",
        copy_2d,
        lambda s: s.split("i", 2),
        "S101",
        ("loop `i` is not serial", "parallel"),
        lambda s: s.parallel("i"),
    ),
    Illegal(
        "split_vector",
        copy_2d,
        lambda s: s.split("j", 2),
        "S101",
        ("loop `j`", "vectorized"),
        lambda s: s.vectorize("j"),
    ),
    Illegal(
        "split_rest",
        lambda: vector_add(32),
        lambda s: s.split("i", [(6, 5)]),
        "S102",
        ("tiles that fill 32", "5×6 = 30", "add a tile of 2"),
    ),
    Illegal(
        "split_too_much",
        lambda: vector_add(32),
        lambda s: s.split("i", [(6, 4), (4, 3)]),
        "S102",
        ("= 36", "take 4 away"),
    ),
    Illegal(
        "split_symbolic_list",
        symbolic_add,
        lambda s: s.split("i", [(8, 2)]),
        "S102",
        ("tiles that fill any extent", "tiles of 8", "give one tile size"),
    ),
    Illegal("split_zero", vector_add, lambda s: s.split("i", 0), "S103", ("tiles of 0",)),
    Illegal("split_negative", vector_add, lambda s: s.split("i", -4), "S103", ("tiles of -4",)),
    Illegal(
        "split_empty_segment",
        vector_add,
        lambda s: s.split("i", [(30, 1), (6, 0)]),
        "S103",
        ("positive tile sizes and counts",),
    ),
    Illegal("split_no_tiles", vector_add, lambda s: s.split("i", []), "S103", ("tiles of ()",)),
    Illegal(
        "split_uneven_tile",
        vector_add,
        lambda s: s.split("i_1", 4),
        "S104",
        ("differs from tile to tile", "tiles of 8 and 6", "micro tile first"),
        lambda s: s.split("i", 8),
    ),
    Illegal(
        "split_symbolic_tile",
        symbolic_add,
        lambda s: s.split("i_1", 2),
        "S104",
        ("tiles of 8 and 1",),
        lambda s: s.split("i", 8),
    ),
    Illegal(
        "split_tile_list",
        vector_add,
        lambda s: s.split("i_1", [(4, 2)]),
        "S102",
        ("tiles of 4", "give one tile size"),
        lambda s: s.split("i", 8),
    ),
    # fuse
    Illegal("fuse_one", copy_2d, lambda s: s.fuse("i"), "S107", ("at least two", "found: i")),
    Illegal("fuse_none", copy_2d, lambda s: s.fuse(), "S107", ("found: none",)),
    Illegal("fuse_twice", copy_2d, lambda s: s.fuse("i", "i"), "S107", ("found: i, i",)),
    Illegal("fuse_order", copy_2d, lambda s: s.fuse("j", "i"), "S105", ("`i`", "`j`")),
    Illegal("fuse_gap", matmul, lambda s: s.fuse("i", "k"), "S105", ("whole body of loop `i`",)),
    Illegal("fuse_two_nests", matmul_relu, lambda s: s.fuse("k", "x"), "S105", ("`x`", "loop `k`")),
    Illegal(
        "fuse_imperfect",
        matmul,
        lambda s: s.fuse("j", "k"),
        "S105",
        ("2 parts",),
        decompose_k,
    ),
    Illegal(
        "fuse_unrolled",
        copy_2d,
        lambda s: s.fuse("i", "j"),
        "S101",
        ("unrolled",),
        lambda s: s.unroll("j"),
    ),
    Illegal(
        "fuse_uneven",
        vector_add,
        lambda s: s.fuse("i_0", "i_1"),
        "S106",
        ("loop `i_1` depends on loop `i_0`", "fuse before"),
        lambda s: s.split("i", 8),
    ),
    Illegal(
        "fuse_uneven_from_outside",
        lambda: copy_2d(10, 6),
        lambda s: s.fuse("j", "i_1"),
        "S106",
        ("`i_1` depends on loop `i_0`",),
        lambda s: (s.split("i", 4), s.reorder("j", "i_1")),
    ),
    # reorder
    Illegal("reorder_one", copy_2d, lambda s: s.reorder("i"), "S107", ("`reorder`",)),
    Illegal("reorder_twice", copy_2d, lambda s: s.reorder("i", "j", "i"), "S107", ("i, j, i",)),
    Illegal(
        "reorder_two_nests", matmul_relu, lambda s: s.reorder("x", "i"), "S109", ("one chain",)
    ),
    Illegal(
        "reorder_imperfect",
        matmul,
        lambda s: s.reorder("k", "i"),
        "S109",
        ("`k`", "nothing else between"),
        decompose_k,
    ),
    Illegal(
        "reorder_siblings",
        matmul,
        lambda s: s.reorder("k", "j_init"),
        "S109",
        ("one chain",),
        lambda s: s.decompose_reduction("C", "j"),
    ),
    Illegal(
        "reorder_parallel",
        copy_2d,
        lambda s: s.reorder("j", "i"),
        "S101",
        ("reorder first",),
        lambda s: s.parallel("i"),
    ),
    Illegal(
        "reorder_vector",
        copy_2d,
        lambda s: s.reorder("j", "i"),
        "S101",
        ("vectorized",),
        lambda s: s.vectorize("j"),
    ),
    Illegal(
        "reorder_uneven",
        vector_add,
        lambda s: s.reorder("i_1", "i_0"),
        "S106",
        ("counts its tiles",),
        lambda s: s.split("i", 8),
    ),
    Illegal(
        "reorder_inside_an_instruction",
        matmul,
        lambda s: s.reorder("C_tile_y_1", "C_tile_x_1"),
        "S101",
        ("vectorized",),
        lambda s: (tiles(s), s.tensorize("i_1", "f32.gemm(2,3,4)")),
    ),
    Illegal(
        "reorder_across_blocks",
        lambda: matmul(4, 6, 8),
        lambda s: s.reorder("i_1", "i_0"),
        "S109",
        ("one chain",),
        lambda s: (s.split("i", 2), s.blockize("i_1")),
    ),
    # unroll, vectorize, parallel
    Illegal(
        "unroll_symbolic", symbolic_add, lambda s: s.unroll("i"), "S110", ("depends on a size",)
    ),
    Illegal(
        "unroll_twice",
        vector_add,
        lambda s: s.unroll("i"),
        "S101",
        ("unrolled",),
        lambda s: s.unroll("i"),
    ),
    Illegal("vector_symbolic", symbolic_add, lambda s: s.vectorize("i"), "S110", ("`i`",)),
    Illegal(
        "unroll_tile_count",
        symbolic_add,
        lambda s: s.unroll("i_0"),
        "S110",
        ("`i_0`", "a constant or a tile size"),
        lambda s: s.split("i", 4),
    ),
    Illegal("vector_outer", copy_2d, lambda s: s.vectorize("i"), "S112", ("loop `j` is inside",)),
    Illegal("vector_reduce", row_sum, lambda s: s.vectorize("k"), "S108", ("block `C`", "rfactor")),
    Illegal(
        "vector_tile_of_reduce",
        row_sum,
        lambda s: s.vectorize("k_1"),
        "S108",
        ("loop `k_1` carries the reduction",),
        lambda s: s.split("k", 4),
    ),
    Illegal(
        "vector_fused_reduce",
        row_sum,
        lambda s: s.vectorize("i_k"),
        "S108",
        ("loop `i_k`",),
        lambda s: s.fuse("i", "k"),
    ),
    Illegal(
        "vector_around_an_instruction",
        matmul,
        lambda s: s.vectorize("i_0"),
        "S112",
        ("is inside",),
        lambda s: (tiles(s), s.tensorize("i_1", "f32.gemm(2,3,4)")),
    ),
    Illegal("parallel_reduce", row_sum, lambda s: s.parallel("k"), "S108", ("partial results",)),
    Illegal(
        "parallel_inside",
        copy_2d,
        lambda s: s.parallel("j"),
        "S114",
        ("parallel loop `i`",),
        lambda s: s.parallel("i"),
    ),
    Illegal(
        "parallel_around",
        copy_2d,
        lambda s: s.parallel("i"),
        "S114",
        ("parallel loop `j`",),
        lambda s: s.parallel("j"),
    ),
    Illegal(
        "parallel_vector",
        copy_2d,
        lambda s: s.parallel("j"),
        "S101",
        ("vectorized",),
        lambda s: s.vectorize("j"),
    ),
    Illegal(
        "parallel_reduction_tile",
        matmul,
        lambda s: s.parallel("k_0"),
        "S108",
        ("loop `k_0` carries the reduction of block `C_tile`",),
        lambda s: (tiles(s), s.blockize("i_1")),
    ),
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
        lambda: copy_2d(10, 4),
        lambda s: s.blockize("j"),
        "S401",
        ("loop `i_1` around the tile",),
        lambda s: s.split("i", 4),
    ),
    Illegal(
        "blockize_fused",
        matmul,
        lambda s: s.blockize("j_k_1"),
        "S253",
        ("loop `j_k_0` drives both",),
        lambda s: (s.fuse("j", "k"), s.split("j_k", 4)),
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
def test_illegal_step(case):
    schedule = Schedule(case.program())
    case.before(schedule)
    before, steps = schedule.func, schedule.trace
    with raises_code(case.code) as caught:
        case.step(schedule)
    text = str(caught.value)
    for word in case.words:
        assert word in text
    assert schedule.func is before
    assert schedule.trace == steps


def test_the_names_of_the_cases_are_distinct():
    assert len({case.name for case in CASES}) == len(CASES)
