"""Steps on computations and layouts that must be refused, each with its code and fitting words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.expect import raises_code
from tests.moving import chain, dense, diamond, rows, stencil, windowed
from tests.programs import conv1d, copy_2d, matmul, matmul_relu, total
from tilewright.dtypes import f32, i32
from tilewright.errors import CODES
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    compute,
    func,
    make_block,
    placeholder,
    seq,
    size,
)


@dataclass(frozen=True)
class Illegal:
    """After `before`, the step `step` is refused with `code` and a text that has `words`."""

    name: str
    program: Callable[[], tir.Func]
    step: Callable[[Schedule], object]
    code: str
    words: tuple[str, ...]
    before: Callable[[Schedule], object] = id
    validated: bool = True  # validation refuses the program already; the primitive must as well


def line(n: int, name: str, out: tir.Buffer, value: Callable[[tir.Var], tir.Expr]) -> tir.Stmt:
    """`for i in range(n): out[i] = value(i)` as a block."""
    loop, at = tir.Var(f"{name}_i"), tir.Var("vi")
    store = tir.Store(out, (at,), value(at))
    return tir.For(
        loop, tir.Const(n), make_block(name, (tir.Iter(at, tir.Const(n)),), (loop,), store)
    )


def overwritten_input() -> tir.Func:
    """`B` is made from `X`, then `X` is overwritten, then `C` is made from `B`."""
    x, c = (tir.Buffer(name, (tir.Const(8),), f32) for name in ("X", "C"))
    b = tir.Buffer("B", (tir.Const(8),), f32)
    body = seq(
        line(8, "B", b, lambda i: x[i] * 2.0),
        line(8, "W", x, lambda i: tir.maximum(i.to(f32), 0.0)),
        line(8, "C", c, lambda i: b[i] + 1.0),
    )
    return tir.Func("overwritten", (x, c), tir.Alloc(b, body))


def overwriting_result() -> tir.Func:
    """`C` reads the old `X`, which `D` then overwrites from `B`."""
    x, c = (tir.Buffer(name, (tir.Const(8),), f32) for name in ("X", "C"))
    b = tir.Buffer("B", (tir.Const(8),), f32)
    body = seq(
        line(8, "B", b, lambda i: x[i] * 2.0),
        line(8, "C", c, lambda i: x[i] + 1.0),
        line(8, "D", x, lambda i: b[i]),
    )
    return tir.Func("overwriting", (x, c), tir.Alloc(b, body))


def unread() -> tir.Func:
    """Nothing reads `B`."""
    a, c = (tir.Buffer(name, (tir.Const(8),), f32) for name in ("A", "C"))
    b = tir.Buffer("B", (tir.Const(8),), f32)
    body = seq(line(8, "B", b, lambda i: a[i]), line(8, "C", c, lambda i: a[i] + 1.0))
    return tir.Func("unread", (a, c), tir.Alloc(b, body))


def repeated() -> tir.Func:
    """`B` is computed three times over, tile by tile, before `C` sums it up."""
    a, c = tir.Buffer("A", (tir.Const(8),), f32), tir.Buffer("C", (), f32)
    b = tir.Buffer("B", (tir.Const(8),), f32)
    o, t, j, at = tir.Var("o"), tir.Var("t"), tir.Var("j"), tir.Var("vi")
    iters = (tir.Iter(at, tir.Const(8)),)
    block = make_block("B", iters, (t * 4 + j,), tir.Store(b, (at,), a[at]))
    nest = tir.For(t, tir.Const(2), tir.For(j, tir.Const(4), block))
    k, vk = tir.Var("k"), tir.Var("vk")
    folding = make_block(
        "C",
        (tir.Iter(vk, tir.Const(8), tir.IterKind.REDUCE),),
        (k,),
        tir.Store(c, (), c[()] + b[vk]),
        tir.Store(c, (), tir.const(0.0, f32)),
    )
    body = seq(tir.For(o, tir.Const(3), nest), tir.For(k, tir.Const(8), folding))
    return tir.Func("repeated", (a, c), tir.Alloc(b, body))


def two_results() -> tir.Func:
    """One block that writes two buffers."""
    a, c, d = (tir.Buffer(name, (tir.Const(8),), f32) for name in ("A", "C", "D"))
    loop, at = tir.Var("i"), tir.Var("vi")
    stores = seq(tir.Store(c, (at,), a[at]), tir.Store(d, (at,), a[at]))
    block = make_block("both", (tir.Iter(at, tir.Const(8)),), (loop,), stores)
    return tir.Func("two", (a, c, d), tir.For(loop, tir.Const(8), block))


def every_other() -> tir.Func:
    """Every other element of the output is written, the rest stays as it is."""
    a, c = tir.Buffer("A", (tir.Const(8),), f32), tir.Buffer("C", (tir.Const(15),), f32)
    loop, at = tir.Var("i"), tir.Var("vi")
    block = make_block("C", (tir.Iter(at, tir.Const(8)),), (loop,), tir.Store(c, (at * 2,), a[at]))
    return tir.Func("sparse", (a, c), tir.For(loop, tir.Const(8), block))


def shuffled() -> tir.Func:
    """`B` is written in a shuffled order, which cannot be inverted."""
    a, c = (tir.Buffer(name, (tir.Const(16),), f32) for name in ("A", "C"))
    b = tir.Buffer("B", (tir.Const(16),), f32)
    loop, at = tir.Var("i"), tir.Var("vi")
    store = tir.Store(b, (at * 3 % 16,), a[at])
    block = make_block("B", (tir.Iter(at, tir.Const(16)),), (loop,), store)
    body = seq(tir.For(loop, tir.Const(16), block), line(16, "C", c, lambda i: b[i]))
    return tir.Func("shuffled", (a, c), tir.Alloc(b, body))


def sliced() -> tir.Func:
    a = placeholder("A", (4, 6))
    b = compute("B", (4, 6), lambda i, j: a[i, j] * 2.0)
    return func("sliced", [a], [compute("C", (4,), lambda i: b[i, 0] + 1.0)])


def twice() -> tir.Func:
    a = placeholder("A", (8,))
    b = compute("B", (8,), lambda i: a[i] * 2.0)
    return func("twice", [a], [compute("C", (8,), lambda i: b[i] + b[(i + 1) % 8])])


def mixed_types() -> tir.Func:
    a, b = placeholder("A", (8,)), placeholder("B", (8,), i32)
    return func("mixed", [a, b], [compute("C", (8,), lambda i: a[i] + b[i].to(f32))])


def broadcast_later() -> tir.Func:
    """`E` reads `C`, and `D`, which is computed after it."""
    a, d = placeholder("A", (8,)), placeholder("X", (8,))
    c = compute("C", (8,), lambda i: a[i] * 2.0)
    late = compute("D", (8,), lambda i: c[7 - i] + d[i])
    return func("late", [a, d], [compute("E", (8,), lambda i: c[i] * late[i])])


def symbolic() -> tir.Func:
    return chain(size("n"))


def inner_blocks(s: Schedule) -> None:
    s.split("k", 4)
    s.blockize("k_1")


def tiled(s: Schedule) -> None:
    for loop in ("i", "j", "k"):
        s.split(loop, 2)
    s.reorder("i_0", "j_0", "k_0", "i_1", "j_1", "k_1")


def unpadded_twice(s: Schedule) -> None:
    s.layout_pad("A", 0, 1, 1)
    s.layout_split("A", 0, 2)


COMPUTATION = [
    Illegal(
        "compute_at inner block",
        lambda: matmul_relu(4, 6, 8),
        lambda s: s.compute_at("C", "x"),
        "S201",
        ("`C` lies inside another block",),
        inner_blocks,
    ),
    Illegal(
        "cache_read inner block",
        lambda: matmul(4, 6, 8),
        lambda s: s.cache_read("C", "A"),
        "S201",
        ("inside another block",),
        inner_blocks,
    ),
    Illegal(
        "compute_at output",
        chain,
        lambda s: s.compute_at("C", "i"),
        "S202",
        ("`C` is an output", "cache_write"),
    ),
    Illegal(
        "compute_inline output",
        chain,
        lambda s: s.compute_inline("C"),
        "S202",
        ("`C` is an output",),
    ),
    Illegal(
        "compute_at of one of two writers",
        lambda: matmul_relu(4, 6, 8),
        lambda s: s.compute_at("C_init", "x"),
        "S203",
        ("not the only writer of `C`", "`C`"),
        lambda s: s.decompose_reduction("C", "k"),
    ),
    Illegal(
        "compute_at own loop",
        chain,
        lambda s: s.compute_at("B", "i"),
        "S204",
        ("`i` is already around block `B`",),
    ),
    Illegal(
        "reverse_compute_at own loop",
        chain,
        lambda s: s.reverse_compute_at("C", "i_1"),
        "S204",
        ("already around block `C`",),
    ),
    Illegal(
        "compute_at loop in a block",
        lambda: matmul_relu(4, 6, 8),
        lambda s: s.compute_at("D", "k_1"),
        "S205",
        ("`k_1` is not around blocks",),
        inner_blocks,
    ),
    Illegal(
        "compute_at no reader in the loop",
        lambda: diamond(8),
        lambda s: s.compute_at("D", "i_1"),
        "S206",
        ("nothing inside loop `i_1` reads what block `D` computes",),
    ),
    Illegal(
        "compute_at unread",
        unread,
        lambda s: s.compute_at("B", "C_i"),
        "S206",
        ("reads what block `B` computes",),
    ),
    Illegal(
        "compute_at reader elsewhere",
        lambda: diamond(8),
        lambda s: s.compute_at("B", "i_1"),
        "S207",
        ("`D` reads `B` outside of loop `i_1`", "around all readers"),
    ),
    Illegal(
        "compute_at changed input",
        overwritten_input,
        lambda s: s.compute_at("B", "C_i"),
        "S208",
        ("`W` writes `X`, which block `B` reads",),
        validated=False,
    ),
    Illegal(
        "compute_inline changed input",
        overwritten_input,
        lambda s: s.compute_inline("B"),
        "S208",
        ("`W` writes `X`", "cache_read"),
        validated=False,
    ),
    Illegal(
        "reverse_compute_at late input",
        broadcast_later,
        lambda s: s.reverse_compute_at("E", "i"),
        "S208",
        ("`D` writes `D`, which block `E` reads",),
    ),
    Illegal(
        "reverse_compute_inline overwritten",
        overwriting_result,
        lambda s: s.reverse_compute_inline("D"),
        "S208",
        ("reads `X`, which block `D` overwrites",),
        validated=False,
    ),
    Illegal(
        "compute_at update in place",
        lambda: matmul_relu(4, 6, 8),
        lambda s: s.compute_at("C", "x"),
        "S209",
        ("`C` updates its result in place", "decompose"),
        lambda s: s.decompose_reduction("C", "k"),
    ),
    Illegal(
        "reverse_compute_at unrelated loop",
        lambda: diamond(8),
        lambda s: s.reverse_compute_at("E", "i"),
        "S210",
        ("nothing inside loop `i`", "`E` reads"),
    ),
    Illegal(
        "reverse_compute_at in a reduction",
        lambda: matmul_relu(4, 6, 8),
        lambda s: s.reverse_compute_at("D", "k"),
        "S211",
        ("`C` is not finished", "`k` reduces"),
    ),
    Illegal(
        "reverse_compute_at below a reduction",
        lambda: matmul_relu(4, 6, 8),
        lambda s: s.reverse_compute_at("D", "i_1"),
        "S211",
        ("`k_0` reduces",),
        tiled,
    ),
    Illegal(
        "reverse_compute_at of a stencil",
        lambda: stencil(8),
        lambda s: s.reverse_compute_at("C", "i_0"),
        "S212",
        ("is not what block `C` reads",),
        lambda s: s.split("i", 5),
    ),
    Illegal(
        "reverse_compute_at with gaps",
        lambda: chain(12),
        lambda s: s.reverse_compute_at("C", "i_1_1"),
        "S212",
        ("`C` reads", "further out"),
        lambda s: (s.split("i", 4), s.reorder("i_1_1", "i_0")),
    ),
    Illegal(
        "reverse_compute_at of a slice",
        sliced,
        lambda s: s.reverse_compute_at("C", "j"),
        "S212",
        ("is not what block `C` reads",),
    ),
    Illegal(
        "reverse_compute_at repeats a reduction",
        repeated,
        lambda s: s.reverse_compute_at("C", "t"),
        "S213",
        ("`o` would repeat", "`C`"),
    ),
    Illegal(
        "reverse_compute_at overwrites too early",
        overwriting_result,
        lambda s: s.reverse_compute_at("D", "B_i"),
        "S208",
        ("reads `X`, which block `D` overwrites", "write to another buffer"),
        validated=False,
    ),
    Illegal(
        "cache_read scope",
        copy_2d,
        lambda s: s.cache_read("C", "A", "shared"),
        "S215",
        ("no scope `shared`", "`memory` or `register`"),
    ),
    Illegal(
        "cache_write scope", copy_2d, lambda s: s.cache_write("C", "L2"), "S215", ("no scope `L2`",)
    ),
    Illegal(
        "cache_read of a stranger",
        chain,
        lambda s: s.cache_read("C", "A"),
        "S220",
        ("`C` does not read `A`", "it reads: `B`"),
    ),
    Illegal(
        "reindex of a stranger",
        chain,
        lambda s: s.reindex("C", "A"),
        "S220",
        ("`C` does not read `A`",),
    ),
    Illegal(
        "cache_read of the result",
        lambda: matmul(4, 6, 8),
        lambda s: s.cache_read("C", "C"),
        "S221",
        ("`C` writes `C` itself", "cache_write"),
    ),
    Illegal(
        "cache_read in a shared nest",
        lambda: chain(8),
        lambda s: s.cache_read("C", "B"),
        "S222",
        ("`B` writes `B` in a loop", "before `compute_at`"),
        lambda s: (s.split("i_1", 4), s.compute_at("B", "i_1_0")),
    ),
    Illegal(
        "reindex in a shared nest",
        lambda: chain(8),
        lambda s: s.reindex("C", "B"),
        "S222",
        ("in a loop that block `C` shares",),
        lambda s: (s.split("i_1", 4), s.compute_at("B", "i_1_0")),
    ),
    Illegal(
        "cache_write of two results",
        two_results,
        lambda s: s.cache_write("both"),
        "S223",
        ("writes more than one buffer", "`C`, `D`"),
    ),
    Illegal(
        "cache_write of a part",
        every_other,
        lambda s: s.cache_write("C"),
        "S224",
        ("`C` does not write the whole of `C`",),
    ),
    Illegal(
        "reindex of two accesses",
        lambda: stencil(8),
        lambda s: s.reindex("C", "B"),
        "S225",
        ("accesses `B` at more than one place",),
    ),
    Illegal(
        "reindex of a tiled block",
        lambda: matmul(4, 6, 8),
        lambda s: s.reindex(s.blocks()[0], "A"),
        "S226",
        ("has loops or blocks inside",),
        inner_blocks,
    ),
    Illegal(
        "reindex of a result in use",
        lambda: chain(8),
        lambda s: s.reindex("B", "B"),
        "S227",
        ("`C` reads `B` in a loop", "`B` shares"),
        lambda s: (s.split("i_1", 4), s.compute_at("B", "i_1_0")),
    ),
    Illegal(
        "compute_inline of a reduction",
        lambda: matmul_relu(4, 6, 8),
        lambda s: s.compute_inline("C"),
        "S230",
        ("not one plain value", "a reduction"),
    ),
    Illegal(
        "compute_inline of two stores",
        two_results,
        lambda s: s.compute_inline("both"),
        "S230",
        ("several statements",),
    ),
    Illegal(
        "reverse_compute_inline into a reduction",
        lambda: matmul_relu(4, 6, 8),
        lambda s: s.reverse_compute_inline("D"),
        "S230",
        ("`C` is not one plain value",),
    ),
    Illegal(
        "reverse_compute_inline of a reduction",
        rows,
        lambda s: s.reverse_compute_inline("C"),
        "S230",
        ("`C` is not one plain value",),
    ),
    Illegal(
        "compute_inline of a shuffle",
        shuffled,
        lambda s: s.compute_inline("B"),
        "S231",
        ("does not tell which iteration of `B`",),
        validated=False,
    ),
    Illegal(
        "compute_inline unread",
        unread,
        lambda s: s.compute_inline("B"),
        "S232",
        ("nothing reads `B`",),
    ),
    Illegal(
        "reverse_compute_inline without producer",
        copy_2d,
        lambda s: s.reverse_compute_inline("C"),
        "S233",
        ("no producer",),
    ),
    Illegal(
        "reverse_compute_inline shared input",
        lambda: diamond(8),
        lambda s: s.reverse_compute_inline("C"),
        "S234",
        ("`B` is also read by `D`",),
    ),
    Illegal(
        "reverse_compute_inline of a slice",
        sliced,
        lambda s: s.reverse_compute_inline("C"),
        "S235",
        ("each element of `B` exactly once",),
    ),
    Illegal(
        "reverse_compute_inline of two reads",
        twice,
        lambda s: s.reverse_compute_inline("C"),
        "S235",
        ("exactly once", "reverse_compute_at"),
    ),
    Illegal(
        "compute_at unknown loop", chain, lambda s: s.compute_at("B", "z"), "S001", ("no loop `z`",)
    ),
    Illegal(
        "cache_read unknown buffer",
        chain,
        lambda s: s.cache_read("C", "BB"),
        "S001",
        ("no buffer `BB`", "did you mean `B`"),
    ),
    Illegal(
        "compute_inline a number",
        chain,
        lambda s: s.compute_inline(3),
        "S002",
        ("wrong argument for `block`", "name of a block"),
    ),
]

LAYOUT = [
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


@pytest.mark.parametrize("case", COMPUTATION + LAYOUT, ids=lambda case: case.name)
def test_refused(case):
    schedule = Schedule(case.program() if case.validated else chain())
    if not case.validated:
        schedule.func = case.program()
    case.before(schedule)
    before, steps = schedule.func, len(schedule.trace)
    with raises_code(case.code) as caught:
        case.step(schedule)
    text = str(caught.value)
    for word in case.words:
        assert word in text, f"expected {word!r} in:\n{text}"
    assert caught.value.step is not None
    assert schedule.func is before
    assert len(schedule.trace) == steps


def test_cases_are_distinct():
    cases = COMPUTATION + LAYOUT
    assert len({case.name for case in cases}) == len(cases) >= 50


def test_every_code_of_these_primitives_is_raised():
    ours = {c for c in CODES if "S200" <= c < "S250" or "S300" <= c < "S400"}
    assert ours <= {case.code for case in COMPUTATION + LAYOUT}
