"""Attention of onnxruntime's domain beside it: masks, caches, rotations, shared keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import tilewright
from tests.expect import raises_code
from tests.onnx.beside_ort import assert_alike, beside, node_model, onnxruntime_results
from tilewright.graph.ir import Array

pytest.importorskip("onnxruntime")

FLOAT = TensorProto.FLOAT
BATCH, HEADS, WIDTH = 2, 4, 16
SIZE = HEADS * WIDTH
LENGTH = 13
"""A size with a name."""


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(0, 1, shape).astype("f4")


def masks(rng: np.random.Generator, kind: str, queries: int, keys: int) -> Array | None:
    lengths = rng.integers(1, keys + 1, BATCH)
    starts = np.minimum(rng.integers(0, 3, BATCH), lengths - 1)
    if kind == "lengths":
        return lengths.astype("i4")
    if kind == "spans":
        return np.concatenate([lengths, starts]).astype("i4")
    if kind == "keys":
        return (np.arange(keys) < lengths[:, None]).astype("i4")
    if kind == "pairs":
        found = rng.random((BATCH, queries, keys)) < 0.7
        found[..., 0] = True
        return found.astype("i4")
    return None


@pytest.mark.parametrize("mask", ["none", "lengths", "spans", "keys", "pairs"])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(rng: np.random.Generator, mask: str, causal: int) -> None:
    x, weights, bias = normal(rng, BATCH, LENGTH, 16) / 4, normal(rng, 16, 3 * SIZE), None
    bias = normal(rng, 3 * SIZE)
    added = normal(rng, BATCH, HEADS, LENGTH, LENGTH) if rng.random() < 0.5 else None
    inputs = [x, weights, bias, masks(rng, mask, LENGTH, LENGTH), None, added]
    beside("Attention", inputs, num_heads=HEADS, unidirectional=causal, tolerance=1e-3)


@pytest.mark.parametrize("first", [False, True])
def test_attention_with_a_cache(rng: np.random.Generator, first: bool) -> None:
    x, weights, bias = normal(rng, BATCH, 3, 16) / 4, normal(rng, 16, 3 * SIZE), None
    bias = normal(rng, 3 * SIZE)
    past = None if first else normal(rng, 2, BATCH, HEADS, LENGTH, WIDTH)
    options = {"num_heads": HEADS, "unidirectional": 1, "tolerance": 1e-3}
    beside("Attention", [x, weights, bias, None, past], [FLOAT, FLOAT], **options)


def test_values_of_another_width(rng: np.random.Generator) -> None:
    widths = [SIZE, SIZE, 2 * SIZE]
    x, weights = normal(rng, BATCH, LENGTH, 16) / 4, normal(rng, 16, sum(widths))
    options = {"num_heads": HEADS, "qkv_hidden_sizes": widths, "tolerance": 1e-3}
    beside("Attention", [x, weights, normal(rng, sum(widths))], **options)


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("mask", ["none", "lengths", "keys"])
def test_quantized_attention(rng: np.random.Generator, columns: bool, mask: str) -> None:
    x = rng.integers(0, 256, (BATCH, LENGTH, 16)).astype("u1")
    weights = rng.integers(-64, 64, (16, 3 * SIZE)).astype("i1")
    scale = rng.uniform(0.01, 0.02, 3 * SIZE if columns else ()).astype("f4")
    zero = np.zeros(3 * SIZE, "i1") if columns else np.int8(0)
    inputs = [x, weights, normal(rng, 3 * SIZE), np.float32(0.01), scale]
    inputs += [masks(rng, mask, LENGTH, LENGTH), np.uint8(120), zero]
    known = [1, 2, 3, 4, 6, 7]
    beside("QAttention", inputs, known=known, num_heads=HEADS, tolerance=1e-3)


@pytest.mark.parametrize("mask", ["none", "lengths", "keys"])
@pytest.mark.parametrize("form", ["flat", "heads", "cache"])
def test_multi_head_attention(rng: np.random.Generator, mask: str, form: str) -> None:
    queries = 5
    keys = LENGTH if form != "cache" else queries
    q, k, v = normal(rng, BATCH, queries, SIZE), *normal(rng, 2, BATCH, keys, SIZE)
    bias = normal(rng, 3 * SIZE) if form == "flat" else None
    inputs: list[Any] = [q, k, v, bias]
    if form == "heads":
        inputs = [q, *normal(rng, 2, BATCH, HEADS, keys, WIDTH), None]
    total = keys + LENGTH if form == "cache" else keys
    inputs += [masks(rng, mask, queries, total), None]
    if form == "cache":
        inputs += [*normal(rng, 2, BATCH, HEADS, LENGTH, WIDTH)]
    outputs = [FLOAT] * (3 if form == "cache" else 1)
    if form == "cache" and mask == "lengths":
        inputs[4] = None
    causal = int(form == "cache")
    beside("MultiHeadAttention", inputs, outputs, num_heads=HEADS, unidirectional=causal)


@pytest.mark.parametrize("mask", ["none", "lengths", "keys", "bias"])
@pytest.mark.parametrize("causal", [0, 1])
def test_scores_of_multi_head_attention(rng: np.random.Generator, mask: str, causal: int) -> None:
    """As they are before they become shares, masks included."""
    q, k, v = normal(rng, 3, BATCH, LENGTH, SIZE)
    added = normal(rng, 1, HEADS, LENGTH, LENGTH) if mask == "bias" else None
    shape = "none" if mask == "bias" else mask
    inputs = [q, k, v, None, masks(rng, shape, LENGTH, LENGTH), added]
    options = {"num_heads": HEADS, "unidirectional": causal}
    kept = [FLOAT] * 4 if causal else [FLOAT, 0, 0, FLOAT]
    beside("MultiHeadAttention", inputs, kept, **options)


def test_scores_beside_a_cache(rng: np.random.Generator) -> None:
    q, k, v = normal(rng, 3, BATCH, 5, SIZE)
    past = normal(rng, 2, BATCH, HEADS, LENGTH, WIDTH)
    inputs = [q, k, v, None, None, None, *past]
    beside("MultiHeadAttention", inputs, [FLOAT] * 4, num_heads=HEADS, unidirectional=1, scale=0.3)


def test_lengths_and_beginnings(rng: np.random.Generator) -> None:
    """A mask that also says where samples would begin without padding."""
    q, k, v = normal(rng, 3, BATCH, LENGTH, SIZE)
    lengths = np.array([4, 9], "i4")
    begins = np.array([0, LENGTH, 2 * LENGTH], "i4")
    wanted = beside("MultiHeadAttention", [q, k, v, None, lengths], num_heads=HEADS)
    mask = np.concatenate([lengths, begins, begins])
    beside("MultiHeadAttention", [q, k, v, None, mask], wanted=wanted, num_heads=HEADS)


@pytest.mark.parametrize("option", [{"scale": 0.5}, {"is_packed_batching": 1}])
def test_options_of_rotations_that_change_nothing(
    rng: np.random.Generator, option: dict[str, Any]
) -> None:
    x, angles = normal(rng, BATCH, HEADS, LENGTH, WIDTH), normal(rng, 2, 40, WIDTH // 2)
    places = np.tile(np.arange(LENGTH), (BATCH, 1))
    beside("RotaryEmbedding", [x, places, *angles], **option)


@pytest.mark.parametrize("count", [2, 3])
def test_packed_operands(rng: np.random.Generator, count: int) -> None:
    packed = normal(rng, BATCH, LENGTH, HEADS, count, WIDTH)
    parts = [packed[..., k, :].reshape(BATCH, LENGTH, SIZE) for k in range(count)]
    q = parts[0] if count == 3 else normal(rng, BATCH, 5, SIZE)
    plain, given = [q, *parts[-2:]], [packed] if count == 3 else [q, packed]
    wanted = beside("MultiHeadAttention", plain, num_heads=HEADS)
    beside("MultiHeadAttention", given, wanted=wanted, num_heads=HEADS)


def test_attention_of_one_query(rng: np.random.Generator) -> None:
    q, k, v = normal(rng, 3, BATCH, 1, SIZE)
    past = normal(rng, 2, BATCH, HEADS, LENGTH, WIDTH)
    wanted = beside("MultiHeadAttention", [q, k, v, None, None, None, *past], [FLOAT] * 3,
                    num_heads=HEADS)  # fmt: skip
    inputs = [q, k, v, None, None, *past]
    beside("DecoderMaskedMultiHeadAttention", inputs, [FLOAT] * 3, wanted=wanted, num_heads=HEADS)


class Grouped:
    """Inputs of `GroupQueryAttention`: `past` positions for each sample in a cache of `room`."""

    def __init__(self, rng: np.random.Generator, new: int, past: list[int], room: int) -> None:
        self.new, self.past, self.room = new, past, room
        self.shared = 2
        batch = len(past)
        self.q = normal(rng, batch, new, SIZE)
        self.k, self.v = normal(rng, 2, batch, new, self.shared * WIDTH)
        self.cache = normal(rng, 2, batch, self.shared, room, WIDTH) if room else [None, None]
        self.lengths = np.array([n + new - 1 for n in past], np.int32)
        self.total = np.array(max(past) + new, np.int32)
        self.angles = normal(rng, 2, 40, WIDTH // 2)

    def inputs(self, *, packed: bool = False, rotary: bool = False) -> list[Any]:
        rows = [self.q, self.k, self.v]
        given = [np.concatenate(rows, -1), None, None] if packed else rows
        angles = list(self.angles) if rotary else []
        return [*given, *self.cache, self.lengths, self.total, *angles]

    def check(self, inputs: list[Any], **options: Any) -> None:
        """Beside onnxruntime, where caches hold something."""
        attributes = {"num_heads": HEADS, "kv_num_heads": self.shared, **options}
        model, feeds = node_model(
            "GroupQueryAttention", inputs, [FLOAT] * 3, domain="com.microsoft", **attributes
        )
        module = tilewright.compile(model, cache=False, threads=1)
        found, wanted = module.run(feeds), onnxruntime_results(model, feeds)
        assert_alike(found[0], wanted[0], 1e-3)
        for a, c in zip(found[1:], wanted[1:], strict=True):
            assert a.shape == c.shape
            for n, held in enumerate(self.lengths + 1):
                assert_alike(a[n, :, :held], c[n, :, :held])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rotary", [0, 1])
def test_grouped_prompt(rng: np.random.Generator, packed: bool, rotary: int) -> None:
    case = Grouped(rng, LENGTH, [0, 0], 0)
    interleaved = int(rng.integers(0, 2))
    case.check(
        case.inputs(packed=packed, rotary=bool(rotary)), do_rotary=rotary,
        rotary_interleaved=interleaved,
    )  # fmt: skip


@pytest.mark.parametrize("room", [9, 20])
@pytest.mark.parametrize("window", [-1, 4])
def test_grouped_step(rng: np.random.Generator, room: int, window: int) -> None:
    """One position more, of samples that have different ones; the cache may have room left."""
    case = Grouped(rng, 1, [9, 5], room)
    inputs = case.inputs(rotary=True)
    case.check(inputs, do_rotary=1, local_window_size=window, scale=0.3)


def test_grouped_steps_of_one_sample(rng: np.random.Generator) -> None:
    case = Grouped(rng, 3, [6], 6)
    case.check(case.inputs(rotary=True), do_rotary=1, softcap=2.0)


@pytest.mark.parametrize("sink", ["smooth", "heads"])
def test_grouped_sinks(rng: np.random.Generator, sink: str) -> None:
    case = Grouped(rng, 1, [9, 5], 9)
    inputs = case.inputs()
    if sink == "heads":
        inputs += [None, None, None, None, normal(rng, HEADS)]
    options = {"smooth_softmax": 1} if sink == "smooth" else {}
    case.check(inputs, **options)


@pytest.mark.parametrize("bidirectional", [0, 1])
def test_relative_position_bias(rng: np.random.Generator, bidirectional: int) -> None:
    buckets, length, furthest = 8, 40, 20
    table = normal(rng, buckets, HEADS)
    away = np.arange(length)[:, None] - np.arange(length)
    half = buckets // 2 if bidirectional else buckets
    size = np.abs(away) if bidirectional else np.maximum(away, 0)
    near = half // 2
    with np.errstate(divide="ignore"):
        far = near + np.float32(np.log(size / near) / np.log(furthest / near)) * (half - near)
    bucket = np.where(size < near, size, np.minimum(far, half - 1)).astype(int)
    bucket += np.where(away < 0, half, 0) if bidirectional else 0
    wanted = table.ravel().reshape(HEADS, buckets)[:, bucket][None]
    counts = np.array([length]), np.array([length])
    options = {"max_distance": furthest, "is_bidirectional": bidirectional}
    beside("RelativePositionBias", [table, *counts], known=[1, 2], wanted=[wanted], **options)


def test_gated_relative_position_bias(rng: np.random.Generator) -> None:
    x, bias = normal(rng, BATCH, LENGTH, SIZE), normal(rng, SIZE)
    distances, factor = normal(rng, 1, HEADS, LENGTH, LENGTH), normal(rng, 1, HEADS, 1, 1)
    weight, shift = normal(rng, WIDTH, 8), normal(rng, 8)
    query = (x + bias).reshape(BATCH, LENGTH, HEADS, WIDTH).transpose(0, 2, 1, 3)
    sums = (query @ weight + shift).reshape(BATCH, HEADS, LENGTH, 2, 4).sum(-1)
    u, r = np.moveaxis(1 / (1 + np.exp(-sums)), -1, 0)[..., None]
    wanted = (u * (r * factor - 1) + 2) * distances
    inputs = [x, bias, distances, weight, shift, factor]
    beside("GatedRelativePositionBias", inputs, wanted=[wanted.astype("f4")], num_heads=HEADS)


@pytest.mark.parametrize("unknown", ["x0", "x1"])
def test_features_that_only_the_other_operand_tells(rng: np.random.Generator, unknown: str) -> None:
    arrays = [normal(rng, 2, size, 8) for size in (3, 5, 5)]
    model, feeds = node_model(
        "MultiHeadAttention", arrays, [FLOAT], domain="com.microsoft", num_heads=2
    )
    (info,) = (i for i in model.graph.input if i.name == unknown)
    info.type.tensor_type.shape.dim[2].dim_param = "features"
    module = tilewright.compile(model, cache=False, threads=1)
    (wanted,) = onnxruntime_results(model, feeds)
    assert_alike(module.run(feeds)[0], wanted)
    with raises_code("C025"):
        module.run({**feeds, unknown: np.tile(feeds[unknown], (1, 1, 2))})
