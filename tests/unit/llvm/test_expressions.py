"""Expressions that the tables in tests/numeric do not reach."""

import re

import numpy as np
import pytest

from tests.expect import raises_code
from tests.lowered import flat, function, map_elements, ramp, run
from tilewright.dtypes import f32, i8, i16, i32, i64, u8
from tilewright.llvm.emit import emit
from tilewright.llvm.machine import assembly_of
from tilewright.target import Target
from tilewright.tensor import ir as tir

ROW = tir.Var("i")


@pytest.mark.isa("avx2")
def test_llvm_intrinsics_are_called_by_name():
    """Pairs of products of neighbours, added."""
    a, b, out = flat("a", 16, i16), flat("b", 16, i16), flat("out", 8, i32)
    loads = tuple(tir.Load(buffer, (ramp(0, 16),)) for buffer in (a, b))
    value = tir.Call("llvm.x86.avx2.pmadd.wd", loads, i32.vector(8))
    x, y = np.arange(16, dtype=np.int16) - 8, np.arange(16, dtype=np.int16) * 1000
    array = np.zeros(8, np.int32)
    run(function([a, b, out], tir.Store(out, (ramp(0, 8),), value)), [x, y, array])
    products = x.astype(np.int32) * y
    assert array.tolist() == (products[::2] + products[1::2]).tolist()


def test_bits_of_several_lanes_are_one_wider_value():
    """Four bytes become one `i32`, which is copied to all lanes and taken apart again."""
    a, out = flat("a", 4, u8), flat("out", 16, u8)
    word = tir.Reinterpret(i32, tir.Load(a, (ramp(0, 4),)))
    value = tir.Reinterpret(u8.vector(16), tir.Broadcast(word, 4))
    array = np.zeros(16, np.uint8)
    run(
        function([a, out], tir.Store(out, (ramp(0, 16),), value)), [np.arange(4, dtype="u1"), array]
    )
    assert array.tolist() == [0, 1, 2, 3] * 4


@pytest.mark.parametrize("stride", [1, 3, -2])
def test_ramps_are_values(stride):
    out = flat("out", 24, i64)
    store = tir.Store(out, (ramp(ROW * 8, 8),), ramp(ROW + 5, 8, stride))
    array = np.zeros(24, np.int64)
    run(function([out], tir.For(ROW, tir.Const(3), store)), [array])
    assert array.tolist() == [i + 5 + stride * lane for i in range(3) for lane in range(8)]


def test_ramp_with_a_stride_known_at_run_time():
    n, out = tir.Var("n"), flat("out", 8, i64)
    value = tir.Ramp(tir.Const(2), n, 8)
    array = np.zeros(8, np.int64)
    run(function([out], tir.Store(out, (ramp(0, 8),), value), sizes=(n,)), [array], [7])
    assert array.tolist() == [2 + 7 * lane for lane in range(8)]


def test_vectors_of_one_lane_are_scalars():
    a, out = flat("a", 4, f32), flat("out", 4, f32)
    where = tir.Ramp(ROW, tir.Const(1), 1)
    value = tir.Load(a, (where,)) + tir.Broadcast(tir.const(1.0, f32), 1)
    array = np.zeros(4, np.float32)
    loop = tir.For(ROW, tir.Const(4), tir.Store(out, (where,), value))
    run(function([a, out], loop), [np.arange(4, dtype="f4"), array])
    assert array.tolist() == [1, 2, 3, 4]


def test_select_of_vectors_by_a_scalar():
    a = np.arange(16, dtype=np.float32)
    flag = tir.Lt(tir.Const(0), tir.Call("threads", (), i64))
    found = map_elements(lambda x: tir.Select(flag, x, tir.Neg(x)), [a], [f32], f32, 8)
    assert (found == a).all()


@pytest.mark.parametrize("lanes", [1, 4, 8])
@pytest.mark.parametrize("given", ["none", "some", "all", "nested"])
def test_what_is_unlikely_is_branched_around(lanes, given):
    """Values are those of a choice; no block is entered that no lane needs."""

    def unlikely(cond):
        return tir.Call("unlikely", (cond,), cond.dtype)

    def body(x):
        y = tir.Var("y", x.dtype)
        rare = tir.Let(y, x * 2, tir.Select(unlikely(y > 60), y - 1000, y + y))
        return tir.Select(unlikely(x > 20), rare, x + 1)

    values = {"none": (0, 0), "some": (22, 0), "all": (22, 22), "nested": (40, 3)}[given]
    a = np.arange(16, dtype=np.float32)
    a[::5] += values[0]
    a[1::2] += values[1]
    found = map_elements(body, [a], [f32], f32, lanes)
    rare = np.where(2 * a > 60, 2 * a - 1000, 4 * a)
    assert found.tolist() == np.where(a > 20, rare, a + 1).tolist()


