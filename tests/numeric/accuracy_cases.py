"""Operators on hard inputs with their exact results, in the units of `tilewright.testing.accuracy`.

A case is a model of one operator and arrays for it; `error` is that of a result, in units. Inputs
are ordinary numbers, numbers of very different sizes, sums that cancel, and for elementwise
operators also subnormal numbers and zeros of both signs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.graph.ir import Graph
from tilewright.graph.ops.winograd import WinogradConv
from tilewright.graph.sizes import sized
from tilewright.testing.accuracy import FUNCTION_OPS, worst

Array = np.ndarray[Any, Any]
U = 2.0**-24
TINY = float(np.finfo(np.float32).tiny)
OPSET = 23
TERMS = 4999


@dataclass(frozen=True)
class Case:
    """`exact` gives the exact result and the unit of each of its elements."""

    family: str
    name: str
    op: str
    inputs: Mapping[str, Array]
    exact: Callable[..., tuple[Array, Array]]
    weights: Mapping[str, Array] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    direct: Callable[..., tuple[Array, Array]] | None = None
    """The same with the unit of a direct sum, for convolutions that Winograd may compute."""

    def model(self) -> onnx.ModelProto:
        names = [*self.inputs, *self.weights]
        node = helper.make_node(self.op, names, ["y"], **self.attributes)
        graph = helper.make_graph(
            [node],
            "case",
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)
                for name, array in self.inputs.items()
            ],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        imports = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)

    def error(self, found: Array, factor: float | None = None) -> float:
        """The largest error of a result in units; infinite if what is not finite differs.

        By Winograd's algorithm units are `factor` times as large: see `factor_of`.
        """
        with np.errstate(all="ignore"):
            exact, unit = self.judged(direct=factor is None)
            rounded = exact.astype(np.float32)
            finite = np.isfinite(rounded)
            if not np.array_equal(found[~finite], rounded[~finite], equal_nan=True):
                return math.inf
            errors = np.abs(found[finite] - exact[finite]) / (unit[finite] * (factor or 1))
        return float(errors.max(initial=0)) if not np.isnan(errors).any() else math.inf

    def relative(self, found: Array) -> float:
        """The largest error relative to the largest finite result."""
        with np.errstate(all="ignore"):
            exact, _ = self.judged()
            finite = np.isfinite(exact.astype(np.float32))
            error = np.abs(found[finite] - exact[finite]).max()
        return float(error / np.abs(exact[finite]).max())

    def judged(self, *, direct: bool = False) -> tuple[Array, Array]:
        """The exact result and the unit of the error."""
        arrays = [a.astype(np.longdouble) for a in (*self.inputs.values(), *self.weights.values())]
        return (self.direct if direct and self.direct else self.exact)(*arrays)


def factor_of(graph: Graph) -> float | None:
    """What Winograd's algorithm contributes to the unit of an error; None: a graph is without it.

    Whether it pays depends on the machine.
    """
    for node in graph.nodes:
        weights = sized(node.inputs[1].shape) if isinstance(node.op, WinogradConv) else None
        if weights is not None:
            return worst(node.op.tiles, weights[-2])
    return None


def ulp(exact: Array) -> Array:
    """The distance of floats at a result."""
    below = np.nextafter(np.float32(np.finfo(np.float32).max), np.float32(0))
    with np.errstate(over="ignore"):
        return np.spacing(np.minimum(np.abs(exact).astype(np.float32), below))


def wide(rng: np.random.Generator, shape: tuple[int, ...], decades: float = 6) -> Array:
    """Numbers of both signs whose sizes differ by many powers of ten."""
    sizes = 10.0 ** rng.uniform(-decades, decades, shape)
    return (sizes * rng.choice([-1.0, 1.0], shape)).astype(np.float32)


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers of one sign, so that partial sums grow."""
    return rng.uniform(0.5, 1, shape).astype(np.float32)


