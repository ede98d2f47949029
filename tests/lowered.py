"""Hand-made lowered programs for the tests of code generation, and a way to run them.

Programs are called through `ctypes` and the calling convention alone, one thread after another or
all at once, so that a failure here is not one of the runtime.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.dtypes import DType
from tilewright.llvm.emit import emit, symbol
from tilewright.llvm.jit import load
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import seq

ZERO = tir.Const(0)


@dataclass
class Flat:
    """A lowered program made by hand."""

    func: tir.Func
    shared: dict[tir.Buffer, int] = field(default_factory=dict)
    local: dict[tir.Buffer, int] = field(default_factory=dict)
    shared_bytes: tir.Expr = ZERO
    local_bytes: tir.Expr = ZERO
    sizes: tuple[tir.Var, ...] = ()


def flat(name: str, size: int | tir.Expr, dtype: DType, scope=tir.Scope.MEMORY) -> tir.Buffer:
    return tir.Buffer(name, (tir.as_index(size),), dtype, scope)


def ramp(base: int | tir.Expr, lanes: int, stride: int = 1) -> tir.Expr:
    """Lanes from `base` on; a plain index for one lane."""
    return (
        tir.as_index(base) if lanes == 1 else tir.Ramp(tir.as_index(base), tir.Const(stride), lanes)
    )


def function(params: Iterable[tir.Buffer], *body: tir.Stmt, name: str = "test", **rest) -> Flat:
    return Flat(tir.Func(name, tuple(params), seq(*body)), **rest)


class Context(ctypes.Structure):
    _fields_ = (
        ("thread", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("barrier", ctypes.c_void_p),
        ("shared", ctypes.c_void_p),
        ("local", ctypes.c_void_p),
        ("team", ctypes.c_void_p),
    )


_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_BARRIER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def run(
    program: Flat,
    arrays: Sequence[np.ndarray],
    sizes: Sequence[int] = (),
    threads: int = 1,
    target: Target | None = None,
    scratch_bytes: int = 1 << 16,
    shared: Collection[int] = (),
) -> None:
    """Compile and call; all threads at once, so that they can meet at barriers.

    `shared` are the parameters that may be the same array.
    """
    target = target or Target.host()
    code = load(emit(program, target, shared), target)
    entry = _ENTRY(code.address(symbol(program.func)))
    buffers = (ctypes.c_void_p * max(1, len(arrays)))(*(a.ctypes.data for a in arrays))
    numbers = (ctypes.c_int64 * max(1, len(sizes)))(*sizes)
    meeting = threading.Barrier(threads)
    barrier = _BARRIER(lambda _: meeting.wait() and None)
    scratch = [aligned(scratch_bytes) for _ in range(threads + 1)]
    results = []

    def work(thread: int) -> None:
        context = Context(
            thread,
            threads,
            ctypes.cast(barrier, ctypes.c_void_p),
            scratch[threads].ctypes.data,
            scratch[thread].ctypes.data,
            None,
        )
        where = (ctypes.addressof(buffers), ctypes.addressof(numbers), ctypes.addressof(context))
        results.append(entry(*where))

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(1, threads)]
    for worker in workers:
        worker.start()
    work(0)
    for worker in workers:
        worker.join()
    assert results == [0] * threads


def aligned(size: int) -> np.ndarray:
    """Bytes that start at a multiple of 64, filled with something that is not zero."""
    memory = np.full(size + 64, 0xA5, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size]


def map_elements(
    value,
    inputs: Sequence[np.ndarray],
    dtypes: Sequence[DType],
    out: DType,
    lanes: int,
    target=None,
) -> np.ndarray:
    """`value(a, b, …)` of the elements of equally long arrays, `lanes` at a time."""
    count = len(inputs[0])
    assert count % lanes == 0
    buffers = [flat(f"in{n}", count, dtype) for n, dtype in enumerate(dtypes)]
    result = flat("out", count, out)
    i = tir.Var("i")
    where = ramp(i * lanes, lanes)
    stored = value(*(tir.Load(buffer, (where,)) for buffer in buffers))
    body = tir.For(i, tir.Const(count // lanes), tir.Store(result, (where,), stored))
    array = np.zeros(count, out.numpy)
    run(function([*buffers, result], body), [*inputs, array], target=target)
    return array
