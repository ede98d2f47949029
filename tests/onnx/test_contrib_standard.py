"""Operators of onnxruntime's domain that are near the standard's: beside it, or beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

import tilewright
from tests.onnx.beside_ort import assert_alike, beside, node_model, onnxruntime_results
from tilewright.graph.ir import Array

pytest.importorskip("onnxruntime")

FLOAT, DOUBLE, INT64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64
MICROSOFT = "com.microsoft"
N = 11
"""A size with a name."""


def normal(rng: np.random.Generator, *shape: int, dtype: str = "f4") -> Array:
    return rng.normal(0, 1, shape).astype(dtype)


def test_parts_and_borders(rng: np.random.Generator) -> None:
    x = normal(rng, N, 5)
    beside("Trilu", [x, np.array(1)], known=[1], upper=0)
    beside("Pad", [x, np.array([0, 1, 0, 2]), np.float32(3)], known=[1, 2])
    beside("Pad", [x, np.array([[0, 1, 0, 2]])], known=[1], mode="edge")
    beside("ExpandDims", [x, np.int32(-2)], known=[1])
    beside("GatherND", [x, rng.integers(0, N, (4, 1))])
    beside("UnfoldTensor", [normal(rng, N, 9)], wanted=None, dim=1, size=3, step=2)


def test_range(rng: np.random.Generator) -> None:
    start = float(rng.integers(-5, 0))
    values = [np.float32(start), np.float32(7), np.float32(1.5)]
    beside("Range", values, known=[0, 1, 2])
    beside("Range", [np.int64(-3), np.int64(4)], [INT64])


def test_grid_sample(rng: np.random.Generator) -> None:
    x, grid = normal(rng, N, 3, 6, 7), rng.uniform(-1.2, 1.2, (N, 4, 5, 2)).astype("f4")
    beside("GridSample", [x, grid], align_corners=1, mode="bilinear", padding_mode="border")


@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("known", ["all", "weights", "state"])
def test_causal_convolution(rng: np.random.Generator, activation: str, known: str) -> None:
    inputs = [normal(rng, N, 4, 13), normal(rng, 4, 1, 3), normal(rng, 4), normal(rng, N, 4, 2)]
    if known == "weights":
        inputs = inputs[:2]
    elif known == "state":
        inputs[2] = None
    beside("CausalConvWithState", inputs, [FLOAT, FLOAT], activation=activation)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("heads", [2, 4])
def test_linear_attention(rng: np.random.Generator, rule: str, heads: int) -> None:
    """Queries may have more heads than keys; decay and steps where the rule has them."""
    size, length = 4, 5
    q, k, v = (normal(rng, 2, length, n * size) / 2 for n in (heads, 2, 2))
    decay = -np.abs(normal(rng, 2, length, 2)) if "gated" in rule else None
    beta = 1 / (1 + np.exp(normal(rng, 2, length, 2))) if "delta" in rule else None
    for past in (None, normal(rng, 2, 2, size, size)):
        inputs = [q, k, v, past, decay, beta]
        options = {"update_rule": rule, "q_num_heads": heads, "kv_num_heads": 2}
        beside("LinearAttention", inputs, [FLOAT, FLOAT], **options)


def test_unique_in_order(rng: np.random.Generator) -> None:
    beside("Unique", [rng.integers(0, 6, N).astype("f4")], [FLOAT, INT64, INT64])


@pytest.mark.parametrize("size", [8, 60])
def test_real_fourier(rng: np.random.Generator, size: int) -> None:
    x = normal(rng, N, size)
    spectrum = np.fft.rfft(x)
    parts = np.stack([spectrum.real, spectrum.imag], -1).astype("f4")
    beside("Rfft", [x], wanted=[parts], tolerance=1e-3, signal_ndim=1, onesided=1)
    beside("Irfft", [parts], wanted=[x], tolerance=1e-3, signal_ndim=1, onesided=1)


def test_embedding(rng: np.random.Generator) -> None:
    table, places = normal(rng, 9, 4), rng.integers(0, 9, (N, 3))
    beside("TorchEmbedding", [table, places], wanted=[table[places]])


@pytest.mark.parametrize("bad", [1.0, np.inf, np.nan])
def test_is_all_finite(rng: np.random.Generator, bad: float) -> None:
    parts = [normal(rng, N, 3), normal(rng, 4)]
    parts[0][2, 1] = bad
    for options, wrong in (({}, ~np.isfinite(bad)), ({"isnan_only": 1}, np.isnan(bad))):
        wanted = np.asarray(~np.bool_(wrong))
        beside("IsAllFinite", parts, [TensorProto.BOOL], wanted=[wanted], **options)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_distances(rng: np.random.Generator, metric: str, dtype: str) -> None:
    x, y = normal(rng, N, 5, dtype=dtype), normal(rng, 13, 5, dtype=dtype)
    kind = FLOAT if dtype == "f4" else DOUBLE
    beside("CDist", [x, y], [kind], tolerance=1e-3, metric=metric)


@pytest.mark.parametrize("op", ["ComplexMul", "ComplexMulConj"])
def test_complex_products(rng: np.random.Generator, op: str) -> None:
    x, y = normal(rng, N, 3, 2), normal(rng, N, 3, 2)
    a, c = (v[..., 0] + 1j * v[..., 1] for v in (x, y))
    found = a * (c if op == "ComplexMul" else c.conj())
    beside(op, [x, y], wanted=[np.stack([found.real, found.imag], -1).astype("f4")])


@pytest.mark.parametrize("size", [1, 4, 20])
def test_inverse(rng: np.random.Generator, size: int) -> None:
    x = normal(rng, N, 2, size, size, dtype="f8")
    beside("Inverse", [x], [DOUBLE])


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u4", "u8"])
@pytest.mark.parametrize("positive", [0, 1])
def test_murmur_hash(rng: np.random.Generator, dtype: str, positive: int) -> None:
    x = (rng.normal(size=(N, 3)) * 1e6).astype("i8").astype(dtype)
    kind = TensorProto.UINT32 if positive else TensorProto.INT32
    beside("MurmurHash3", [x], [kind], positive=positive, seed=17)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_repeated_runs_are_blocked(rng: np.random.Generator, size: int) -> None:
    tokens, scores = rng.integers(0, 3, (N, 13)), normal(rng, N, 6)
    beside("NGramRepeatBlock", [tokens, scores], ngram_size=size)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_crop_and_resize(rng: np.random.Generator, mode: str) -> None:
    x = normal(rng, 2, 3, 8, 9)
    boxes = rng.uniform(-0.2, 1.2, (N, 4)).astype("f4")
    images = rng.integers(0, 2, N).astype("i4")
    inputs = [x, boxes, images, np.array([4, 5], np.int32)]
    beside("CropAndResize", inputs, known=[3], mode=mode, extrapolation_value=0.5)


@pytest.mark.parametrize("length", [0, 1, 2, 3])
@pytest.mark.parametrize("is_known", [False, True])
def test_texts_may_be_shorter_than_a_run(
    rng: np.random.Generator, length: int, is_known: bool
) -> None:
    tokens, scores = rng.integers(0, 3, (N, length)), normal(rng, N, 6)
    model, feeds = node_model(
        "NGramRepeatBlock", [tokens, scores], [FLOAT], domain=MICROSOFT, ngram_size=4
    )
    if not is_known:
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "length"
    (found,) = tilewright.compile(model, cache=False, threads=1).run(feeds)
    np.testing.assert_array_equal(found, scores)


PARAMETERS = {
    "Pad": lambda rng: [normal(rng, N, 3), np.array([0, 1, 0, 2])],
    "ExpandDims": lambda rng: [normal(rng, N, 3), np.array(1, np.int32)],
    "CropAndResize": lambda rng: [
        normal(rng, 2, 3, 6, 6),
        abs(normal(rng, 2, 4)),
        np.array([0, 1], np.int32),
        np.array([3, 3], np.int32),
    ],
}


@pytest.mark.parametrize("op", PARAMETERS)
def test_parameters_may_be_inputs(rng: np.random.Generator, op: str) -> None:
    beside(op, PARAMETERS[op](rng))


def test_parameters_may_change_as_often_as_they_like(rng: np.random.Generator) -> None:
    """In the end by the meaning of the node: nothing else could run it without them."""
    model, feeds = node_model(
        "CropAndResize", PARAMETERS["CropAndResize"](rng), [FLOAT], domain=MICROSOFT
    )
    module = tilewright.compile(model, cache=False, threads=1)
    sizes = [{**feeds, "x3": np.array([k, 2], np.int32)} for k in range(1, 21)]
    with pytest.warns(tilewright.TilewrightWarning, match="which keep changing"):
        found = [module.run(given) for given in sizes]
    for given, results in zip(sizes, found, strict=True):
        assert_alike(results[0], onnxruntime_results(model, given)[0])
    assert len(module.by_reference) == 2


def test_borders_may_change_as_often_as_they_like(rng: np.random.Generator) -> None:
    """Native code for all that comes, once enough of them have been compiled for."""
    x = normal(rng, N, 3)
    model, _ = node_model("Pad", [x, np.zeros(4, np.int64)], [FLOAT], domain=MICROSOFT)
    module = tilewright.compile(model, cache=False, threads=1)
    for k in range(20):
        (y,) = module.run({"x0": x, "x1": np.array([0, k, 0, 0])})
        np.testing.assert_array_equal(y, np.pad(x, [(0, 0), (k, 0)]))
    assert not module.by_reference