def cancelling(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Rows of which all but a little cancels out."""
    half = wide(rng, (*shape[:-1], shape[-1] // 2), 3)
    rest = normal(rng, (*shape[:-1], shape[-1] - 2 * half.shape[-1]))
    return rng.permuted(np.concatenate([half, -half, rest], axis=-1), axis=-1)


def edges() -> Array:
    """Zeros of both signs, subnormal and least normal numbers, ones and large numbers."""
    small = [0.0, 2.0**-149, 3 * 2.0**-149, 1e-40, TINY / 2, TINY]
    sizes = np.array([*small, 1e-20, 0.5, 1.0, 1.5, 3.0, 17.0, 1e10, 1e30, 3e38])
    return np.concatenate([sizes, -sizes]).astype(np.float32)


def cases() -> Iterator[Case]:
    """All of them, the same in every process."""
    rng = np.random.default_rng(20)
    yield from _elementwise(rng)
    yield from _sums(rng)
    yield from _windows(rng)
    yield from _rows(rng)
    yield from _attention(rng)


def _elementwise(rng: np.random.Generator) -> Iterator[Case]:
    x = np.concatenate([edges(), normal(rng, (2000,)), wide(rng, (2000,), 37)])
    y = rng.permutation(x)
    zeros = np.float32([0.0, -0.0, 0.0, -0.0]), np.float32([0.0, 0.0, -0.0, -0.0])
    x, y = (np.concatenate(pair) for pair in zip(zeros, (x, y), strict=True))
    pairs: dict[str, Any] = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
    pairs |= {"Div": np.divide, "Max": np.maximum, "Min": np.minimum}
    for op, meaning in pairs.items():
        exact = _by_ulp(meaning)
        yield Case("arithmetic", "all sizes", op, {"x": x, "z": y}, exact)
    single: dict[str, Any] = {"Sqrt": np.sqrt, "Neg": np.negative, "Abs": np.abs}
    single |= {"Relu": lambda v: np.maximum(v, 0), "Round": np.round}
    single |= {"Floor": np.floor, "Ceil": np.ceil}
    for op, meaning in single.items():
        yield Case("arithmetic", "all sizes", op, {"x": x}, _by_ulp(meaning))
    from tilewright.tensor.functions import FUNCTIONS

    for op, name in FUNCTION_OPS.items():
        meaning = FUNCTIONS[name].evaluate
        yield Case(op, "all sizes", op, {"x": x}, _by_ulp(meaning))


def _by_ulp(meaning: Callable[..., Any]) -> Callable[..., tuple[Array, Array]]:
    def exact(*arrays: Array) -> tuple[Array, Array]:
        values = np.asarray(meaning(*arrays))
        return values, ulp(values)

    return exact


def _sums(rng: np.random.Generator) -> Iterator[Case]:
    kinds = {"ordinary": normal, "wide range": wide, "cancelling": cancelling}
    for kind, make in kinds.items():
        x = make(rng, (7, TERMS))
        attributes = {"keepdims": 0, "noop_with_empty_axes": 0}
        axes = {"axes": np.array([1])}
        for op in ("ReduceSum", "ReduceMean"):
            divisor = 1 if op == "ReduceSum" else TERMS

            def total(x: Array, *_: Array, divisor: int = divisor) -> tuple[Array, Array]:
                return x.sum(1) / divisor, U * x.shape[1] * np.abs(x).sum(1) / divisor + 2**-150

            yield Case("sum", f"{TERMS} terms, {kind}", op, {"x": x}, total, axes, attributes)
        for k in (64, 8192):
            a, b = make(rng, (13, k)), make(rng, (k, 33))
            yield Case("sum", f"{k} terms, {kind}", "MatMul", {"a": a}, _product, {"b": b})
        weights = {"b": make(rng, (300, 33)), "c": make(rng, (33,))}
        yield Case(
            "sum", f"301 terms, {kind}", "Gemm", {"a": make(rng, (13, 300))}, _biased, weights
        )


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    return a @ b, U * a.shape[-1] * (np.abs(a) @ np.abs(b)) + TINY * U


def _biased(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    return a @ b + c, U * (a.shape[-1] + 1) * (np.abs(a) @ np.abs(b) + np.abs(c))


def _windows(rng: np.random.Generator) -> Iterator[Case]:
    kinds = {"ordinary": normal, "wide range": wide, "positive": positive}
    pads = {"pads": [1, 1, 1, 1]}
    for channels, side in ((16, 40), (64, 20), (256, 6)):  # 4×4 results of a tile, and 2×2
        for kind, make in kinds.items():
            x, w = make(rng, (1, channels, side, side)), make(rng, (64, channels, 3, 3))
            name = f"3×3 of {channels} channels, {kind}"
            yield Case(
                "winograd", name, "Conv", {"x": x}, _by_largest, {"w": w}, pads, _convolution
            )
    for kind, make in kinds.items():
        x = make(rng, (1, 64, 20, 20))
        averaged = {"kernel_shape": [4, 4]}
        yield Case("sum", f"4×4, {kind}", "AveragePool", {"x": x}, _averages, {}, averaged)
        v = normal(rng, (24, 64, 3, 3))
        attributes = {**pads, "strides": [2, 2]}
        name = f"3×3 stride 2, {kind}"
        yield Case(
            "sum", name, "Conv", {"x": x}, _strided_by_largest, {"w": v}, attributes, _strided
        )


def _convolution(x: Array, w: Array, stride: int = 1) -> tuple[Array, Array]:
    """A direct convolution with a border of one, in double precision."""
    wide_x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (1, 1), (1, 1)])
    views = np.lib.stride_tricks.sliding_window_view(wide_x, (3, 3), (2, 3))
    views = views[:, :, ::stride, ::stride]
    wide_w = w.astype(np.float64)
    values = np.einsum("ncyxij,ocij->noyx", views, wide_w, optimize=True)
    sizes = np.einsum("ncyxij,ocij->noyx", np.abs(views), np.abs(wide_w), optimize=True)
    return values, U * w[0].size * sizes


def _strided(x: Array, w: Array) -> tuple[Array, Array]:
    return _convolution(x, w, 2)


def _averages(x: Array) -> tuple[Array, Array]:
    views = np.lib.stride_tricks.sliding_window_view(x, (4, 4), (2, 3))
    return views.mean((-1, -2)), U * 16 * np.abs(views).mean((-1, -2))


def _strided_by_largest(x: Array, w: Array) -> tuple[Array, Array]:
    return _by_largest(x, w, 2)


def _by_largest(x: Array, w: Array, stride: int = 1) -> tuple[Array, Array]:
    values, _ = _convolution(x, w, stride)
    largest = float(np.abs(x).max() * np.abs(w).sum((1, 2, 3)).max())
    return values, np.full_like(values, U * largest)


def _rows(rng: np.random.Generator) -> Iterator[Case]:
    inputs = {
        "ordinary": normal(rng, (9, 1000)),
        "large": normal(rng, (9, 1000)) * np.float32(30),
        "far from zero": normal(rng, (9, 1000)) + np.float32(1000),
    }
    for kind, x in inputs.items():
        yield Case("softmax", f"1000, {kind}", "Softmax", {"x": x}, _softmax, {}, {"axis": -1})
        weights = {"scale": normal(rng, (1000,)), "bias": normal(rng, (1000,))}
        yield Case(
            "normalisation", f"1000, {kind}", "LayerNormalization", {"x": x}, _normalised, weights
        )
        weights = {"scale": weights["scale"]}
        yield Case("normalisation", f"1000, {kind}", "RMSNormalization", {"x": x}, _by_rms, weights)


def _softmax(x: Array) -> tuple[Array, Array]:
    away = x - x.max(-1, keepdims=True)
    e = np.exp(away)
    y = e / e.sum(-1, keepdims=True)
    return y, U * y * (x.shape[-1] + np.abs(away)) + TINY


def _normalised(x: Array, scale: Array, bias: Array) -> tuple[Array, Array]:
    away = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((away * away).mean(-1, keepdims=True) + 1e-5)
    y = away / deviation
    largest = np.abs(x).max(-1, keepdims=True) / deviation
    return y * scale + bias, U * x.shape[-1] * np.abs(scale) * (largest + np.abs(y)) + U


def _by_rms(x: Array, scale: Array) -> tuple[Array, Array]:
    size = np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    y = x / size
    largest = np.abs(x).max(-1, keepdims=True) / size
    return y * scale, U * x.shape[-1] * np.abs(scale) * (largest + np.abs(y))


def _attention(rng: np.random.Generator) -> Iterator[Case]:
    for kind, size in {"ordinary": 1.0, "sharp": 6.0}.items():
        q, k = (normal(rng, (1, 2, n, 32)) * np.float32(size) for n in (37, 300))
        v = wide(rng, (1, 2, 300, 32), 3)
        inputs = {"q": q, "k": k, "v": v}
        yield Case("attention", f"300 keys, {kind}", "Attention", inputs, _attended)


def _attended(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
    d = q.shape[-1]
    scale = 1 / np.sqrt(np.longdouble(d))
    scores = q @ k.swapaxes(-1, -2) * scale
    sizes = float((np.abs(q) @ np.abs(k).swapaxes(-1, -2)).max() * scale)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True) @ v
    return y, np.full_like(y, U * (k.shape[-2] + d * sizes) * float(np.abs(v).max()))