def test_a_choice_without_an_unlikely_condition_does_not_branch():
    a, out = flat("a", 8, f32), flat("out", 8, f32)
    x = tir.Load(a, (ramp(0, 8),))
    for cond, blocks in ((x > 1, 0), (tir.Call("unlikely", (x > 1,), (x > 1).dtype), 1)):
        value = tir.Select(cond, x * 3, x)
        text = emit(function([a, out], tir.Store(out, (ramp(0, 8),), value)), Target.host())
        assert text.count("br i1") == blocks


def test_division_of_loop_variables_is_unsigned():
    """Loops count from zero: no correction for negative numbers."""
    out = flat("out", 100, i64)
    loop = tir.For(ROW, tir.Const(100), tir.Store(out, (ROW,), ROW // 7 * 10 + ROW % 7))
    program = function([out], loop)
    text = emit(program, Target.host())
    assert "udiv" in text
    assert "sdiv" not in text
    array = np.zeros(100, np.int64)
    run(program, [array])
    assert array.tolist() == [i // 7 * 10 + i % 7 for i in range(100)]


def test_extremes_with_a_constant_are_one_instruction():
    target = Target.named("x86-64-v3")
    a, out = flat("a", 8, f32), flat("out", 8, f32)
    value = tir.Max(tir.Load(a, (ramp(0, 8),)), tir.as_expr(0.0, f32.vector(8)))
    text = emit(function([a, out], tir.Store(out, (ramp(0, 8),), value)), target)
    assembly = assembly_of(text, target)
    assert "vmaxps" in assembly
    assert "vcmp" not in assembly


A, OUT = flat("a", 8, f32), flat("out", 8, f32)
X, OWN = (tir.Load(buffer, (ramp(0, 8),)) for buffer in (A, OUT))


def is_fused(value: tir.Expr, name: str) -> bool:
    """Whether the code for `out[0:8] = value` has a fused multiply-add."""
    where = ramp(0, 8) if value.dtype.lanes > 1 else tir.Const(0)
    target = Target.named(name)
    program = function([A, OUT], tir.Store(OUT, (where,), value))
    assembly = assembly_of(emit(program, target), target)
    return re.search("fn?m(add|sub|la|ls)", assembly) is not None


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
def test_products_and_sums_are_rounded_one_by_one(name):
    for value in (X * X + X, X - X * X, (X * X).to(f32.vector(8)) + OWN * X):
        assert not is_fused(value, name)


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
def test_steps_of_sums_are_fused_where_the_target_can(name):
    lanes = tir.Reduce(tir.Fold.ADD, X * X + X)
    single = tir.Load(OUT, (tir.Const(0),))
    for value in (OWN + X * X, X * X + OWN, OWN - X * X, (OWN + X) + X * X, single + lanes):
        assert is_fused(value, name) == (name != "x86-64-v2")


def test_only_sums_are_fused_in_their_steps():
    """Factors of a term are computed as anywhere else."""
    assert not is_fused(OWN + tir.maximum(X * X + X, X), "x86-64-v3")


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3"])
def test_what_is_contracted_is_fused_and_nothing_around_it(name):
    def contracted(value):
        return tir.Call("contracted", (value,), value.dtype)

    can = name == "x86-64-v3"
    assert is_fused(contracted(X * X + X), name) == can
    assert not is_fused(contracted(X * X) + X, name)
    assert not is_fused(contracted(X + 1) + X * X, name)
    y = tir.Var("y", X.dtype)
    assert not is_fused(tir.Let(y, X * X, contracted(y + X)), name)
    assert not is_fused(contracted(contracted(X + 1) * X) + X, name)


def test_unknown_nodes_are_refused():
    out = flat("out", 8, i8)
    tile = tir.TileSize(tir.Cover(((6, tir.Const(2)), (5, tir.Const(1)))), ROW)
    with raises_code("I101", text="TileSize"):
        emit(
            function([out], tir.For(ROW, tir.Const(3), tir.Store(out, (tile,), tir.const(0, i8)))),
            Target.host(),
        )
