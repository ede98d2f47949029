"""Layouts: steps that must be refused."""

from __future__ import annotations

import pytest

from tests.errors.illegal import Illegal
from tests.moving import chain, dense, diamond, windowed
from tests.programs import (
    conv1d,
    copy_2d,
    matmul_relu,
    total,
)
from tilewright.dtypes import f32, i32
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    compute,
    func,
    placeholder,
    size,
)


def mixed_types() -> tir.Func:
    a, b = placeholder("A", (8,)), placeholder("B", (8,), i32)
    return func("mixed", [a, b], [compute("C", (8,), lambda i: a[i] + b[i].to(f32))])


def symbolic() -> tir.Func:
    return chain(size("n"))


def unpadded_twice(s: Schedule) -> None:
    s.layout_pad("A", 0, 1, 1)
    s.layout_split("A", 0, 2)


CASES = [
    Illegal(
        "split no such dimension",
        copy_2d,
        lambda s: s.layout_split("A", 2, 2),
        "S301",
        ("`A` has no dimension 2", "dimensions: 2"),
    ),
    Illegal(
        "split negative dimension",
        copy_2d,
        lambda s: s.layout_split("A", -3, 2),
        "S301",
        ("no dimension -3",),
    ),
    Illegal(
        "fuse over the end",
        copy_2d,
        lambda s: s.layout_fuse("A", 1),
        "S301",
        ("`A` has no dimension 2",),
    ),
    Illegal(
        "pad a scalar",
        total,
        lambda s: s.layout_pad("C", 0, 1, 1),
        "S301",
        ("`C` has no dimension 0", "scalar"),
    ),
    Illegal(
        "unfold no such dimension",
        copy_2d,
        lambda s: s.layout_unfold("A", 5, 2, 1),
        "S301",
        ("no dimension 5",),
    ),
    Illegal(
        "store_at no such dimension",
        lambda: dense(4, 6, 8, relu=True),
        lambda s: s.layout_store_at("B", "bias", 2),
        "S301",
        ("`B` has no dimension 2",),
    ),
    Illegal(
        "unpad without pad",
        copy_2d,
        lambda s: s.layout_unpad("A"),
        "S302",
        ("is not `pad`", "no layout step"),
    ),
    Illegal(
        "unpad out of order",
        copy_2d,
        lambda s: s.layout_unpad("A"),
        "S302",
        ("is not `pad`", "split(0, 2)", "reverse order"),
        unpadded_twice,
    ),
    Illegal(
        "fold without unfold", copy_2d, lambda s: s.layout_fold("A"), "S302", ("is not `unfold`",)
    ),
    Illegal(
        "decouple without store_at",
        copy_2d,
        lambda s: s.layout_decouple("A"),
        "S302",
        ("is not `store_at`",),
    ),
    Illegal(
        "split that does not divide",
        copy_2d,
        lambda s: s.layout_split("A", 0, 3),
        "S303",
        ("groups of 3", "divides", 'layout_pad("A", 0, 0, 2)'),
    ),
    Illegal(
        "split by zero",
        copy_2d,
        lambda s: s.layout_split("A", 0, 0),
        "S303",
        ("groups of 0", "positive"),
    ),
    Illegal(
        "split of a symbolic size",
        symbolic,
        lambda s: s.layout_split("A", 0, 4),
        "S303",
        ("symbolic", "layout_pad"),
    ),
    Illegal(
        "reorder too short",
        copy_2d,
        lambda s: s.layout_reorder("A", [0]),
        "S304",
        ("[0] is not an order", "0 to 1"),
    ),
    Illegal(
        "reorder repeated",
        copy_2d,
        lambda s: s.layout_reorder("A", [1, 1]),
        "S304",
        ("[1, 1] is not an order",),
    ),
    Illegal(
        "reorder negative",
        copy_2d,
        lambda s: s.layout_reorder("A", [-1, 0]),
        "S304",
        ("not an order",),
    ),
    Illegal(
        "fuse one",
        copy_2d,
        lambda s: s.layout_fuse("A", 0, 1),
        "S305",
        ("two dimensions or more to fuse, not 1",),
    ),
    Illegal(
        "pad by nothing",
        copy_2d,
        lambda s: s.layout_pad("A", 0, 0, 0),
        "S306",
        ("`A` cannot be padded by 0 and 0",),
    ),
    Illegal(
        "pad by less than nothing",
        copy_2d,
        lambda s: s.layout_pad("A", 0, -1, 2),
        "S306",
        ("-1 and 2",),
    ),
    Illegal(
        "unpad what is relied on",
        lambda: windowed(6, clamped=True),
        lambda s: s.layout_unpad("B"),
        "S307",
        ("zeros around `B` are read",),
        lambda s: s.layout_pad("B", 0, 1, 1),
    ),
    Illegal(
        "unfold tile too large",
        conv1d,
        lambda s: s.layout_unfold("A", 1, 13, 4),
        "S308",
        ("tiles of 13 every 4", "stride <= tile <= size"),
    ),
    Illegal(
        "unfold stride too large",
        conv1d,
        lambda s: s.layout_unfold("A", 1, 4, 5),
        "S308",
        ("tiles of 4 every 5",),
    ),
    Illegal(
        "unfold stride zero", conv1d, lambda s: s.layout_unfold("A", 1, 4, 0), "S308", ("every 0",)
    ),
    Illegal(
        "unfold symbolic size",
        symbolic,
        lambda s: s.layout_unfold("A", 0, 4, 2),
        "S308",
        ("symbolic",),
    ),
    Illegal(
        "unfold a reduction's result",
        lambda: matmul_relu(4, 6, 8),
        lambda s: s.layout_unfold("C", 1, 4, 2),
        "S309",
        ("`C` cannot write every copy", "a reduction"),
    ),
    Illegal(
        "unfold after scheduling",
        lambda: chain(8),
        lambda s: s.layout_unfold("B", 0, 4, 2),
        "S309",
        ("already scheduled", "cache_read"),
        lambda s: s.split("i", 4),
    ),
    Illegal(
        "unfold with a parallel writer",
        lambda: chain(8),
        lambda s: s.layout_unfold("B", 0, 4, 2),
        "S309",
        ("already scheduled",),
        lambda s: s.parallel("i"),
    ),
    Illegal(
        "unfold two writers",
        lambda: matmul_relu(4, 6, 8),
        lambda s: s.layout_unfold("C", 1, 4, 2),
        "S309",
        ("several blocks",),
        lambda s: s.decompose_reduction("C", "k"),
    ),
    Illegal(
        "fold after scheduling",
        lambda: chain(8),
        lambda s: s.layout_fold("B"),
        "S309",
        ("before the writer is scheduled",),
        lambda s: (s.layout_unfold("B", 0, 4, 2), s.split(s.loops("B")[0], 2)),
    ),
    Illegal(
        "store_at itself",
        copy_2d,
        lambda s: s.layout_store_at("A", "A", 0),
        "S310",
        ("the same buffer twice",),
    ),
    Illegal(
        "store_at output",
        copy_2d,
        lambda s: s.layout_store_at("A", "C", 0),
        "S310",
        ("`A` and `C` cannot be stored together", "an output"),
    ),
    Illegal(
        "store_at parameter and intermediate",
        chain,
        lambda s: s.layout_store_at("A", "B", 0),
        "S310",
        ("a parameter and an intermediate",),
    ),
    Illegal(
        "store_at other dtype",
        mixed_types,
        lambda s: s.layout_store_at("A", "B", 0),
        "S310",
        ("f32 and i32",),
    ),
    Illegal(
        "store_at other scope",
        lambda: diamond(8),
        lambda s: s.layout_store_at("B", "C", 0),
        "S310",
        ("memory and register",),
        lambda s: s.set_scope("C", "register"),
    ),
    Illegal(
        "store_at of a pair",
        lambda: dense(4, 6, 8, relu=True),
        lambda s: s.layout_store_at("A", "B", 0),
        "S310",
        ("already holds another",),
        lambda s: s.layout_store_at("B", "bias", 0),
    ),
    Illegal(
        "store_at producer and result",
        lambda: diamond(8),
        lambda s: s.layout_store_at("B", "C", 0),
        "S310",
        ("computes one from the other",),
    ),
    Illegal(
        "store_at other shape",
        lambda: dense(4, 6, 8, relu=True),
        lambda s: s.layout_store_at("A", "bias", 0),
        "S311",
        ("`bias` does not fit next to `A`", "(8)"),
    ),
    Illegal(
        "store_at other rank",
        conv1d,
        lambda s: s.layout_store_at("A", "W", 0),
        "S311",
        ("along dimension 0",),
    ),
    Illegal(
        "decouple a mixed access",
        lambda: dense(4, 6, 8, relu=True),
        lambda s: s.layout_decouple("B"),
        "S312",
        ("may meet the buffer and what is stored behind it",),
        lambda s: (s.layout_store_at("B", "bias", 0), s.cache_read("C", "B")),
    ),
    Illegal(
        "split by a text",
        copy_2d,
        lambda s: s.layout_split("A", 0, "4"),
        "S002",
        ("wrong argument for `factor`", "whole number"),
    ),
    Illegal(
        "reorder by a number",
        copy_2d,
        lambda s: s.layout_reorder("A", 1),
        "S002",
        ("wrong argument for `order`",),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_illegal_layout(case):
    case.check()
