"""Random schedules of the kind that recipes make: tiles by covers, caches, vectors, threads.

Uniformly random steps seldom build such nests; here each choice is random but the plan is not.
Steps that a program does not allow are skipped.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tilewright.dtypes import DType, i8, i32
from tilewright.errors import UserError
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    compute,
    func,
    max_over,
    placeholder,
    reduce_axis,
    select,
    size,
    sum_over,
)
from tilewright.tensor.visit import find_block, walk_stmts

EXTENTS = (1, 2, 3, 4, 5, 6, 7, 9, 11, 13)


def random_kernel(r: random.Random) -> tir.Func:
    """A small program with the structure of a real kernel, on integers."""
    return r.choice([_matmul, _convolution, _pooling, _softmax, _chain])(r, r.choice([i32, i8]))


def _dim(r: random.Random, name: str) -> int | tir.Var:
    return size(name) if r.random() < 0.2 else r.choice(EXTENTS)


def _matmul(r: random.Random, dtype: DType) -> tir.Func:
    m, n, k = _dim(r, "m"), _dim(r, "n"), _dim(r, "k")
    flipped = r.random() < 0.3
    a, b = placeholder("A", (m, k), dtype), placeholder("B", (n, k) if flipped else (k, n), dtype)
    q = reduce_axis(k, "k")
    c = compute("C", (m, n), lambda i, j: sum_over(a[i, q] * (b[j, q] if flipped else b[q, j]), q))
    if r.random() < 0.5:
        return func("matmul", [a, b], [c])
    d = compute("D", (m, n), lambda i, j: tir.maximum(c[i, j], 0) + i.to(dtype))
    return func("matmul_relu", [a, b], [d])


def _convolution(r: random.Random, dtype: DType) -> tir.Func:
    h, w, channels = r.randint(2, 6), r.randint(2, 9), r.randint(1, 9)
    a, b = placeholder("A", (h, w, 2), dtype), placeholder("B", (3, 3, 2, channels), dtype)

    def padded(i: tir.Expr, j: tir.Expr, c: tir.Expr) -> tir.Expr:
        inside = (i >= 1) & (i <= h) & (j >= 1) & (j <= w)
        row = tir.minimum(tir.maximum(i - 1, 0), h - 1)
        column = tir.minimum(tir.maximum(j - 1, 0), w - 1)
        return select(inside, a[row, column, c], tir.const(0, dtype))

    p = compute("P", (h + 2, w + 2, 2), padded)
    x, y, z = reduce_axis(3, "x"), reduce_axis(3, "y"), reduce_axis(2, "z")
    c = compute(
        "C",
        (h, w, channels),
        lambda i, j, o: sum_over(p[i + x, j + y, z] * b[x, y, z, o], x, y, z),
    )
    return func("convolution", [a, b], [c])


def _pooling(r: random.Random, dtype: DType) -> tir.Func:
    h, w = r.randint(2, 6), r.randint(2, 13)
    a, x, y = placeholder("A", (h * 2, w * 2), dtype), reduce_axis(2, "x"), reduce_axis(2, "y")
    c = compute("C", (h, w), lambda i, j: max_over(a[i * 2 + x, j * 2 + y], x, y))
    return func("pooling", [a], [c])


def _softmax(r: random.Random, dtype: DType) -> tir.Func:
    m, n = _dim(r, "m"), _dim(r, "n")
    a, k, q = placeholder("A", (m, n), dtype), reduce_axis(n, "k"), reduce_axis(n, "q")
    top = compute("M", (m,), lambda i: max_over(a[i, k], k))
    e = compute("E", (m, n), lambda i, j: a[i, j] - top[i])
    s = compute("S", (m,), lambda i: sum_over(e[i, q], q))
    return func("softmax", [a], [compute("O", (m, n), lambda i, j: e[i, j] * s[i])])


def _chain(r: random.Random, dtype: DType) -> tir.Func:
    m, n = _dim(r, "m"), _dim(r, "n")
    a, b = placeholder("A", (m, n), dtype), placeholder("B", (n,), dtype)
    x = compute("X", (m, n), lambda i, j: a[i, j] + b[j])
    y = compute("Y", (m, n), lambda i, j: x[i, j] * x[i, j])
    return func("chain", [a, b], [compute("Z", (m, n), lambda i, j: y[i, j] - x[i, j])])


def random_tiling(r: random.Random, program: tir.Func) -> Schedule:
    """A schedule with tiles, caches and moved blocks, then vectors, unrolling and threads."""
    s = Schedule(program)
    for _ in range(r.randint(1, 3)):
        _tile(r, s, r.choice(s.blocks()))
    for block in s.blocks():
        _annotate(r, s, block)
    return s


def _attempt(step: Callable[[], object]) -> object:
    try:
        return step()
    except UserError:
        return None


def _tile(r: random.Random, s: Schedule, block: str) -> None:
    scope = r.choice(["register", "memory"])
    out = _attempt(lambda: s.cache_write(block, scope)) if r.random() < 0.5 else None
    found = find_block(s.func, block)
    packed = None
    if found is not None and found.reads and r.random() < 0.3:
        packed = _attempt(lambda: s.cache_read(block, r.choice(found.reads).buffer.name))
    outer, inner = [], []
    for loop in s.loops(block):
        halves = _attempt(lambda n=loop: s.split(n, _tiles(r, s, n))) if r.random() < 0.75 else None
        outer.append(halves[0] if halves else loop)
        inner += [halves[1]] if halves else []
    if r.random() < 0.5:
        r.shuffle(outer)
        r.shuffle(inner)
    _attempt(lambda: s.reorder(*outer, *inner))
    loops = s.loops(block)
    if out:
        _attempt(lambda: s.reverse_compute_at(out, r.choice(loops)))
    for other in s.blocks():
        if other == packed or (other != block and r.random() < 0.4):
            _attempt(lambda n=other: s.compute_at(n, r.choice(loops)))
    if r.random() < 0.5:
        _attempt(lambda: s.decompose_reduction(block, r.choice(loops)))
    elif r.random() < 0.2:
        _attempt(lambda: s.rfactor(r.choice(loops)))
    if len(loops) > 1 and r.random() < 0.2:
        first = r.randrange(len(loops) - 1)
        _attempt(lambda: s.fuse(loops[first], loops[first + 1]))


def _tiles(r: random.Random, s: Schedule, name: str) -> object:
    """A tile size, or sizes that fill the extent."""
    (loop,) = [x for x in walk_stmts(s.func) if type(x) is tir.For and x.var.name == name]
    left = tir.int_value(loop.extent)
    if left is None or r.random() < 0.5:
        return r.choice([1, 2, 3, 4, 6, 8, 16])
    tiles = []
    while left:
        length = r.randint(1, left)
        count = r.randint(1, left // length)
        tiles.append((length, count))
        left -= length * count
    return tuple(tiles)


def _annotate(r: random.Random, s: Schedule, block: str) -> None:
    loops = _attempt(lambda: s.loops(block)) or ()
    for distance, chance in ((2, 0.5), (3, 0.2)):
        if len(loops) >= distance and r.random() < chance:
            _attempt(lambda d=distance: s.unroll(loops[-d]))
    if loops and r.random() < 0.6:
        _attempt(lambda: s.vectorize(loops[-1]))
    if loops and r.random() < 0.4:
        _attempt(lambda: s.parallel(r.choice(loops[:2])))
