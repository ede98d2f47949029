"""Dimensions without names: what must be equal is checked when a model runs, not refused before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import tilewright
from tests.expect import raises_code
from tests.onnx.beside_ort import assert_alike, node_model, onnxruntime_results
from tilewright.graph.ir import Array

pytest.importorskip("onnxruntime")

MICROSOFT = "com.microsoft"
FLOAT = TensorProto.FLOAT


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(0, 1, shape).astype("f4")


def nameless(
    op: str, inputs: Sequence[Any], free: Mapping[int, Sequence[int]], outputs: int, **options: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one node; `free` are the dimensions of its inputs that have no size."""
    model, feeds = node_model(op, inputs, [FLOAT] * outputs, **options)
    for info in model.graph.input:
        for axis in free.get(int(info.name.removeprefix("x")), ()):
            info.type.tensor_type.shape.dim[axis].Clear()
    return model, feeds


def checked(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> tilewright.Module:
    """The module, whose results are those of onnxruntime and native."""
    module = tilewright.compile(model, cache=False, threads=1)
    assert module.by_reference == ()
    for found, wanted in zip(module.run(feeds), onnxruntime_results(model, feeds), strict=True):
        assert_alike(found, wanted)
    return module


def shorter(array: Array, axis: int) -> Array:
    return np.delete(array, 0, axis)


def refuses(module: tilewright.Module, feeds: Mapping[str, Array], *cuts: tuple[str, int]) -> None:
    """Sizes that do not fit together end in an error, and in nothing else."""
    for name, axis in cuts:
        with raises_code("C025"):
            module.run({**feeds, name: shorter(feeds[name], axis)})


def test_attention_of_the_standard(rng: np.random.Generator) -> None:
    operands = [normal(rng, 2, 2, 5, 8), normal(rng, 2, 2, 7, 8), normal(rng, 2, 2, 7, 8)]
    free = dict.fromkeys(range(3), (0, 2))
    model, feeds = nameless("Attention", operands, free, 1, domain="", standard=23, version=23)
    del model.opset_import[1:]
    model.ir_version = 11
    module = checked(model, feeds)
    refuses(module, feeds, ("x0", 0), ("x1", 0), ("x1", 2), ("x2", 0), ("x2", 2))


def test_heads_of_unequal_numbers_are_refused_before(rng: np.random.Generator) -> None:
    operands = [normal(rng, 2, 3, 5, 8), normal(rng, 2, 2, 7, 8), normal(rng, 2, 2, 7, 8)]
    model, _ = nameless("Attention", operands, {}, 1, domain="", standard=23, version=23)
    del model.opset_import[1:]
    model.ir_version = 11
    with raises_code("M004", text="heads"):
        tilewright.compile(model, cache=False)


def test_attention_of_several_heads(rng: np.random.Generator) -> None:
    operands = [normal(rng, 2, 5, 16), normal(rng, 2, 7, 16), normal(rng, 2, 7, 16)]
    free = dict.fromkeys(range(3), (0, 1))
    model, feeds = nameless("MultiHeadAttention", operands, free, 1, domain=MICROSOFT, num_heads=2)
    refuses(checked(model, feeds), feeds, ("x0", 0), ("x1", 1), ("x2", 0), ("x2", 1))


@pytest.mark.parametrize("mask", [(2, 5), (2,), (4,)], ids=["keys", "lengths", "spans"])
def test_masks(rng: np.random.Generator, mask: tuple[int, ...]) -> None:
    """A vector is as long as the batch, or twice; which of both a run tells."""
    held = np.array([5, 4, 1, 0], np.int32)[: mask[0]] if len(mask) == 1 else np.ones(mask, "i4")
    inputs = [normal(rng, 2, 5, 16), normal(rng, 16, 48), normal(rng, 48), held]
    free = {0: (0, 1), 3: tuple(range(len(mask)))}
    model, feeds = nameless(
        "Attention", inputs, free, 1, domain=MICROSOFT, num_heads=2, known=[1, 2]
    )
    module = checked(model, feeds)
    refuses(module, feeds, ("x3", 0), *[("x0", 0)] * (mask != (2,)))  # two are a span of one, too
    if len(mask) == 1:
        for length in (0, 1, 3, 8):
            with raises_code("C025"):
                module.run({**feeds, "x3": np.ones(length, np.int32)})
        empty = {"x0": feeds["x0"][:0], "x3": feeds["x3"][:0]}
        assert module.run(empty)[0].shape == (0, 5, 16)


def test_a_mask_of_another_length_is_refused_before(rng: np.random.Generator) -> None:
    inputs = [normal(rng, 2, 5, 16), normal(rng, 16, 48), normal(rng, 48), np.ones(3, np.int32)]
    options = {"domain": MICROSOFT, "num_heads": 2}
    model, _ = nameless("Attention", inputs, {}, 1, known=[1, 2], **options)
    with raises_code("M004", text="a mask of another length"):
        tilewright.compile(model, cache=False)


def test_grouped_attention(rng: np.random.Generator) -> None:
    inputs = [
        normal(rng, 2, 1, 32), normal(rng, 2, 1, 16), normal(rng, 2, 1, 16),
        normal(rng, 2, 2, 6, 8), normal(rng, 2, 2, 6, 8),
        np.array([6, 6], np.int32), np.array(7, np.int32),
    ]  # fmt: skip
    free = {0: (0, 1), 1: (0, 1), 2: (0, 1), 3: (0, 2), 4: (0, 2), 5: (0,)}
    heads = {"num_heads": 4, "kv_num_heads": 2}
    model, feeds = nameless("GroupQueryAttention", inputs, free, 3, domain=MICROSOFT, **heads)
    module = checked(model, feeds)
    refuses(module, feeds, *((f"x{k}", 0) for k in range(6)), ("x0", 1), ("x1", 1), ("x2", 1))
    for name in ("x1", "x3", "x5"):
        with raises_code("C025"):
            module.run({**feeds, name: np.concatenate([feeds[name]] * 2)})


@pytest.mark.parametrize("steps", [3, 30], ids=["copied", "looped"])
@pytest.mark.parametrize(("op", "gates", "states"), [("LSTM", 4, 2), ("GRU", 3, 1), ("RNN", 1, 1)])
def test_states_of_recurrent_layers(
    rng: np.random.Generator, op: str, gates: int, states: int, steps: int
) -> None:
    first = [normal(rng, 1, 2, 4) for _ in range(states)]
    lengths = np.array([2, steps], np.int32)
    inputs = [normal(rng, steps, 2, 4), normal(rng, 1, gates * 4, 4), normal(rng, 1, gates * 4, 4)]
    free = {0: (0, 1), 4: (0,), 5: (1,), 6: (1,)}
    model, feeds = nameless(
        op, [*inputs, None, lengths, *first], free, 1 + states,
        domain="", known=[1, 2], hidden_size=4,
    )  # fmt: skip
    del model.opset_import[1:]
    refuses(checked(model, feeds), feeds, ("x0", 1), ("x4", 0), ("x5", 1))
