"""Small buffers as values: whatever a program does with one, it does with memory, too."""

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.lowered import flat, function, ramp, run
from tilewright.dtypes import boolean, f32, i64
from tilewright.llvm.emit import emit
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import seq

SIZE = 8
N = tir.Var("n")


def load(buffer, start, lanes):
    return tir.Load(buffer, (ramp(start, lanes),))


def store(buffer, start, lanes, value):
    if lanes > 1 and value.dtype.lanes == 1:
        value = tir.Broadcast(value, lanes)
    return tir.Store(buffer, (ramp(start, lanes),), value)


def is_in_memory(program):
    return "alloca" in emit(program, Target.host())


@st.composite
def partitions(draw):
    """Cells of one, two or four elements that fill a tile."""
    cells, start = [], 0
    while start < SIZE:
        lanes = draw(st.sampled_from([n for n in (1, 2, 4) if start + n <= SIZE]))
        cells.append((start, lanes))
        start += lanes
    return cells


class Programs:
    """Random statements on one tile: they read parts of cells and across them, and write cells."""

    def __init__(self, draw, tile, cells):
        self.draw, self.tile, self.cells = draw, tile, cells
        self.loops = []

    def value(self, lanes):
        start = self.draw(st.integers(0, SIZE - lanes))
        result = load(self.tile, start, lanes)
        if self.draw(st.booleans()):
            same = load(self.tile, self.draw(st.integers(0, SIZE - 1)), 1)
            result = result + (tir.Broadcast(same, lanes) if lanes > 1 else same)
        for var in self.loops:
            result = result + (tir.Broadcast(var, lanes) if lanes > 1 else var)
        return result

    def statement(self, depth):
        kind = self.draw(st.sampled_from(["store", "loop", "if", "seq"])) if depth else "store"
        if kind == "store":
            start, lanes = self.draw(st.sampled_from(self.cells))
            return store(self.tile, start, lanes, self.value(lanes))
        if kind == "seq":
            return seq(*(self.statement(depth - 1) for _ in range(self.draw(st.integers(2, 3)))))
        if kind == "if":
            otherwise = self.statement(depth - 1) if self.draw(st.booleans()) else None
            return tir.If((self.value(1) % 2).eq(0), self.statement(depth - 1), otherwise)
        var, extent = tir.Var("i"), self.draw(st.sampled_from([N, tir.Const(1), tir.Const(3)]))
        self.loops.append(var)
        body = self.statement(depth - 1)
        self.loops.remove(var)
        return tir.For(var, extent, body)


@given(cells=partitions(), n=st.integers(0, 3), data=st.data())
def test_a_tile_of_values_is_a_tile_in_memory(cells, n, data):
    tile, out = flat("tile", SIZE, i64), flat("out", SIZE, i64)
    body = Programs(data.draw, tile, cells).statement(4)
    note(body)
    fill = [store(tile, at, lanes, tir.Const(7 * at + 1)) for at, lanes in cells]
    copy = [store(out, at, 1, load(tile, at, 1)) for at in range(SIZE)]
    whole = tir.Alloc(tile, seq(*fill, body, *copy))
    inside = function([out], whole, sizes=(N,))
    beside = function([out], whole, sizes=(N,), local={tile: 0}, local_bytes=tir.Const(8 * SIZE))
    assert not is_in_memory(inside)
    found, wanted = np.zeros(SIZE, np.int64), np.zeros(SIZE, np.int64)
    run(inside, [found], [n])
    run(beside, [wanted], [n])
    assert found.tolist() == wanted.tolist()


def test_a_loop_carries_what_it_writes_and_nothing_else():
    tile, out = flat("tile", 2, i64), flat("out", 2, i64)
    add = store(tile, 0, 1, load(tile, 0, 1) + load(tile, 1, 1))
    loop = tir.For(tir.Var("i"), tir.Const(5), add)
    fill = [store(tile, at, 1, tir.Const(at + 3)) for at in range(2)]
    copy = [store(out, at, 1, load(tile, at, 1)) for at in range(2)]
    program = function([out], tir.Alloc(tile, seq(*fill, loop, *copy)))
    assert emit(program, Target.host()).count(" phi ") == 2  # the variable, and one cell
    array = np.zeros(2, np.int64)
    run(program, [array])
    assert array.tolist() == [23, 4]


def test_truth_values_stay_what_they_are():
    a, out = flat("a", 4, f32), flat("out", 4, boolean)
    flags = flat("flags", 4, boolean)
    keep = store(flags, 0, 4, load(a, 0, 4) < tir.Broadcast(tir.const(2.0, f32), 4))
    body = tir.Alloc(flags, seq(keep, store(out, 0, 4, load(flags, 0, 4))))
    array = np.zeros(4, bool)
    run(function([a, out], body), [np.arange(4, dtype=np.float32), array])
    assert array.tolist() == [True, True, False, False]


def touching(kind, tile, out):
    """A statement on a tile that needs memory."""
    row = tir.Var("i")
    match kind:
        case "read at an index that varies":
            return tir.For(row, tir.Const(4), store(out, row, 1, load(tile, row, 1)))
        case "written at an index that varies":
            return tir.For(row, tir.Const(4), store(tile, row, 1, row))
        case "cells that overlap":
            return store(tile, 1, 2, tir.Const(5))
    every_other = tir.Load(tile, (ramp(0, 2, stride=2),))
    return store(out, 0, 2, every_other)


KINDS = {
    "read at an index that varies": [1, 1, 1, 1],
    "written at an index that varies": [0, 1, 2, 3],
    "cells that overlap": [1, 5, 5, 1],
    "every other element": [1, 1, 1, 1],
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_needs_memory_has_it(kind):
    tile, out = flat("tile", 4, i64), flat("out", 4, i64)
    fill = [store(tile, at, 2, tir.Const(1)) for at in (0, 2)]
    copy = [store(out, at, 2, load(tile, at, 2)) for at in (0, 2)]
    body = tir.Alloc(tile, seq(*fill, touching(kind, tile, out), *copy))
    program, array = function([out], body), np.zeros(4, np.int64)
    assert is_in_memory(program)
    run(program, [array])
    assert array.tolist() == KINDS[kind]
