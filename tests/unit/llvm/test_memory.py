"""Loads and stores of scalars, vectors and index vectors: what they fetch and what is written."""

import re

import numpy as np
import pytest

from tests.lowered import flat, function, ramp, run
from tests.memory.guarded import at_edge
from tilewright.dtypes import DTYPES, boolean, f32, i64
from tilewright.llvm.emit import emit
from tilewright.target import Target
from tilewright.tensor import ir as tir

ROW, N = tir.Var("i"), tir.Var("n")


def gathered(where, lanes, source, dtype=f32):
    """Elements of `source` at an index vector."""
    a, out = flat("a", len(source), dtype), flat("out", lanes, dtype)
    array = np.zeros(lanes, source.dtype)
    program = function([a, out], tir.Store(out, (ramp(0, lanes),), tir.Load(a, (where,))))
    run(program, [source, array])
    return array, emit(program, Target.host())


@pytest.mark.parametrize("stride", [-3, -2, -1, 0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("name", ["f32", "i8", "f64", "f16", "bool"])
def test_strided_loads(stride, lanes, name):
    dtype = DTYPES[name]
    span = abs(stride) * (lanes - 1) + 1
    source = (np.arange(span) % 100).astype(dtype.numpy)
    base = span - 1 if stride < 0 else 0
    found, _ = gathered(ramp(base, lanes, stride), lanes, source, dtype)
    assert (found == source[base + stride * np.arange(lanes)]).all()


@pytest.mark.parametrize("count", [-(1 << 40), -1, 0, 1, 3, 7, 8, 9, 1 << 40])
@pytest.mark.parametrize("name", ["f32", "i8", "f64", "f16", "bool"])
def test_lanes_that_are_off_touch_nothing(count, name, level):
    """Source and result end where a forbidden page begins, at the last lane that is on."""
    dtype, on = DTYPES[name], min(max(count, 0), 8)
    a, b, out = flat("a", N, dtype), flat("b", N, dtype), flat("out", 8, dtype)
    some = tir.Prefix(tir.Const(0), N, 8)
    body = [tir.Store(out, (ramp(0, 8),), tir.Load(a, (some,))), tir.Store(b, (some,), a_of(a, 8))]
    source = at_edge(np.arange(1, on + 1).astype(dtype.numpy), "end")
    result, loaded = at_edge(np.zeros(on, dtype.numpy), "end"), np.ones(8, dtype.numpy)
    program = function([a, b, out], *body, sizes=(N,))
    run(program, [source, result, loaded], [count], target=level)
    assert loaded.tolist() == [*source.tolist(), *[0] * (8 - on)]
    assert result.tolist() == source.tolist()


def a_of(buffer, lanes):
    return tir.Load(buffer, (tir.Prefix(tir.Const(0), N, lanes),))


@pytest.mark.parametrize(("stride", "loads"), [(-1, 1), (2, 2), (3, 3), (4, 4)])
def test_small_strides_are_few_vector_loads_inside_the_range(stride, loads):
    span = abs(stride) * 7 + 1
    base = span - 1 if stride < 0 else 0
    _, text = gathered(ramp(base, 8, stride), 8, np.arange(span, dtype=np.float32))
    assert text.count("load <8 x float>") == loads
    offsets = [int(n) for n in re.findall(r"ptr %a, i64 (\d+)", text)]
    assert max([0, *offsets]) + 32 <= span * 4


def test_large_strides_are_single_loads():
    _, text = gathered(ramp(0, 8, 9), 8, np.arange(64, dtype=np.float32))
    assert text.count("load float") == 8


def test_gather_by_an_index_tensor():
    a, index, out = flat("a", 100, f32), flat("index", 8, i64), flat("out", 8, f32)
    where = tir.Load(index, (ramp(0, 8),)) * 2 + tir.Broadcast(tir.Const(1), 8)
    program = function([a, index, out], tir.Store(out, (ramp(0, 8),), tir.Load(a, (where,))))
    source, array = np.arange(100, dtype=np.float32), np.zeros(8, np.float32)
    places = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    run(program, [source, places, array])
    assert array.tolist() == (places * 2 + 1).tolist()


def test_gather_by_computed_indices():
    """Two rows of four: runs of neighbours become vector loads where the indices are constant."""
    lane = ramp(0, 8)
    where = (lane // 4) * 10 + lane % 4
    found, text = gathered(where, 8, np.arange(14, dtype=np.float32))
    assert found.tolist() == [0, 1, 2, 3, 10, 11, 12, 13]
    assert text.count("load <8 x float>") == 2


def test_gather_by_a_bound_vector():
    a, out = flat("a", 20, f32), flat("out", 4, f32)
    x = tir.Var("x", i64.vector(4))
    value = tir.Let(x, ramp(2, 4, 3), tir.Load(a, (x,)))
    source, array = np.arange(20, dtype=np.float32), np.zeros(4, np.float32)
    run(function([a, out], tir.Store(out, (ramp(0, 4),), value)), [source, array])
    assert array.tolist() == [2, 5, 8, 11]


def test_equal_indices_are_one_load():
    found, text = gathered(tir.Broadcast(tir.Const(3), 8), 8, np.arange(8, dtype=np.float32))
    assert found.tolist() == [3.0] * 8
    assert text.count("load float") == 1


@pytest.mark.parametrize("name", ["f32", "bool", "bf16"])
def test_scatter(name):
    dtype = DTYPES[name]
    a, out = flat("a", 8, dtype), flat("out", 40, dtype)
    source, array = (np.arange(8) % 3).astype(dtype.numpy), np.zeros(40, dtype.numpy)
    store = tir.Store(out, (ramp(2, 8, 5),), tir.Load(a, (ramp(0, 8),)))
    run(function([a, out], store), [source, array])
    expected = np.zeros(40, dtype.numpy)
    expected[2::5] = source
    assert (array == expected).all()


def test_scalar_stored_to_a_vector_fills_it():
    out = flat("out", 8, f32)
    array = np.zeros(8, np.float32)
    run(function([out], tir.Store(out, (ramp(0, 8),), tir.const(2.5, f32))), [array])
    assert (array == 2.5).all()


def test_bools_are_bytes():
    a, out = flat("a", 16, f32), flat("out", 16, boolean)
    value = tir.Lt(tir.Load(a, (ramp(0, 16),)), tir.as_expr(4.0, f32.vector(16)))
    array = np.full(16, 1).astype(np.bool_)
    run(
        function([a, out], tir.Store(out, (ramp(0, 16),), value)),
        [np.arange(16, dtype="f4"), array],
    )
    assert array.view(np.uint8).tolist() == [1] * 4 + [0] * 12


def alignments(body, *params, **rest):
    text = emit(function(params, body, **rest), Target.host())
    return [int(n) for n in re.findall(r"store <8 x float>.*align (\d+)", text)]


@pytest.mark.parametrize(
    ("where", "alignment"),
    [
        (ROW * 8, 32),
        (ROW * 16 + 8, 32),
        (ROW * 4, 16),
        (ROW * 8 + 2, 8),
        (ROW, 4),
        (tir.Const(16), 32),
    ],
)
def test_alignment_follows_from_the_index(where, alignment):
    scratch = flat("scratch", 256, f32)
    store = tir.Store(scratch, (ramp(where, 8),), tir.as_expr(0.0, f32.vector(8)))
    body = tir.Alloc(scratch, tir.For(ROW, tir.Const(8), store))
    assert alignments(body, local={scratch: 64}) == [alignment]


def test_parameters_are_aligned_to_their_elements_only():
    out = flat("out", 64, f32)
    store = tir.Store(out, (ramp(ROW * 8, 8),), tir.as_expr(0.0, f32.vector(8)))
    assert alignments(tir.For(ROW, tir.Const(8), store), out) == [4]
