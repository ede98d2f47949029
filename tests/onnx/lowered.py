"""One operator of the core set as a compiled kernel, without the graph compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import tilewright
from tilewright.dtypes import dtype_of
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops import Op
from tilewright.graph.sizes import evaluate_size
from tilewright.tensor import ir as tir
from tilewright.tensor.build import func, placeholder

__all__ = ["check_lowering", "lowered"]


def lowered(op: Op, types: Sequence[TensorType]) -> tir.Func:
    """The tensor program of an operator on inputs of these types."""
    inputs = [placeholder(f"in{k}", t.shape, t.dtype) for k, t in enumerate(types)]
    results = op.lower(inputs, [f"out{k}" for k in range(len(op.infer(types)))])
    return func(op.name, inputs, results)


def check_lowering(
    op: Op,
    types: Sequence[TensorType],
    arrays: Sequence[Array],
    sizes: Mapping[tir.Var, int] | None = None,
    threads: int | None = None,
) -> None:
    """Compiled code gives what `evaluate` says."""

    def size_of(dim: tir.Expr) -> int:
        return evaluate_size(dim, sizes or {})

    expected = op.evaluate(arrays, size_of)
    kernel = tilewright.build(lowered(op, types), threads=threads)
    outputs = [np.zeros(np.shape(a), a.dtype) for a in expected]
    kernel(*arrays, *outputs)
    for found, wanted in zip(outputs, expected, strict=True):
        if dtype_of(wanted.dtype).is_small:  # NumPy does not know of NaN in them
            found, wanted = found.astype(np.float32), wanted.astype(np.float32)
        np.testing.assert_array_equal(found, wanted)
