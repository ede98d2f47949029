"""Programs and expressions that several tests of the tensor IR look at."""

from __future__ import annotations

from tilewright.dtypes import bf16, boolean, f16, f32, f64, i8, i32, index, u8
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    call,
    compute,
    func,
    max_over,
    placeholder,
    reduce_axis,
    size,
    sum_over,
)
from tilewright.tensor.layout import LayoutStep
from tilewright.tensor.node import node
from tilewright.tensor.parser import parse

i, j = tir.Var("i"), tir.Var("j")
x, y, t = tir.Var("x", f32), tir.Var("y", f32), tir.Var("t", f32)
a8, b8 = tir.Var("a8", i8), tir.Var("b8", i8)
p, q = tir.Var("p", boolean), tir.Var("q", boolean)
A = tir.Buffer("A", (tir.Const(64),), f32)
n = size("n")


@node
class Tiled(LayoutStep):
    """A stand-in for a layout step."""

    dim: int
    factors: tuple[int, ...]


EXPRESSIONS: dict[str, tir.Expr] = {
    "i + j * 2": i + j * 2,
    "(i + j) * 2": (i + j) * 2,
    "i - (j - 1)": i - (j - 1),
    "i - j - 1": i - j - 1,
    "i // 4 * 4 + i % 4": i // 4 * 4 + i % 4,
    "i // (j // 2)": i // (j // 2),
    "i % (j + 1)": i % (j + 1),
    "x / y / 2.0": x / y / 2.0,
    "x / (y / 2.0)": x / (y / 2.0),
    "-5": tir.Const(-5),
    "i * -5": i * -5,
    "0 - i": tir.Sub(tir.Const(0), i),
    "-i": tir.Neg(i),
    "--x": tir.Neg(tir.Neg(x)),
    "-(x + y)": tir.Neg(x + y),
    "neg(1.0)": tir.Neg(tir.Const(1.0, f32)),
    "-0.0": tir.Const(-0.0, f32),
    "1e-05": tir.Const(1e-5, f32),
    'f32("inf")': tir.Const(float("inf"), f32),
    'f32("-inf")': tir.Const(float("-inf"), f32),
    'f64("nan")': tir.Const(float("nan"), f64),
    "f64(0.1)": tir.Const(0.1, f64),
    "bf16(1.5)": tir.Const(1.5, bf16),
    "i8(-128)": tir.Const(-128, i8),
    "u8(255)": tir.Const(255, u8),
    "True": tir.TRUE,
    "f16(x)": tir.Cast(f16, x),
    "cast(f32, 3)": tir.Cast(f32, tir.Const(3)),
    "cast(f64, -1.0)": tir.Cast(f64, tir.Const(-1.0, f32)),
    "f32(i32(3))": tir.Cast(f32, tir.Const(3, i32)),
    "f32(i + 1)": tir.Cast(f32, i + 1),
    "reinterpret(i32, x)": tir.Reinterpret(i32, x),
    "a8 & b8 | a8 ^ b8": (a8 & b8) | (a8 ^ b8),
    "a8 & (b8 | a8)": a8 & (b8 | a8),
    "a8 << b8 >> i8(1)": (a8 << b8) >> 1,
    "~a8": tir.Not(a8),
    "i < j and j <= 4": (i < j) & (j <= 4),
    "p and q and i == 0": p & q & i.eq(0),
    "p and (q and p)": p & (q & p),
    "(p or q) and p": (p | q) & p,
    "p or q and p": p | (q & p),
    "not p and q": tir.Not(p) & q,
    "not (p and q)": tir.Not(p & q),
    "(i < j) == p": (i < j).eq(p),
    "p ^ (i != j)": p ^ i.ne(j),
    "min(i, max(j, 0))": tir.minimum(i, tir.maximum(j, 0)),
    "select(i < j, x, 0.0)": tir.Select(i < j, x, tir.Const(0.0, f32)),
    "A[i + 1] * 2.0": A[i + 1] * 2.0,
    "exp(x)": tir.Call("exp", (x,), f32),
    "fma(x, y, 1.0)": tir.Call("fma", (x, y, tir.Const(1.0, f32)), f32),
    "thread()": tir.Call("thread", (), index),
    "clock(dtype=f64)": tir.Call("clock", (), f64),
    'call("x86.dot", x)': tir.Call("x86.dot", (x,), f32),
    'call("min", x)': tir.Call("min", (x,), f32),
    "tile_start(cover((6, 20), (4, 2)), i)": covers.start(covers.of((6, 20), (4, 2)), i),
    "tile_size(cover((8, n // 8), (1, n % 8)), i)": covers.size(covers.uniform(n, 8), i),
    "A[ramp(i * 8, 1, 8)]": A[tir.Ramp(i * 8, tir.Const(1), 8)],
    "A[prefix(i * 8, i, 8)]": A[tir.Prefix(i * 8, i, 8)],
    "broadcast(x, 4) * broadcast(y, 4)": tir.Broadcast(x, 4) * tir.Broadcast(y, 4),
    "reduce_add(broadcast(x, 4))": tir.Reduce(tir.Fold.ADD, tir.Broadcast(x, 4)),
    "reduce_max(A[ramp(0, 2, 4)])": tir.Reduce(
        tir.Fold.MAX, A[tir.Ramp(tir.Const(0), tir.Const(2), 4)]
    ),
    "f64x4(A[ramp(0, 1, 4)])": tir.Cast(f64.vector(4), A[tir.Ramp(tir.Const(0), tir.Const(1), 4)]),
    "let(t := x * y, t + t)": tir.Let(t, x * y, t + t),
}
"""Text of each expression, with the least parentheses."""


