"""Chains of quantised layers are equal to the reference bit for bit, at every level of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tests.onnx.beside_ort import onnxruntime_results
from tests.onnx.quantised_chains import CHAINS, CHANNELS, LENGTH, chain
from tilewright.graph.ir import Array

LEVELS = [
    pytest.param("x86-64-v2", marks=pytest.mark.isa("sse4.2")),
    pytest.param("x86-64-v3", marks=pytest.mark.isa("avx2", "fma")),
    pytest.param("x86-64-v4", marks=pytest.mark.isa("avx512f", "avx512bw", "avx512vl")),
]
LAYERS = 6


def results(kind: str, level: str, accuracy: str) -> tuple[Array, Array]:
    """What is computed, and what the reference implementation says."""
    model, x = chain(kind, LAYERS, np.random.default_rng(19)), data()
    module = tw.compile(model, target=level, threads=1, accuracy=accuracy, cache=False)
    (found,) = module.run({"x": x})
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    return found, wanted


def data() -> Array:
    return np.random.default_rng(6).normal(size=(1, CHANNELS, LENGTH)).astype(np.float32)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", CHAINS)
def test_every_bit_is_that_of_the_reference(kind: str, level: str) -> None:
    found, wanted = results(kind, level, "default")
    assert 0.1 < np.std(wanted) < 100
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", CHAINS)
def test_strict_models_have_the_same_bits(kind: str) -> None:
    np.testing.assert_array_equal(*results(kind, "host", "strict"))


@pytest.mark.parametrize("kind", CHAINS)
def test_onnxruntime_has_the_same_bits(kind: str) -> None:
    """Whatever it fuses."""
    model = chain(kind, LAYERS, np.random.default_rng(19))
    (wanted,) = onnxruntime_results(model, {"x": data()})
    (reference,) = ReferenceEvaluator(model).run(None, {"x": data()})
    np.testing.assert_array_equal(wanted, reference)
