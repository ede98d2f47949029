"""Statements are run and their results looked at; the calls go through the calling convention."""

import numpy as np
import pytest

from tests.expect import raises_code
from tests.lowered import flat, function, ramp, run
from tilewright.dtypes import boolean, f32, i64
from tilewright.llvm.emit import emit
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import seq

PARALLEL = tir.LoopKind.PARALLEL
THREAD = tir.Call("thread", (), i64)
ROW, J, N = tir.Var("i"), tir.Var("j"), tir.Var("n")


def store(buffer, where, value):
    where, value = tir.as_index(where), tir.as_expr(value, buffer.dtype)
    return tir.Store(buffer, (where,), value)


def load(buffer, where):
    return tir.Load(buffer, (tir.as_index(where),))


def test_nested_loops_visit_everything():
    out = flat("out", 12, i64)
    body = tir.For(
        ROW, tir.Const(3), tir.For(J, tir.Const(4), store(out, ROW * 4 + J, ROW * 100 + J))
    )
    array = np.zeros(12, np.int64)
    run(function([out], body), [array])
    assert array.tolist() == [i * 100 + j for i in range(3) for j in range(4)]


@pytest.mark.parametrize("extent", [0, 1])
def test_constant_loops_of_none_or_one_are_no_loops(extent):
    out = flat("out", 2, i64)
    program = function([out], tir.For(ROW, tir.Const(extent), store(out, ROW, 7)))
    assert "phi" not in emit(program, Target.host())
    array = np.zeros(2, np.int64)
    run(program, [array])
    assert array.tolist() == [7 * extent, 0]


@pytest.mark.parametrize("n", [0, 1, 5])
def test_symbolic_loop_may_have_no_iteration(n):
    out = flat("out", N, i64)
    array = np.full(8, -1)
    run(function([out], tir.For(ROW, N, store(out, ROW, ROW * N)), sizes=(N,)), [array], [n])
    assert array.tolist() == [i * n for i in range(n)] + [-1] * (8 - n)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("extent", [1, 2, 5, 12])
def test_parallel_loop_is_divided_without_gap_or_overlap(threads, extent):
    out = flat("out", extent, i64)
    loop = tir.For(ROW, tir.Const(extent), store(out, ROW, load(out, ROW) + 1), PARALLEL)
    array = np.zeros(extent, np.int64)
    run(function([out], loop), [array], threads=threads)
    assert (array == 1).all()


def test_parallel_loop_inside_a_parallel_loop_is_serial():
    out = flat("out", 6, i64)
    inner = tir.For(J, tir.Const(2), store(out, ROW * 2 + J, THREAD), PARALLEL)
    array = np.full(6, -1)
    run(function([out], tir.For(ROW, tir.Const(3), inner, PARALLEL)), [array], threads=3)
    assert array.tolist() == [0, 0, 1, 1, 2, 2]


def test_stages_meet_at_barriers():
    """Each thread fills a part of shared scratch, then all read what the others wrote."""
    count, threads = 64, 4
    scratch, out = flat("scratch", count, f32), flat("out", count, f32)
    fill = tir.For(ROW, tir.Const(count), store(scratch, ROW, ROW.to(f32)), PARALLEL)
    other = tir.Const(count - 1) - J
    read = tir.For(J, tir.Const(count), store(out, J, load(scratch, other)), PARALLEL)
    body = tir.Alloc(scratch, seq(fill, tir.Barrier(), read))
    array = np.zeros(count, np.float32)
    program = function([out], body, shared={scratch: 128}, shared_bytes=tir.Const(512))
    run(program, [array], threads=threads)
    assert array.tolist() == list(range(count - 1, -1, -1))


