"""The recipe for blocks without reductions: what runs as vectors, and what threads divide."""

from __future__ import annotations

import numpy as np
import pytest

from tests.onnx.lowered import lowered
from tilewright.build import build
from tilewright.dtypes import f32, i64
from tilewright.graph.ir import TensorType
from tilewright.graph.ops import Transpose, axis, picked
from tilewright.graph.ops.scatter import Scatter
from tilewright.schedule.draft import draft
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, size
from tilewright.tensor.visit import walk_stmts

TARGET = Target.named("x86-64-v3")
LINE = 16


def typed(*shape, dtype=f32):
    return TensorType(dtype, tuple(tir.as_index(d) for d in shape))


def loops_of(program):
    return [s for s in walk_stmts(program) if isinstance(s, tir.For)]


def kinds_of(program):
    return [loop.kind.value for loop in loops_of(program)]


def test_transposed_copies_go_by_tiles_of_a_cache_line():
    program = draft(lowered(Transpose((1, 0)), [typed(96, 64)]), TARGET).func
    rows, columns, row, column = loops_of(program)
    lanes = TARGET.lanes(4)
    assert [tir.int_value(x.extent) for x in (rows, columns, row, column)] == [4, 12, LINE, lanes]
    assert column.kind is tir.LoopKind.VECTOR


@pytest.mark.parametrize("shape", [(5, 3), (16, 16), (17, 33), (40, 7), (1, 50)])
@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0)])
def test_transposed_copies_of_any_size(shape, order):
    x = np.random.default_rng(0).normal(size=(3, *shape)).astype(np.float32)
    expected = np.ascontiguousarray(x.transpose(order))
    sizes = [tir.Var(name) for name in "abc"]
    for dims in (x.shape, sizes):
        result = np.zeros_like(expected)
        build(lowered(Transpose(order), [typed(*dims)]), threads=2)(x, result)
        np.testing.assert_array_equal(result, expected)


def test_stores_where_data_says_stay_in_order():
    op = Scatter(((2, (axis(0),)),), (picked(0), axis(1)))
    types = [typed(50, 128), typed(9000, 128), typed(9000, dtype=i64)]
    program = draft(lowered(op, types), TARGET, threads=4).func
    *_, updates, _, vectors = loops_of(program)
    assert (updates.kind, tir.int_value(updates.extent)) == (tir.LoopKind.SERIAL, 9000)
    assert vectors.kind is tir.LoopKind.VECTOR


def broadcast_row(rows, columns):
    """Not dense: the loops stay apart."""
    a, b = placeholder("A", (*rows, columns)), placeholder("B", (columns,))
    out = compute("C", (*rows, columns), lambda *i: a[i] + b[i[-1]])
    return func("add_row", [a, b], [out])


def test_threads_divide_no_more_loops_than_they_need():
    (first, *_) = loops_of(draft(broadcast_row((64, 48), 512), TARGET, threads=4).func)
    assert (first.kind, tir.int_value(first.extent)) == (tir.LoopKind.PARALLEL, 64)
    (first, *_) = loops_of(draft(broadcast_row((2, 48), 5120), TARGET, threads=4).func)
    assert (first.kind, tir.int_value(first.extent)) == (tir.LoopKind.PARALLEL, 96)


def test_symbolic_rows_are_divided_without_their_tiles():
    m, n = size("m"), size("n")
    first, tiles, vectors = loops_of(
        draft(broadcast_row((m, n), size("k")), TARGET, threads=4).func
    )
    assert (first.kind, first.extent) == (tir.LoopKind.PARALLEL, m * n)
    assert tiles.kind is tir.LoopKind.SERIAL
    assert vectors.kind is tir.LoopKind.VECTOR


def test_one_thread_divides_nothing():
    assert "parallel" not in kinds_of(draft(broadcast_row((64, 48), 512), TARGET).func)
