"""The operators of onnxruntime's optimiser against formulas in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.onnx.small_models import BATCH, check_node
from tilewright.graph.ir import Array

DOMAIN = "com.microsoft"

erf = np.vectorize(math.erf)


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(0, 1, shape).astype("f4")


def gelu(x: Array) -> Array:
    return x / 2 * (1 + erf(x / math.sqrt(2)))


def fast_gelu(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def expect(op: str, inputs: list[Array], *wanted: Array, **attributes: object) -> None:
    """The outputs of an operator, rounded to f32 where they are floats."""
    rounded = [w.astype("f4") if w.dtype.kind == "f" else w for w in map(np.asarray, wanted)]
    check_node(
        op, inputs, domain=DOMAIN, outputs=len(wanted), expected=rounded, attributes=attributes
    )


def test_gelus(rng: np.random.Generator) -> None:
    x, bias = normal(rng, BATCH, 5), normal(rng, 5)
    expect("Gelu", [x], gelu(x))
    expect("BiasGelu", [x, bias], gelu(x + bias))
    expect("FastGelu", [x], fast_gelu(x))
    expect("FastGelu", [x, bias], fast_gelu(x + bias))
    expect("QuickGelu", [x], x / (1 + np.exp(-1.702 * x)))
    expect("QuickGelu", [x], x / (1 + np.exp(-0.5 * x)), alpha=0.5)


def test_fused_matmul(rng: np.random.Generator) -> None:
    x, y = normal(rng, BATCH, 4, 3), normal(rng, BATCH, 5, 4)
    wanted = 0.5 * np.swapaxes(x, 1, 2) @ np.swapaxes(y, 1, 2)
    expect("FusedMatMul", [x, y], wanted, transA=1, transB=1, alpha=0.5)


@pytest.mark.parametrize("activation", ["Relu", "Tanh", "Sigmoid", "LeakyRelu"])
def test_fused_gemm(rng: np.random.Generator, activation: str) -> None:
    x, y, c = normal(rng, BATCH, 4), normal(rng, 4, 3), normal(rng, 3)
    plain = x @ y + c
    wanted = {
        "Relu": np.maximum(plain, 0),
        "Tanh": np.tanh(plain),
        "Sigmoid": 1 / (1 + np.exp(-plain)),
        "LeakyRelu": np.where(plain < 0, 0.25 * plain, plain),
    }[activation]
    expect("FusedGemm", [x, y, c], wanted, activation=activation, activation_alpha=0.25)


def standardised(x: Array) -> Array:
    wide = x.astype("f8")
    return (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)


def test_skip_layer_normalization(rng: np.random.Generator) -> None:
    x, skip = normal(rng, 2, BATCH, 3, 8)
    scale, shift, bias = normal(rng, 3, 8)
    total = x + skip + bias
    statistics = [total.mean(-1, keepdims=True), 1 / np.sqrt(total.var(-1, keepdims=True) + 1e-5)]
    wanted = standardised(total) * scale + shift
    inputs = [x, skip, scale, shift, bias]
    expect("SkipLayerNormalization", inputs, wanted, *statistics, total, epsilon=1e-5)
    expect("SkipLayerNormalization", inputs[:3], standardised(x + skip) * scale, epsilon=1e-5)


def test_simplified_layer_normalizations(rng: np.random.Generator) -> None:
    x, skip = normal(rng, 2, BATCH, 3, 8)
    scale, bias = normal(rng, 2, 8)
    total = x + skip + bias
    wanted = total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-5) * scale
    inputs = [x, skip, scale, bias]
    expect("SkipSimplifiedLayerNormalization", inputs, wanted, epsilon=1e-5)
    plain = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale
    expect("SimplifiedLayerNormalization", [x, scale], plain, epsilon=1e-5)


@pytest.mark.parametrize("placed", [False, True])
def test_embed_layer_normalization(rng: np.random.Generator, placed: bool) -> None:
    tokens, kinds = rng.integers(0, 9, (BATCH, 4)), rng.integers(0, 2, (BATCH, 4))
    words, positions, segments = normal(rng, 9, 8), normal(rng, 6, 8), normal(rng, 2, 8)
    scale, shift = normal(rng, 2, 8)
    mask = (rng.random((BATCH, 4)) < 0.5).astype("i4")
    places = rng.integers(0, 6, (BATCH, 4)) if placed else np.arange(4)[None]
    total = words[tokens] + positions[places] + segments[kinds]
    wanted = standardised(total) * scale + shift
    inputs = [tokens.astype("i4"), kinds.astype("i4"), words, positions, segments, scale, shift]
    inputs += [mask, places.astype("i4")] if placed else [mask]
    lengths = mask.sum(1).astype("i4")
    expect("EmbedLayerNormalization", inputs, wanted, lengths, total, epsilon=1e-5)


def test_quantized_products_as_floats(rng: np.random.Generator) -> None:
    x, y = rng.integers(0, 256, (BATCH, 5)).astype("u1"), rng.integers(0, 256, (5, 3)).astype("u1")
    scales, zeros, bias = np.float32([0.1, 0.02]), np.uint8([7, 120]), normal(rng, 3)
    total = (x.astype("i4") - 7) @ (y.astype("i4") - 120)
    inputs = [x, y, *scales, *zeros, bias]
    expect("MatMulIntegerToFloat", inputs, total * (scales[0] * scales[1]) + bias)
    expect("MatMulIntegerToFloat", inputs[:6], total * (scales[0] * scales[1]))


def test_dynamically_quantized_product(rng: np.random.Generator) -> None:
    x, y = normal(rng, BATCH, 5), rng.integers(0, 256, (5, 3)).astype("u1")
    scale = np.float32((max(x.max(), 0) - min(x.min(), 0)) / 255)
    zero = np.rint(-min(x.min(), 0) / scale)
    small = np.clip(np.rint(x / scale) + zero, 0, 255) - zero
    wanted = small @ (y.astype("f8") - 120) * scale * 0.25
    expect("DynamicQuantizeMatMul", [x, y, np.float32(0.25), np.uint8(120)], wanted)


@pytest.mark.parametrize("dtype", ["u1", "i1"])
def test_quantized_arithmetic(rng: np.random.Generator, dtype: str) -> None:
    limits = np.iinfo(dtype)
    x, y = rng.integers(limits.min, limits.max, (2, BATCH, 5)).astype(dtype)
    scales, zeros = np.float32([0.125, 0.0625, 0.5]), np.array([3, 20, 40], dtype)
    a = (x.astype("f8") - 3) * 0.125
    c = (y.astype("f8") - 20) * 0.0625

    def small(value: Array) -> Array:
        return np.clip(np.rint(value / 0.5) + 40, limits.min, limits.max).astype(dtype)

    inputs = [x, scales[0], zeros[0], y, scales[1], zeros[1], scales[2], zeros[2]]
    expect("QLinearAdd", inputs, small(a + c))
    expect("QLinearMul", inputs, small(a * c))
    single = [x, scales[0], zeros[0], scales[2], zeros[2]]
    expect("QLinearLeakyRelu", single, small(np.where(a < 0, 0.25 * a, a)), alpha=0.25)
    expect("QLinearSigmoid", single, small(1 / (1 + np.exp(-a))))
