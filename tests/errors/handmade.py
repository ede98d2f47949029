"""Programs that do what a schedule cannot undo: overwriting, repeating, shuffling."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.dtypes import f32
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    compute,
    func,
    make_block,
    max_over,
    placeholder,
    reduce_axis,
    seq,
)


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


def broadcast_later() -> tir.Func:
    """`E` reads `C`, and `D`, which is computed after it."""
    a, d = placeholder("A", (8,)), placeholder("X", (8,))
    c = compute("C", (8,), lambda i: a[i] * 2.0)
    late = compute("D", (8,), lambda i: c[7 - i] + d[i])
    return func("late", [a, d], [compute("E", (8,), lambda i: c[i] * late[i])])


def inner_blocks(s: Schedule) -> None:
    s.split("k", 4)
    s.blockize("k_1")


def tiled(s: Schedule) -> None:
    for loop in ("i", "j", "k"):
        s.split(loop, 2)
    s.reorder("i_0", "j_0", "k_0", "i_1", "j_1", "k_1")


def maximum_rows() -> tir.Func:
    a, k = placeholder("A", (4, 8)), reduce_axis(8, "k")
    return func("rows", [a], [compute("C", (4,), lambda i: max_over(a[i, k], k))])
