"""The text of whole modules."""

import ctypes

import numpy as np
import pytest

from tests.lowered import flat, function, ramp, run
from tilewright.dtypes import f32, i8
from tilewright.llvm.emit import emit, scratch_symbol, symbol
from tilewright.llvm.jit import load
from tilewright.target import Target
from tilewright.tensor import ir as tir

ROW, N = tir.Var("i"), tir.Var("n")
V3 = Target.named("x86-64-v3")


def scaled(size, sizes=()):
    a, out = flat("A", size, f32), flat("B", size, f32)
    where = ramp(ROW * 8, 8)
    body = tir.Store(out, (where,), tir.Load(a, (where,)) * 2.0)
    loop = tir.For(ROW, tir.as_index(size) // 8, body, tir.LoopKind.PARALLEL)
    return function([a, out], loop, name="scale", sizes=sizes)


def test_module_of_a_small_kernel(golden):
    assert golden == emit(scaled(64), V3)


def test_module_with_a_symbolic_size(golden):
    assert golden == emit(scaled(N * 8, (N,)), V3)


def test_parameters_say_how_they_are_used():
    a, b, c = flat("a", 4, f32), flat("b", 4, f32), flat("c", 4, i8)
    update = tir.Store(b, (tir.Const(0),), tir.Load(b, (tir.Const(1),)))
    write = tir.Store(c, (tir.Const(0),), tir.const(1, i8))
    text = emit(function([a, b, c], update, write), V3)
    head = next(line for line in text.splitlines() if ".body(" in line and "define" in line)
    a_facts, b_facts, c_facts = head.partition("(")[2].split(", ")[:3]
    assert "readnone" in a_facts
    assert "read" not in b_facts
    assert "dereferenceable(16)" in b_facts
    assert "writeonly" in c_facts
    assert "align 1 " in c_facts


@pytest.mark.parametrize(
    "name", ["buffers", "thread", "entry", "context", "sizes", "a.b", "shared"]
)
def test_any_name_will_do(name):
    a = flat(name, 4, f32)
    store = tir.Store(a, (tir.Var(name),), tir.const(1.0, f32))
    loop = tir.For(store.indices[0], tir.Const(4), store)
    code = load(emit(function([a], loop, name=name), Target.host()), Target.host())
    assert code.address(symbol(tir.Func(name, (), loop)))


def test_scratch_sizes_that_depend_on_sizes_are_a_function():
    program = scaled(N * 8, (N,))
    program.shared_bytes, program.local_bytes = N * 64 + 128, tir.Const(4096)
    code = load(emit(program, Target.host()), Target.host())
    ask = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    sizes, found = np.array([10]), np.zeros(2, np.int64)
    ask(code.address(scratch_symbol(program.func)))(sizes.ctypes.data, found.ctypes.data)
    assert found.tolist() == [768, 4096]


def test_constant_scratch_needs_no_function():
    assert scratch_symbol(scaled(64).func) not in emit(scaled(64), V3)


def test_emission_is_deterministic():
    assert emit(scaled(64), V3) == emit(scaled(64), V3)


def test_parameters_that_may_be_one_memory_say_so():
    """What is read may change: neither apart from what is written, nor the same all the time."""
    plain, shared = emit(scaled(64), V3), emit(scaled(64), V3, {0, 1})
    assert (plain.count("noalias"), shared.count("noalias")) == (2, 0)
    assert (plain.count("!invariant.load"), shared.count("!invariant.load")) == (1, 0)
    assert shared.count("readonly") == plain.count("readonly")


@pytest.mark.parametrize("threads", [1, 3])
def test_a_kernel_writes_over_what_it_reads(threads):
    array = np.arange(64, dtype=np.float32)
    run(scaled(64), [array, array], threads=threads, shared={0, 1})
    np.testing.assert_array_equal(array, np.arange(64) * 2)
