"""Portable instructions: multiplication of register tiles, and dot products."""

from __future__ import annotations

from tilewright.dtypes import f32, i8, i32, u8
from tilewright.intrin.intrinsic import (
    Description,
    fold_axis,
    intrinsic,
    operand,
    repeat,
    spatial_axis,
    update,
    vector_load,
    vector_sum,
)
from tilewright.tensor import ir as tir
from tilewright.tensor.build import seq

__all__ = ["dot", "dot4", "gemm"]

VECTOR, UNROLLED = tir.LoopKind.VECTOR, tir.LoopKind.UNROLLED


@intrinsic("f32.gemm")
def gemm(m: int, n: int, k: int) -> Description:
    """An m×n tile of C += A·B that stays in registers while it sums over k.

    Rows of B and C are vectors and must be contiguous; elements of A are broadcast.
    """
    a, b = operand("a", (m, k), f32), operand("b", (k, n), f32, dense=1)
    c = operand("c", (m, n), f32, dense=1)
    i, j, r = spatial_axis("i", m), spatial_axis("j", n), fold_axis("r", k)
    acc = tir.Buffer("acc", c.buffer.shape, f32, tir.Scope.REGISTER)
    tile = {"x": (m, UNROLLED), "y": (n, VECTOR)}
    load = repeat(lambda x, y: tir.Store(acc, (x, y), c[x, y]), **tile)
    step = repeat(
        lambda p, x, y: tir.Store(acc, (x, y), acc[x, y] + a[x, p] * b[p, y]), p=k, **tile
    )
    store = repeat(lambda x, y: tir.Store(c.buffer, (x, y), acc[x, y]), **tile)
    return Description(
        (a, b, c),
        update(c[i.var, j.var], a[i.var, r.var] * b[r.var, j.var], i, j, r),
        tir.Alloc(acc, seq(load, step, store)),
    )


@intrinsic("f32.dot")
def dot(lanes: int) -> Description:
    """One sum grows by `lanes` products, added across the lanes of a vector."""
    a, b = operand("a", (lanes,), f32, dense=1), operand("b", (lanes,), f32, dense=1)
    acc, r = operand("acc", (), f32), fold_axis("r", lanes)
    total = acc[()] + vector_sum(vector_load(a, 0, lanes=lanes) * vector_load(b, 0, lanes=lanes))
    return Description(
        (a, b, acc),
        update(acc[()], a[r.var] * b[r.var], r),
        tir.Store(acc.buffer, (), total),
    )


@intrinsic("i32.dot4")
def dot4(lanes: int) -> Description:
    """Each of `lanes` sums of i32 grows by four products of u8 and i8, without saturation."""
    a, b = operand("a", (4,), u8), operand("b", (lanes, 4), i8, dense=2)
    acc = operand("acc", (lanes,), i32, dense=1)
    lane, r = spatial_axis("lane", lanes), fold_axis("r", 4)

    def product(x: tir.Lift, p: tir.Lift) -> tir.Expr:
        return a[p].to(i32) * b[x, p].to(i32)

    def step(x: tir.Var) -> tir.Stmt:
        total = (product(x, 0) + product(x, 1)) + (product(x, 2) + product(x, 3))
        return tir.Store(acc.buffer, (x,), acc[x] + total)

    return Description(
        (a, b, acc),
        update(acc[lane.var], product(lane.var, r.var), lane, r),
        repeat(step, x=(lanes, VECTOR)),
    )
