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
