import ctypes
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.lowered import flat, function, run
from tilewright.dtypes import i64
from tilewright.llvm.emit import emit
from tilewright.llvm.jit import Function, load
from tilewright.target import Target
from tilewright.tensor import ir as tir

SCRATCH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


def test_kernels_compile_in_parallel_threads():
    def build_and_run(number):
        out, i = flat("out", 8, i64), tir.Var("i")
        store = tir.Store(out, (i,), i * number)
        array = np.zeros(8, np.int64)
        run(function([out], tir.For(i, tir.Const(8), store)), [array])
        return array.tolist()

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(build_and_run, range(24)))
    assert results == [[i * number for i in range(8)] for number in range(24)]


def test_code_lives_as_long_as_its_object():
    n = tir.Var("n")
    program = function([], tir.Seq(()), sizes=(n,), shared_bytes=n * 2)
    codes = [load(emit(program, Target.host()), Target.host()) for _ in range(3)]
    kept = codes.pop(1)
    del codes
    gc.collect()
    sizes, found = np.array([21]), np.zeros(2, np.int64)
    SCRATCH(kept.address("test_scratch"))(sizes.ctypes.data, found.ctypes.data)
    assert found.tolist() == [42, 0]


def test_code_in_a_cycle_is_collected():
    """The collector may see all parts of a cycle in any order; LLVM's parts have one."""
    text = emit(function([], tir.Seq(())), Target.host())
    for _ in range(5):
        holder = {"code": load(text, Target.host())}
        holder["itself"] = holder
        alive = weakref.ref(holder["code"])
        del holder
        gc.collect()
        assert alive() is None


def test_unknown_symbol_has_no_address():
    code = load(emit(function([], tir.Seq(())), Target.host()), Target.host())
    assert code.address("nothing") == 0


def test_function_keeps_its_code_alive():
    n = tir.Var("n")
    program = function([], tir.Seq(()), sizes=(n,), shared_bytes=n * 2)
    code = load(emit(program, Target.host()), Target.host())
    call = Function(code, "test_scratch", ctypes.c_void_p, ctypes.c_void_p)
    alive = weakref.ref(code)
    del code
    gc.collect()
    sizes, found = np.array([4]), np.zeros(2, np.int64)
    call(sizes.ctypes.data, found.ctypes.data)
    assert found.tolist() == [8, 0]
    del call
    gc.collect()
    assert alive() is None


def test_function_rejects_unknown_symbol():
    code = load(emit(function([], tir.Seq(())), Target.host()), Target.host())
    with pytest.raises(ValueError, match="no function `nothing`"):
        Function(code, "nothing")