def test_loads_behind_a_barrier_are_made_again():
    out, given = flat("out", 2, i64), flat("given", 1, i64)
    first = tir.If(THREAD.eq(0), store(out, 0, load(given, 0)))
    again = tir.If(THREAD.eq(1), store(out, 1, load(out, 0) + 1))
    array = np.zeros(2, np.int64)
    peek = store(out, 1, load(out, 0))
    body = seq(tir.If(THREAD.eq(1), peek), tir.Barrier(), first, tir.Barrier(), again)
    run(function([given, out], body), [np.array([41]), array], threads=2)
    assert array.tolist() == [41, 42]


def test_written_buffers_may_change_at_barriers_for_llvm_too():
    a, out = flat("a", 4, f32), flat("out", 4, f32)
    copy = tir.For(ROW, tir.Const(4), store(out, ROW, load(a, ROW)))
    apart = emit(function([a, out], copy), Target.host())
    meeting = emit(function([a, out], seq(copy, tir.Barrier())), Target.host())
    assert (apart.count("noalias"), meeting.count("noalias")) == (2, 1)


@pytest.mark.parametrize("otherwise", [False, True])
def test_conditions(otherwise):
    out = flat("out", 8, i64)
    no = store(out, ROW, -1) if otherwise else None
    body = tir.For(ROW, tir.Const(8), tir.If((ROW % 3).eq(0), store(out, ROW, ROW), no))
    array = np.full(8, 5)
    run(function([out], body), [array])
    rest = -1 if otherwise else 5
    assert array.tolist() == [i if i % 3 == 0 else rest for i in range(8)]


def test_condition_inside_a_loop_inside_a_condition():
    out, flag = flat("out", 6, i64), flat("flag", 6, boolean)
    inner = tir.If(load(flag, ROW), store(out, ROW, ROW * 2), store(out, ROW, 1))
    body = tir.If(tir.Const(3) < N, tir.For(ROW, N, inner))
    flags = np.array([True, False, True, True, False, False])
    for n, expected in ((3, [0] * 6), (6, [0, 1, 4, 6, 1, 1])):
        array = np.zeros(6, np.int64)
        run(function([flag, out], body, sizes=(N,)), [flags, array], [n])
        assert array.tolist() == expected


def test_register_tile_becomes_values():
    """A sum over rows in registers, then one store: no memory is left for the tile."""
    a, out = flat("a", 80, f32), flat("out", 16, f32)
    tile = flat("tile", 16, f32, tir.Scope.REGISTER)
    halves = [ramp(0, 8), ramp(8, 8)]
    zero = tir.Broadcast(tir.const(0.0, f32), 8)
    clear = [tir.Store(tile, (half,), zero) for half in halves]
    update = [
        tir.Store(tile, (half,), tir.Load(tile, (half,)) + tir.Load(a, (ramp(ROW * 16 + at, 8),)))
        for at, half in zip((0, 8), halves, strict=True)
    ]
    copy = [tir.Store(out, (half,), tir.Load(tile, (half,))) for half in halves]
    body = tir.Alloc(tile, seq(*clear, tir.For(ROW, tir.Const(5), seq(*update)), *copy))
    values, array = np.arange(80, dtype=np.float32), np.zeros(16, np.float32)
    run(function([a, out], body), [values, array])
    assert array.tolist() == values.reshape(5, 16).sum(0).tolist()


def test_stack_buffers_and_reuse_of_their_slots():
    out = flat("out", 16, i64)
    first, second = flat("first", 8, i64), flat("second", 8, i64)

    def through(buffer, at):
        fill = tir.For(ROW, tir.Const(8), store(buffer, (ROW * 3) % 8, ROW))
        return tir.Alloc(
            buffer, seq(fill, tir.For(J, tir.Const(8), store(out, J + at, load(buffer, J))))
        )

    program = function([out], through(first, 0), through(second, 8))
    assert emit(program, Target.host()).count("alloca") == 1
    array = np.zeros(16, np.int64)
    run(program, [array])
    assert array.tolist() == [i * 3 % 8 for i in range(8)] * 2