def stages(rows: int | tir.Expr, columns: int) -> tir.Func:
    """Four blocks, three buffers between them: the plain softmax."""
    given = placeholder("X", (rows, columns))
    k, r = reduce_axis(columns, "k"), reduce_axis(columns, "r")
    most = compute("M", (rows,), lambda i: max_over(given[i, k], k))
    power = compute("E", (rows, columns), lambda i, j: call("exp", given[i, j] - most[i]))
    norm = compute("S", (rows,), lambda i: sum_over(power[i, r], r))
    result = compute("Y", (rows, columns), lambda i, j: power[i, j] / norm[i])
    return func("softmax", [given], [result])


def lowered_func() -> tir.Func:
    """Everything that only lowered programs have."""
    return parse(
        """
        def kernel(X: f32[n * 8], n_source: f32[n], Y: f32[n * 8]):
            shared = alloc(f32[64])
            if thread() == 0:
                for i in range(64):
                    shared[i] = 0.0
            barrier()
            for t in parallel(n):
                acc = alloc(f32[8], "register")
                acc[ramp(0, 1, 8)] = X[ramp(t * 8, 1, 8)] * broadcast(2.0, 8)
                if t < 4:
                    Y[ramp(t * 8, 1, 8)] = acc[ramp(0, 1, 8)] + shared[ramp(t * 8, 1, 8)]
                elif t == 4:
                    Y[ramp(t * 8, 1, 8)] = broadcast(reduce_add(acc[ramp(0, 1, 8)]), 8)
                else:
                    Y[ramp(t * 8, 1, 8)] = let(v := acc[ramp(0, 1, 8)], v * v)
        """
    )


def scheduled_func() -> tir.Func:
    """A tiled matmul with most things that schedules bring: covers, kinds, notes, predicates."""
    cover = covers.of((6, 20), (4, 2))
    a = tir.Buffer("A", (tir.Const(128), tir.Const(64)), f32)
    b = tir.Buffer("B", (tir.Const(64), tir.Const(100)), f32)
    c = tir.Buffer("C", (tir.Const(128), tir.Const(100)), f32)
    packed = tir.Buffer(
        "packed", (tir.Const(13), tir.Const(64), tir.Const(8)), f32, layout=(Tiled(1, (13, 8)),)
    )
    acc = tir.Buffer("acc", (tir.Const(6), tir.Const(8)), f32, tir.Scope.REGISTER)
    i0, i1, j0, j1, k = (tir.Var(name) for name in ("i_0", "i_1", "j_0", "j_1", "k"))
    vi, vj, vk = (tir.Var(name) for name in ("vi", "vj", "vk"))
    iters = (
        tir.Iter(vi, tir.Const(128)),
        tir.Iter(vj, tir.Const(100)),
        tir.Iter(vk, tir.Const(64), tir.IterKind.REDUCE),
    )
    where = tir.Load(c, (vi, vj))
    value = where + a[vi, vk] * packed[vj // 8, vk, vj % 8] + acc[vi % 6, vj % 8]
    regions = (
        tir.Region(a, (tir.Range(vi, tir.Const(1)), tir.Range(tir.Const(0), tir.Const(64)))),
        tir.Region(b, (tir.Range(vk, tir.Const(4)), tir.Range(vj * 2, n))),
    )
    block = tir.Block(
        "C",
        iters,
        (covers.start(cover, i0) + i1, j0 * 8 + j1, k),
        regions,
        (tir.Region(c, (tir.Range(vi, tir.Const(1)), tir.Range(vj, tir.Const(1)))),),
        tir.Store(c, (vi, vj), value),
        tir.Store(c, (vi, vj), tir.Const(0.0, f32)),
        j0 * 8 + j1 < 100,
        (("intrinsic", "mma"), ("tile.shape", (6, 8)), ("cover", cover), ("type", f32)),
    )
    nest: tir.Stmt = tir.For(j1, tir.Const(8), block, tir.LoopKind.VECTOR)
    nest = tir.For(i1, covers.size(cover, i0), nest, tir.LoopKind.UNROLLED, (("factor", 2),))
    nest = tir.For(k, tir.Const(64), nest)
    nest = tir.For(j0, tir.Const(13), nest)
    nest = tir.For(i0, covers.count(cover), nest, tir.LoopKind.PARALLEL)
    copy = _copy_nest(packed, b)
    spare = tir.Buffer("spare", (), f32)
    body = tir.Seq((tir.Alloc(spare, copy), tir.Alloc(acc, nest)))
    sized = tir.Buffer("N", (n,), f32)
    return tir.Func("tiled", (a, b, sized, c), tir.Alloc(packed, body))


def _copy_nest(packed: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
    k, j0 = tir.Var("k"), tir.Var("j_0")
    vk, vj = tir.Var("vk"), tir.Var("vj")
    where = (vj // 8, vk, vj % 8)
    one = tir.Const(1)
    block = tir.Block(
        "pack",
        (tir.Iter(vk, tir.Const(64)), tir.Iter(vj, tir.Const(100))),
        (k, j0),
        (tir.Region(b, (tir.Range(vk, one), tir.Range(vj, one))),),
        (tir.Region(packed, tuple(tir.Range(w, one) for w in where)),),
        tir.Store(packed, where, b[vk, vj]),
    )
    return tir.For(k, tir.Const(64), tir.For(j0, tir.Const(100), block))
