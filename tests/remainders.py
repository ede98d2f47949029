"""Kernels of symbolic sizes that no vector divides, and what NumPy makes of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.dtypes import DType, f16, f32, f64
from tilewright.pipeline import Pipeline
from tilewright.runtime import Kernel
from tilewright.schedule.draft import draft
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import size

__all__ = ["REMAINDERS", "Remainder", "built"]

Array = np.ndarray[Any, Any]
M, N, K = size("m"), size("n"), size("k")


@dataclass(frozen=True)
class Remainder:
    """A program with a symbolic last dimension, the shapes of its arrays, and its meaning."""

    name: str
    func: tir.Func
    shapes: Callable[[int], list[tuple[int, ...]]]
    expected: Callable[..., Array]
    dtype: DType = f32
    threads: int = 1

    def arrays(self, n: int, seed: int = 0) -> list[Array]:
        """Inputs, and room for the result."""
        rng = np.random.default_rng(seed)
        return [rng.standard_normal(s).astype(self.dtype.numpy) for s in self.shapes(n)]


def built(case: Remainder, target: Target) -> Kernel:
    """The kernel as its draft makes it, with no remark about anything left unscheduled."""
    schedule = draft(case.func, target, case.threads)
    assert not schedule.remarks
    kernel = Pipeline(target).resume("scheduled", str(schedule.func)).value
    assert isinstance(kernel, Kernel)
    return kernel


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _layernorm(x: Array, g: Array, b: Array) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * g + b


def _matmul_shapes(n: int) -> list[tuple[int, ...]]:
    return [(27, 5), (5, n), (27, n)]


REMAINDERS = (
    Remainder("matmul", library.matmul(M, N, K), _matmul_shapes, np.matmul),
    Remainder("shared matmul", library.matmul(M, N, K), _matmul_shapes, np.matmul, threads=8),
    Remainder("matmul of f64", library.matmul(M, N, K, f64), _matmul_shapes, np.matmul, f64),
    Remainder(
        "matmul with epilogue",
        library.matmul(M, N, K, bias=True, relu=True),
        lambda n: [(27, 5), (5, n), (n,), (27, n)],
        lambda a, b, d: np.maximum(a @ b + d, 0),
    ),
    Remainder(
        "matmul of transposed columns",
        library.matmul(M, N, K, transpose_b=True),
        lambda n: [(27, 5), (n, 5), (27, n)],
        lambda a, b: a @ b.T,
    ),
    Remainder(
        "a row added to others",
        library.broadcast_add(M, N),
        lambda n: [(3, n), (n,), (3, n)],
        lambda a, b: a + b,
    ),
    Remainder("turned", library.transpose(M, N), lambda n: [(19, n), (n, 19)], lambda x: x.T),
    Remainder("row sums", library.row_sum(M, N), lambda n: [(3, n), (3,)], lambda x: x.sum(1)),
    Remainder("row maxima", library.row_max(M, N), lambda n: [(3, n), (3,)], lambda x: x.max(1)),
    Remainder(
        "column sums", library.column_sum(M, N), lambda n: [(3, n), (n,)], lambda x: x.sum(0)
    ),
    Remainder("softmax", library.softmax(M, N), lambda n: [(3, n), (3, n)], _softmax),
    Remainder(
        "softmax of f16", library.softmax(M, N, f16), lambda n: [(3, n), (3, n)], _softmax, f16
    ),
    Remainder(
        "layernorm", library.layernorm(M, N), lambda n: [(3, n), (n,), (n,), (3, n)], _layernorm
    ),
)