def test_local_scratch_belongs_to_a_thread():
    scratch, out = flat("scratch", 4, i64), flat("out", 12, i64)
    fill = tir.For(J, tir.Const(4), store(scratch, J, ROW * 10 + J))
    take = tir.For(J, tir.Const(4), store(out, ROW * 4 + J, load(scratch, J)))
    body = tir.For(ROW, tir.Const(3), tir.Alloc(scratch, seq(fill, take)), PARALLEL)
    array = np.zeros(12, np.int64)
    run(function([out], body, local={scratch: 64}), [array], threads=3)
    assert array.tolist() == [i * 10 + j for i in range(3) for j in range(4)]


def test_loads_after_a_store_see_it():
    a = flat("a", 4, i64)
    body = seq(store(a, 1, load(a, 0) + 1), store(a, 2, load(a, 0) + load(a, 1)), store(a, 0, 9))
    array = np.array([5, 0, 0, 0])
    run(function([a], body, store(a, 3, load(a, 0))), [array])
    assert array.tolist() == [9, 6, 11, 9]


def test_loop_carried_memory_is_read_in_every_iteration():
    a = flat("a", 9, i64)
    body = tir.For(ROW, tir.Const(8), store(a, ROW + 1, load(a, ROW) * 2))
    array = np.array([1, *[0] * 8])
    run(function([a], seq(store(a, 0, load(a, 0) + 0), body)), [array])
    assert array.tolist() == [2**n for n in range(9)]


def test_one_variable_may_serve_several_loops():
    out = flat("out", 20, i64)

    def loop(extent, at):
        return tir.For(ROW, tir.Const(extent), store(out, ROW + at, ROW // 3 * 10 + ROW % 3))

    array = np.zeros(20, np.int64)
    run(function([out], loop(1, 0), loop(9, 1), loop(1, 10), loop(9, 11)), [array])
    nine = [i // 3 * 10 + i % 3 for i in range(9)]
    assert array.tolist() == [0, *nine, 0, *nine]


def test_let_binds_a_value_once():
    a, out = flat("a", 8, f32), flat("out", 8, f32)
    x = tir.Var("x", f32.vector(8))
    value = tir.Let(x, tir.Load(a, (ramp(0, 8),)), x * x + x)
    program = function([a, out], tir.Store(out, (ramp(0, 8),), value))
    assert emit(program, Target.host()).count("load <8 x float>") == 1
    values, array = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    run(program, [values, array])
    assert array.tolist() == (values * values + values).tolist()


def test_thread_numbers_are_values():
    out = flat("out", 8, i64)
    threads = tir.Call("threads", (), i64)
    body = tir.For(ROW, tir.Const(8), store(out, ROW, THREAD * 10 + threads), PARALLEL)
    array = np.zeros(8, np.int64)
    run(function([out], body), [array], threads=2)
    assert array.tolist() == [2] * 4 + [12] * 4


@pytest.mark.parametrize("kind", [tir.LoopKind.VECTOR, tir.LoopKind.UNROLLED])
def test_loops_that_lowering_removes_are_refused(kind):
    out = flat("out", 4, i64)
    with raises_code("I102", text="loop i"):
        emit(function([out], tir.For(ROW, tir.Const(4), store(out, ROW, 0), kind)), Target.host())


def test_blocks_are_refused():
    out = flat("out", 4, i64)
    block = tir.Block("b", (), (), (), (), store(out, 0, 0))
    with raises_code("I102", text="`Block`"):
        emit(function([out], block), Target.host())


def test_stack_buffer_of_unknown_size_is_refused():
    buffer = flat("work", N, f32)
    with raises_code("I103", text="`work`"):
        emit(function([], tir.Alloc(buffer, store(buffer, 0, 0.0)), sizes=(N,)), Target.host())


def test_free_variables_are_refused():
    out = flat("out", 4, i64)
    with raises_code("I101", text="free variable j"):
        emit(function([out], store(out, J, 0)), Target.host())
