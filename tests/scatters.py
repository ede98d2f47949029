"""Random programs whose blocks write a buffer in pieces: strides, parts, digits, diagonals, tiles.

Nothing says that such a program is legal: pieces may leave elements out, overlap or come too late,
and iterations that run at once may meet. Only indices stay inside of their buffers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tilewright.dtypes import i32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import make_block, seq
from tilewright.tensor.cover import count, of, size, start
from tilewright.tensor.visit import rewrite, substitute

SIZES = (4, 6, 8, 9)
LENGTH = 16  # of the input

Axis = tuple[tir.Expr, list[tir.Iter]]
"""An index, and the iterators in it."""


def scatter(seed: int) -> tir.Func:
    """One to three writers of `T`, and a reader that copies parts of it."""
    return _Maker(random.Random(seed)).program()


class _Maker:
    def __init__(self, r: random.Random) -> None:
        self.r, self.made = r, 0
        shape = [r.choice(SIZES) for _ in range(r.choice((1, 1, 2)))]
        self.a = tir.Buffer("A", (tir.Const(LENGTH),), i32)
        self.t = tir.Buffer("T", tuple(tir.Const(n) for n in shape), i32)
        self.shape = shape

    def fresh(self, name: str) -> tir.Var:
        self.made += 1
        return tir.Var(f"{name}{self.made}")

    def iterator(self, extent: int) -> tir.Iter:
        return tir.Iter(self.fresh("v"), tir.Const(extent))

    def program(self) -> tir.Func:
        r = self.r
        parts = [self.writer() for _ in range(r.randint(1, 3))]
        if len(parts) > 1 and r.random() < 0.4:
            parts[:2] = self.complement()
        out, reader = self.reader()
        parts.append(reader)
        if r.random() < 0.2:
            r.shuffle(parts)
        while len(parts) > 1 and r.random() < 0.5:
            parts = self.joined(parts)
        body = self.with_kinds(seq(*parts))
        if r.random() < 0.15:
            return tir.Func("scatter", (self.a, self.t, out), body)
        return tir.Func("scatter", (self.a, out), tir.Alloc(self.t, body))

    def axis(self, length: int) -> Axis:
        """Some index into a dimension of this length."""
        match self.r.choice(
            ("whole", "whole", "stride", "part", "reversed", "split", "mod", "one")
        ):
            case "stride":
                step, first = self.r.choice((2, 3)), self.r.randint(0, 2)
                extent = max(1, (length - first - 1) // step + self.r.choice((0, 1)))
                it = self.iterator(extent)
                fits = (extent - 1) * step + first < length
                return it.var * step + (first if fits else 0), [it]
            case "part":
                extent = self.r.randint(1, length)
                it = self.iterator(extent)
                return it.var + self.r.randint(0, length - extent), [it]
            case "reversed":
                it = self.iterator(length)
                return length - 1 - it.var, [it]
            case "split":
                inner = self.r.choice((2, 3))
                a, b = self.iterator(max(1, length // inner)), self.iterator(inner)
                step = inner if self.r.random() < 0.7 else 1
                return a.var * step + b.var, [a, b]
            case "mod":
                it = self.iterator(length)
                return (it.var * self.r.randint(1, 3) + self.r.randint(0, 3)) % length, [it]
            case "one":
                return tir.Const(self.r.randrange(length)), []
        it = self.iterator(length)
        return it.var, [it]

    def axes(self, shape: Sequence[int]) -> tuple[list[tir.Expr], list[tir.Iter]]:
        """Indices into a whole buffer; with two dimensions sometimes digits or a diagonal."""
        if len(shape) == 2 and self.r.random() < 0.3:
            it = self.iterator(shape[0] * shape[1])
            return [it.var // shape[1], it.var % shape[1]], [it]
        if len(shape) == 2 and shape[0] <= shape[1] and self.r.random() < 0.3:
            return self.diagonal(*shape)
        found = [self.axis(n) for n in shape]
        return [i for i, _ in found], [it for _, own in found for it in own]

    def diagonal(self, rows: int, columns: int) -> tuple[list[tir.Expr], list[tir.Iter]]:
        """Two indices that share an iterator."""
        step = self.r.randint(1, rows)
        row = self.iterator(rows)
        column = self.iterator(max(1, (columns - rows) // step + 1))
        return [row.var, column.var * step + row.var], [row, column]

    def complement(self) -> list[tir.Stmt]:
        """Two blocks that write the even and the odd elements of the first dimension."""
        nests = []
        for first in (0, 1):
            it = self.iterator((self.shape[0] + 1 - first) // 2)
            rest = [self.iterator(n) for n in self.shape[1:]]
            indices = [it.var * 2 + first, *[one.var for one in rest]]
            nests.append(self.block(indices, [it, *rest]))
        return nests

    def writer(self) -> tir.Stmt:
        return self.block(*self.axes(self.shape))

    def block(self, indices: list[tir.Expr], iters: list[tir.Iter]) -> tir.Stmt:
        where: tir.Expr = tir.Const(self.made)
        for it in iters:
            where = where * 3 + it.var
        value: tir.Expr = tir.Load(self.a, (where % LENGTH,))
        if self.r.random() < 0.2:
            value = tir.Load(self.t, tuple(indices)) * 3 + value
        store = tir.Store(self.t, tuple(indices), value)
        return self.nest("W", iters, store)

    def reader(self) -> tuple[tir.Buffer, tir.Stmt]:
        indices, iters = self.axes(self.shape)
        out = tir.Buffer("C", tuple(it.extent for it in iters), i32)
        value: tir.Expr = tir.Load(self.t, tuple(indices))
        store = tir.Store(out, tuple(it.var for it in iters), value)
        return out, self.nest("R", iters, store)

    def nest(self, name: str, iters: list[tir.Iter], body: tir.Stmt) -> tir.Stmt:
        """Loops around a block, some of them cut; sometimes the inner ones in a block."""
        loops: list[tuple[tir.Var, tir.Expr]] = []
        bindings = [self.bound(it, loops) for it in iters]
        block = make_block(f"{name}{self.made}", tuple(iters), tuple(bindings), body)
        stmt: tir.Stmt = block
        cut = self.r.randint(0, len(loops))
        inside = loops[cut:]
        for var, extent in reversed(inside):
            stmt = tir.For(var, extent, stmt)
        if inside and self.r.random() < 0.25:
            stmt = self.enclosed(stmt, loops[:cut], f"{name}_tile{self.made}")
        for var, extent in reversed(loops[:cut]):
            stmt = tir.For(var, extent, stmt)
        return stmt

    def enclosed(
        self, stmt: tir.Stmt, around: list[tuple[tir.Var, tir.Expr]], name: str
    ) -> tir.Stmt:
        if any(tir.int_value(extent) is None for _, extent in around):
            return stmt
        iters = tuple(tir.Iter(self.fresh("t"), extent) for _, extent in around)
        values = {var: it.var for (var, _), it in zip(around, iters, strict=True)}
        inner = substitute(stmt, values)
        return make_block(name, iters, tuple(var for var, _ in around), inner)

    def bound(self, it: tir.Iter, loops: list[tuple[tir.Var, tir.Expr]]) -> tir.Expr:
        """New loops for an iterator: one, two of a split, or tiles of several sizes."""
        extent = tir.int_value(it.extent)
        assert extent is not None
        kind = self.r.random()
        if extent > 2 and kind < 0.2 and extent % 2 == 0:
            a, b = self.fresh("i"), self.fresh("i")
            loops += [(a, tir.Const(extent // 2)), (b, tir.Const(2))]
            return a * 2 + b
        if extent > 2 and kind < 0.4:
            first = self.r.randint(1, extent - 1)
            tiles = of((first, 1), (extent - first, 1))
            a, b = self.fresh("i"), self.fresh("i")
            loops += [(a, count(tiles)), (b, size(tiles, a))]
            return start(tiles, a) + b
        var = self.fresh("i")
        loops.append((var, it.extent))
        return var

    def joined(self, parts: list[tir.Stmt]) -> list[tir.Stmt]:
        """Two neighbouring nests in one outermost loop, if they are of one length."""
        n = self.r.randrange(len(parts) - 1)
        first, second = parts[n : n + 2]
        if type(first) is not tir.For or type(second) is not tir.For:
            return parts
        if first.extent != second.extent:
            once = tir.For(self.fresh("o"), tir.Const(1), seq(first, second))
            return [*parts[:n], once, *parts[n + 2 :]]
        body = seq(first.body, substitute(second.body, {second.var: first.var}))
        return [*parts[:n], tir.For(first.var, first.extent, body), *parts[n + 2 :]]

    def with_kinds(self, body: tir.Stmt) -> tir.Stmt:
        """Some loops run their iterations at once."""

        def change(part: object) -> tir.Stmt | None:
            if type(part) is not tir.For or self.r.random() < 0.7:
                return None
            lanes = type(part.body) is not tir.For and self.r.random() < 0.5
            return part.with_fields(kind=tir.LoopKind.VECTOR if lanes else tir.LoopKind.PARALLEL)

        return rewrite(body, change)


def at_once(func: tir.Func) -> tir.Func:
    """The program with vector loops as parallel ones: interpreted, their lanes run in any order."""

    def change(part: object) -> tir.Stmt | None:
        if type(part) is tir.For and part.kind is tir.LoopKind.VECTOR:
            return part.with_fields(kind=tir.LoopKind.PARALLEL)
        return None

    return rewrite(func, change)
