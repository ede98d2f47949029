"""Random arrays for the parameters of a program."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.dtypes import DType
from tilewright.tensor import ir as tir
from tilewright.tensor.evaluate import Evaluator
from tilewright.tensor.regions import outputs

__all__ = ["random_array", "random_inputs", "shape_of"]


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """Small numbers: sums and products of many of them neither overflow nor lose all digits."""
    if dtype.is_bool:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_integer:
        return rng.integers(-5 if dtype.is_signed else 0, 6, shape).astype(dtype.numpy)
    return rng.uniform(-1, 1, shape).astype(dtype.numpy)


def shape_of(buffer: tir.Buffer, sizes: Mapping[tir.Var, int]) -> tuple[int, ...]:
    """The shape with numbers for the symbolic sizes."""
    evaluator = Evaluator(tir.Func("shape", (), tir.Seq(())))
    evaluator.values.update({var: np.int64(value) for var, value in sizes.items()})
    return tuple(int(evaluator.value(d)) for d in buffer.shape)


def random_inputs(
    func: tir.Func, rng: np.random.Generator, sizes: Mapping[tir.Var, int] | None = None
) -> dict[str, np.ndarray]:
    """An array for every parameter that the program does not write."""
    written = set(outputs(func))
    return {
        p.name: random_array(rng, shape_of(p, sizes or {}), p.dtype)
        for p in func.params
        if p not in written
    }
