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
from tilewright.lower import lower
from tilewright.schedule import Schedule
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.access_order import joined_loops
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, select, size, sum_over
from tilewright.tensor.visit import free_vars, walk, walk_stmts

TARGET = Target.named("x86-64-v3")
LINE = 16


def typed(*shape, dtype=f32):
    return TensorType(dtype, tuple(tir.as_index(d) for d in shape))


def loops_of(program):
    return [s for s in walk_stmts(program) if isinstance(s, tir.For)]


def kinds_of(program):
    return [loop.kind.value for loop in loops_of(program)]


@pytest.mark.parametrize("shape", [(96, 64), (1024, 64), (96, 1024), (50, 197)])
def test_transposed_copies_go_by_square_tiles_that_fill_cache_lines(shape):
    """Lines of both sides are used up by tiles side by side, or by those that follow."""
    decisions = []
    program = draft(lowered(Transpose((1, 0)), [typed(*shape)]), TARGET, decisions=decisions).func
    (decision,) = decisions
    point = decision.point
    *_, row, column = loops_of(program)
    assert column.kind is tir.LoopKind.VECTOR
    assert row.kind is tir.LoopKind.UNROLLED
    assert point.side in (TARGET.lanes(4), TARGET.lanes(4) // 2)
    assert point.side * max(point.rows_beside, point.columns_beside) >= LINE


@pytest.mark.parametrize(("pitch", "most"), [(1024, 16), (1040, 64)])
def test_lines_that_share_a_set_are_few(pitch, most):
    """Lines of the source that lie a page apart would throw each other out of the first cache."""
    decisions = []
    draft(lowered(Transpose((1, 0)), [typed(96, pitch)]), TARGET, decisions=decisions)
    point = decisions[0].point
    assert point.side * (1 if point.source_first else point.columns_beside) <= most


@pytest.mark.parametrize("size", [7, 16])
def test_short_lines_are_copied_as_one(size):
    """Lines that no vector fills would leave most of it over; others stay apart."""
    places = size if size % TARGET.lanes(4) == 0 else size * size
    for order, sizes in {
        (0, 2, 3, 1): (1, 1024, size, size),
        (0, 3, 1, 2): (1, size, size, 1024),
    }.items():
        decisions = []
        draft(lowered(Transpose(order), [typed(*sizes)]), TARGET, decisions=decisions)
        (decision,) = decisions
        assert {decision.shape.rows, decision.shape.columns} == {places, 1024}


def test_loops_are_one_where_every_access_steps_evenly():
    x, s = placeholder("X", (9, 5, 3)), placeholder("S", (5,))

    def joined(value):
        program = func("f", [x, s], [compute("Y", (4, 5, 3), value)])
        return joined_loops(Schedule(program).block("Y"), 2)

    assert joined(lambda i, j, k: x[i, j, k]) == 3
    assert joined(lambda i, j, k: x[i + 5, j, k] * 2) == 2
    assert joined(lambda i, j, k: x[i, j, k] * s[j]) == 1
    assert joined(lambda i, j, k: x[j, i, k]) == 1


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
    (updates,) = (x for x in loops_of(program) if tir.int_value(x.extent) == 9000)
    *_, vectors = loops_of(program)
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
    program = draft(broadcast_row((m, n), size("k")), TARGET, threads=4).func
    first, *_, tiles, vectors = loops_of(program)
    assert first.kind is tir.LoopKind.PARALLEL
    assert first.extent in (m, m * n)
    assert tiles.kind is tir.LoopKind.SERIAL
    assert vectors.kind is tir.LoopKind.VECTOR


def test_one_thread_divides_nothing():
    assert "parallel" not in kinds_of(draft(broadcast_row((64, 48), 512), TARGET).func)


@pytest.mark.parametrize(
    "known", [(False, False, False, 240), (False, 7, False, False), (3, False, False, 5)]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_dense_loops_of_symbolic_sizes_are_one_walk(known, threads):
    """However the sizes mix, an element lies where the fused loop is: nothing is divided again."""
    shape = [number or size(f"n{d}") for d, number in enumerate(known)]
    x = placeholder("X", shape)
    y = compute("Y", shape, lambda a, b, c, d: x[a, b, c, d] * 2.0)
    program = lower(draft(func("twice", [x], [y]), TARGET, threads).func, TARGET).func
    stores = [s for s in walk_stmts(program.body) if isinstance(s, tir.Store)]
    assert stores
    for store in stores:
        for index in (*store.indices, *(i for load in loads_in(store) for i in load.indices)):
            inside = [v for v in walk(index) if isinstance(v, tir.FloorDiv | tir.FloorMod)]
            loops = {loop.var for loop in loops_of(program.body)}
            assert not any(var in loops for part in inside for var in free_vars(part))


def loads_in(store):
    return [part for part in walk(store.value) if isinstance(part, tir.Load)]


def test_what_is_read_twice_is_computed_twice_if_that_is_cheap():
    """The hard swish of a scaled product stays in registers."""
    shape = (size("n"), 240)
    x, w = placeholder("X", (shape[0], 64)), placeholder("W", (64, 240))
    k = reduce_axis(64, "k")
    p = compute("P", shape, lambda i, j: sum_over(x[i, k] * w[k, j], k))
    s = compute("S", shape, lambda i, j: p[i, j] * 2.5 + 1.5)
    y = compute(
        "Y", shape, lambda i, j: s[i, j] * tir.minimum(tir.maximum(s[i, j] + 3.0, 0.0), 6.0)
    )
    schedule = draft(func("swish", [x, w], [y]), TARGET, 1, ["W"])
    assert "S" not in schedule.blocks()
    assert schedule.loops("Y")[0] == schedule.loops("P")[0]


def transform_of(values):
    """Three values of two neighbours each, chosen by the first iterator: a small transform."""
    x = placeholder("X", (*values, 40))

    def value(p, h, c):
        first, second = x[h, c], x[h + 1, c]
        return select(p.eq(0), first + second, select(p.eq(1), first - second, first))

    return func("transform", [x], [compute("Y", (3, values[0] - 1, 40), value)])


@pytest.mark.parametrize("threads", [1, 8])
def test_choices_of_a_single_block_are_unrolled_inside(threads):
    """Whatever threads share, no iteration asks which value it is to compute."""
    program = transform_of((65,))
    made = draft(program, TARGET, threads).func
    outer = loops_of(made)[0]
    assert tir.int_value(outer.extent) == 64
    chosen = [loop for loop in loops_of(made) if tir.int_value(loop.extent) == 3]
    assert [loop.kind for loop in chosen] == [tir.LoopKind.UNROLLED]
    text = str(lower(made, TARGET).func)
    assert "select" not in text
    assert " if " not in text


def test_choices_of_a_single_block_are_right():
    x = np.random.default_rng(0).normal(size=(65, 40)).astype(np.float32)
    result = np.zeros((3, 64, 40), np.float32)
    build(transform_of((65,)), threads=2)(x, result)
    expected = np.stack([x[:-1] + x[1:], x[:-1] - x[1:], x[:-1]])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("side", "innermost"), [(16, "c"), (128, "w")])
def test_a_source_that_lies_pages_apart_is_read_line_by_line(side, innermost):
    """Channels first to last: along lines if a channel takes more than a few pages."""
    x = placeholder("X", (64, side, side))
    y = compute("Y", (side, side, 64), lambda h, w, c: x[c, h, w])
    schedule = draft(func("last", [x], [y]), TARGET)
    tiles = [loop for loop in schedule.loops("Y") if loop.split("_")[0] in "wc"]
    assert tiles[1].startswith(innermost)
