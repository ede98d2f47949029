"""Quantised LSTMs and mixtures of experts of onnxruntime's domain, beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.onnx.beside_ort import beside
from tilewright.graph.ir import Array

pytest.importorskip("onnxruntime")

FLOAT = TensorProto.FLOAT
TIME, BATCH, INPUTS, HIDDEN = 13, 3, 6, 8
FLIPPED = 2e-2
"""A state that is rounded the other way changes what follows: either engine is as far as this from
the LSTM that is not quantised."""


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(0, 1, shape).astype("f4")


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("columns", [False, True])
def test_quantized_lstm(rng: np.random.Generator, direction: str, columns: bool) -> None:
    ways, gates = 2 if direction == "bidirectional" else 1, 4 * HIDDEN

    def weights(rows: int) -> tuple[Array, Array, Array]:
        values = rng.integers(-64, 64, (ways, rows, gates)).astype("i1")
        shape = (ways, gates) if columns else (ways,)
        return values, rng.uniform(0.005, 0.01, shape).astype("f4"), np.zeros(shape, "i1")

    (w, w_scale, w_zero), (r, r_scale, r_zero) = weights(INPUTS), weights(HIDDEN)
    optional = [
        v if rng.random() < 0.5 else None
        for v in (
            normal(rng, ways, 8 * HIDDEN),
            rng.integers(1, TIME, BATCH).astype("i4"),
            normal(rng, ways, BATCH, HIDDEN),
            normal(rng, ways, BATCH, HIDDEN),
        )
    ]
    x = normal(rng, TIME, BATCH, INPUTS)
    inputs = [x, w, r, *optional, None, w_scale, w_zero, r_scale, r_zero]
    options = {"hidden_size": HIDDEN, "direction": direction, "tolerance": FLIPPED}
    beside("DynamicQuantizeLSTM", inputs, [FLOAT] * 3, known=[1, 2, 8, 9, 10, 11], **options)


def experts(
    rng: np.random.Generator, x: Array, router: Array, k: int, **options: Any
) -> tuple[list[Any], Array]:
    """The weights of four experts, and what they give."""
    width, fused = 5, options.get("swiglu_fusion", 0)
    first, first_bias = normal(rng, 4, width * (2 if fused else 1), 8), None
    first_bias = normal(rng, *first.shape[:2])
    second, second_bias = normal(rng, 4, 8, width), normal(rng, 4, 8)
    inside = np.einsum("tk,ejk->etj", x.reshape(-1, 8), first) + first_bias[:, None]
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    if fused:
        g, v = (inside[..., ::2], inside[..., 1::2]) if fused == 1 else np.split(inside, 2, -1)
        g, v = np.minimum(g, 1.5), np.clip(v, -1.5, 1.5)
        inside = g * sigmoid(1.7 * g) * (v + 1)
    else:
        inside = np.maximum(inside, 0) if options["activation_type"] == "relu" else inside
        inside = inside * sigmoid(inside) if options["activation_type"] == "silu" else inside
    results = np.einsum("etk,ejk->etj", inside, second) + second_bias[:, None]
    chances = np.exp(router) / np.exp(router).sum(1, keepdims=True)
    shares = np.where(chances >= np.sort(chances)[:, [-k]], chances, 0)
    if options.get("normalize_routing_weights"):
        shares = shares / shares.sum(1, keepdims=True)
    wanted = np.einsum("te,etj->tj", shares, results).reshape(x.shape)
    return [first, first_bias, second, second_bias], wanted.astype("f4")


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("form", ["relu", "silu", "swiglu 1", "swiglu 2"])
def test_mixture_of_experts(rng: np.random.Generator, k: int, form: str) -> None:
    x, router = normal(rng, 2, 13, 8), normal(rng, 26, 4)
    name, _, fusion = form.partition(" ")
    options: dict[str, Any] = {"activation_type": name, "k": k, "normalize_routing_weights": k - 1}
    if fusion:
        options |= {"swiglu_fusion": int(fusion), "swiglu_limit": 1.5}
        options |= {"activation_alpha": 1.7, "activation_beta": 1.0}
    weights, wanted = experts(rng, x, router, **options)
    beside("MoE", [x, router, *weights], wanted=[wanted], tolerance=1e-3, **options)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("form", ["plain", "zeros", "gated"])
def test_quantized_mixture_of_experts(
    rng: np.random.Generator, bits: int, block: int, form: str
) -> None:
    experts, hidden, inner, tokens = 4, 32, 64, 13
    options: dict[str, Any] = {"k": 2, "expert_weight_bits": bits, "activation_type": "relu"}
    options |= {"block_size": block} if block else {}
    if form == "gated":
        options |= {"activation_type": "swiglu", "swiglu_fusion": 1, "swiglu_limit": 7.0}
        options |= {"activation_alpha": 1.702, "activation_beta": 1.0}

    def layer(rows: int, columns: int) -> tuple[Array, Array, Array, Array | None]:
        packed = rng.integers(0, 256, (experts, rows, columns * bits // 8)).astype("u1")
        shape = (experts, rows, columns // block) if block else (experts, rows)
        zeros = rng.integers(0, 256, (*shape[:-1], shape[-1] * bits // 8)).astype("u1")
        scales = rng.uniform(0.001, 0.01, shape).astype("f4") * 2.0 ** (4 - bits)
        bias = normal(rng, experts, rows)
        return packed, scales.astype("f4"), bias, zeros if form == "zeros" else None

    first = layer(2 * inner if form == "gated" else inner, hidden)
    second = layer(hidden, inner)
    inputs: list[Any] = [normal(rng, tokens, hidden), normal(rng, tokens, experts)]
    inputs += [*first[:3], *second[:3]]
    if form == "zeros":
        inputs += [None, None, None, first[3], second[3]]
    known = [k for k, v in enumerate(inputs) if k > 1 and v is not None]
    # Engines may round the activations to 8 bits on the way, and onnxruntime does for some blocks.
    beside("QMoE", inputs, known=known, tolerance=1e-2, **options)


@pytest.mark.parametrize("segments", [False, True])
def test_quantized_embeddings(rng: np.random.Generator, segments: bool) -> None:
    tokens, kinds = (rng.integers(0, n, (BATCH, TIME)).astype("i4") for n in (9, 2))
    tables = [rng.integers(0, 256, (n, 16)).astype("u1") for n in (9, 20, 2)]
    norms = [rng.integers(0, 256, 16).astype("u1") for _ in range(2)]
    steps = [np.float32(0.02 + 0.01 * k) for k in range(5)]
    zeros = [np.uint8(100 + k) for k in range(5)]
    mask = (rng.random((BATCH, TIME)) < 0.5).astype("i4")
    if not segments:
        tables[2] = steps[2] = zeros[2] = kinds = None  # type: ignore[assignment,call-overload]
    inputs = [tokens, kinds, *tables, *norms, mask, *steps, *zeros]
    known = [k for k, v in enumerate(inputs) if k > 7 and v is not None]
    outputs = [FLOAT, TensorProto.INT32]
    beside("QEmbedLayerNormalization", inputs, outputs, known=known, tolerance=1e-3, epsilon=1e-5)
