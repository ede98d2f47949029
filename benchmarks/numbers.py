"""Inputs with a fixed seed, the float64 result that every engine must meet, and how near."""

from __future__ import annotations

import math
import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import CHAIN, Workload

__all__ = ["CONVOLUTION_TOLERANCE", "EPSILON", "TOLERANCE", "Arrays", "error_of", "inputs"]
__all__ += ["reference", "tolerance"]

Arrays = dict[str, NDArray[np.float32]]

TOLERANCE: Final = 1e-5
"""Largest accepted |result - reference| relative to the largest |reference|: single precision
passes with room to spare, bfloat16 or TF32 arithmetic does not."""
CONVOLUTION_TOLERANCE: Final = 1e-4
"""The same for convolutions: algorithms that multiply less, as Winograd's, round more."""
EPSILON: Final = 1e-5
"""The epsilon of layernorm."""


def tolerance(workload: Workload) -> float:
    """The largest error of a result that counts as right."""
    return TOLERANCE if workload.convolution is None else CONVOLUTION_TOLERANCE


def inputs(workload: Workload) -> Arrays:
    """Contiguous float32 arrays by name, the same in every process."""
    rng = np.random.default_rng(zlib.crc32(workload.name.encode()))
    if workload.convolution is not None:
        parts = workload.convolution.shapes
        return {name: rng.uniform(-1, 1, shape).astype("f4") for name, shape in parts.items()}
    shapes: dict[str, tuple[int, ...]]
    match workload.op:
        case "matmul" | "batched":
            *batch, m, n, k = workload.shape
            shapes = {"a": (*batch, m, k), "b": (*batch, k, n)}
        case "layernorm" | "chain":
            shapes = {"x": workload.shape, "s": workload.shape[1:], "b": workload.shape[1:]}
        case "attention":
            items, heads, queries, keys, features = workload.shape
            shapes = dict.fromkeys(("K", "V"), (items, heads, keys, features))
            shapes["Q"] = (items, heads, queries, features)
        case "trace":
            shapes = {}
        case _:
            shapes = {"x": workload.shape}
    return {name: rng.uniform(-1, 1, shape).astype("f4") for name, shape in shapes.items()}


def reference(workload: Workload, arrays: Arrays) -> Any:
    """The result as an array of float64."""
    if workload.convolution is not None:
        return workload.convolution.reference(arrays)
    wide: dict[str, Any] = {name: array.astype("f8") for name, array in arrays.items()}
    match workload.op:
        case "matmul" | "batched":
            return wide["a"] @ wide["b"]
        case "attention":
            scores = wide["Q"] @ wide["K"].swapaxes(-1, -2) / math.sqrt(workload.shape[-1])
            powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
            return powers / powers.sum(axis=-1, keepdims=True) @ wide["V"]
        case "softmax":
            e = np.exp(wide["x"] - wide["x"].max(axis=-1, keepdims=True))
            return e / e.sum(axis=-1, keepdims=True)
        case "layernorm":
            x = wide["x"] - wide["x"].mean(axis=-1, keepdims=True)
            x /= np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON)
            return x * wide["s"] + wide["b"]
        case "gelu":
            erf = np.vectorize(math.erf)(wide["x"] / math.sqrt(2))
            return 0.5 * wide["x"] * (1 + erf)
        case "chain":
            value = wide["x"]
            for op, operand in CHAIN:
                value = _CHAIN_OPS[op](value, wide.get(operand))
            return value
    raise ValueError(f"no reference for {workload.op}")


_CHAIN_OPS: dict[str, Any] = {
    "mul": lambda value, operand: value * operand,
    "add": lambda value, operand: value + operand,
    "sub": lambda value, operand: value - operand,
    "relu": lambda value, _: np.maximum(value, 0),
    "sigmoid": lambda value, _: 1 / (1 + np.exp(-value)),
}


def error_of(result: NDArray[Any], expected: NDArray[np.float64]) -> float:
    """Largest deviation relative to the largest expected value; infinite for a wrong shape."""
    if result.shape != expected.shape or result.dtype != np.float32:
        return math.inf
    deviation = float(np.abs(result - expected).max() / np.abs(expected).max())
    return deviation if math.isfinite(deviation) else math.inf
