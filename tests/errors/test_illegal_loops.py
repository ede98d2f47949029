"""Names, arguments and loops: steps that must be refused."""

from __future__ import annotations

import pytest

from tests.errors.illegal import Illegal, decompose_k, tiles
from tests.programs import (
    copy_2d,
    matmul,
    matmul_relu,
    row_sum,
    symbolic_add,
    vector_add,
)

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
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_illegal_loops(case):
    case.check()
