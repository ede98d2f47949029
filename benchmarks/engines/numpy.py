"""NumPy with the BLAS it ships; row-wise ops as in-place passes over preallocated arrays."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.engines import NOTHING, Runner, Variants, empty
from benchmarks.numbers import EPSILON, Arrays
from benchmarks.workloads import CHAIN, Workload

PEER: Final = True


def start(threads: int) -> dict[str, str]:
    """The environment has told the BLAS its thread count already; say which BLAS it is."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return {"numpy": np.__version__}
    libraries = threadpool_info()
    assert all(library["num_threads"] == threads for library in libraries), libraries
    return {"numpy": np.__version__, **{lib["internal_api"]: lib["version"] for lib in libraries}}


def variants(workload: Workload) -> Variants:
    if workload.group == "compile":
        return NOTHING
    match workload.op:
        case "matmul" | "batched":
            return {"matmul": _matmul}
        case "softmax":
            return {"passes": _softmax}
        case "layernorm":
            return {"passes": _layernorm}
        case "chain":
            return {"passes": _chain}
    return NOTHING  # NumPy has no erf


def _matmul(arrays: Arrays) -> Runner:
    a, b = arrays["a"], arrays["b"]
    out = empty(*a.shape[:-1], b.shape[-1])
    return Runner(partial(np.matmul, a, b, out=out), lambda: out)


def _softmax(arrays: Arrays) -> Runner:
    x, out = arrays["x"], empty(*arrays["x"].shape)

    def run() -> None:
        np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.divide(out, out.sum(axis=-1, keepdims=True), out=out)

    return Runner(run, lambda: out)


def _layernorm(arrays: Arrays) -> Runner:
    x, s, b = arrays["x"], arrays["s"], arrays["b"]
    out, squares = empty(*x.shape), empty(*x.shape)

    def run() -> None:
        np.subtract(x, x.mean(axis=-1, keepdims=True), out=out)
        np.multiply(out, out, out=squares)
        np.divide(out, np.sqrt(squares.mean(axis=-1, keepdims=True) + EPSILON), out=out)
        np.multiply(out, s, out=out)
        np.add(out, b, out=out)

    return Runner(run, lambda: out)


def _sigmoid(value: Any, _: Any, out: Any) -> None:
    np.negative(value, out=out)
    np.exp(out, out=out)
    np.add(out, np.float32(1), out=out)
    np.reciprocal(out, out=out)


_OPS: dict[str, Any] = {
    "mul": lambda value, operand, out: np.multiply(value, operand, out=out),
    "add": lambda value, operand, out: np.add(value, operand, out=out),
    "sub": lambda value, operand, out: np.subtract(value, operand, out=out),
    "relu": lambda value, _, out: np.maximum(value, np.float32(0), out=out),
    "sigmoid": _sigmoid,
}


def _chain(arrays: Arrays) -> Runner:
    x, out = arrays["x"], empty(*arrays["x"].shape)
    steps = [(_OPS[op], arrays.get(operand)) for op, operand in CHAIN]

    def run() -> None:
        value = x
        for op, operand in steps:
            op(value, operand, out)
            value = out

    return Runner(run, lambda: out)
