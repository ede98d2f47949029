"""Quantisation against the ONNX reference, and as native code."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from tests.onnx.small_models import BATCH, check_node, one_node
from tilewright.frontend.onnx import import_model
from tilewright.graph.ir import Array

SMALL = ["i1", "u1", "i2", "u2"]


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(0, 40, shape).astype("f4")


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("scale", ["f4", "f2"])
def test_quantize_by_one_scale(rng: np.random.Generator, dtype: str, scale: str) -> None:
    x = normal(rng, BATCH, 5).astype(scale)
    x[0] = [0, 20000, -20000, 0.75, 1.25]  # beyond the range, and ties
    inputs = [x, np.asarray(0.5, scale), np.asarray(3, dtype)]
    check_node("QuantizeLinear", inputs, opset=21, compiled=True)
    check_node("QuantizeLinear", [*inputs[:2], np.asarray(0, dtype)], opset=21)


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23])
def test_quantize_to_u8_by_default(rng: np.random.Generator, opset: int) -> None:
    check_node("QuantizeLinear", [normal(rng, BATCH, 5), np.float32(0.7)], opset=opset)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_along_an_axis(rng: np.random.Generator, axis: int) -> None:
    x = normal(rng, 4, 3, 5)
    scale = rng.uniform(0.3, 2, x.shape[axis]).astype("f4")
    zero = rng.integers(-9, 9, x.shape[axis]).astype("i1")
    attributes = {"axis": axis}
    check_node("QuantizeLinear", [x, scale, zero], attributes=attributes, compiled=axis == 1)
    q = rng.integers(-128, 128, x.shape).astype("i1")
    check_node("DequantizeLinear", [q, scale, zero], attributes=attributes, compiled=axis == 1)


def test_scales_of_blocks(rng: np.random.Generator) -> None:
    x, scale = normal(rng, BATCH, 6), rng.uniform(0.3, 2, (BATCH, 3)).astype("f4")
    zero = rng.integers(0, 9, scale.shape).astype("u1")
    attributes = {"axis": 1, "block_size": 2}
    check_node("QuantizeLinear", [x, scale, zero], opset=21, attributes=attributes)
    q = rng.integers(0, 256, x.shape).astype("u1")
    check_node("DequantizeLinear", [q, scale, zero], opset=21, attributes=attributes, compiled=True)


@pytest.mark.parametrize("dtype", [*SMALL, "i4"])
@pytest.mark.parametrize("scale", ["f4", "f2"])
def test_dequantize(rng: np.random.Generator, dtype: str, scale: str) -> None:
    limits = np.iinfo(dtype)
    x = rng.integers(max(limits.min, -1000), min(limits.max, 1000), (BATCH, 5)).astype(dtype)
    factor = np.asarray(0.25, scale)
    check_node("DequantizeLinear", [x, factor], opset=21)
    if dtype != "i4":
        check_node("DequantizeLinear", [x, factor, np.asarray(7, dtype)], opset=21, compiled=True)


def test_output_type_by_attribute(rng: np.random.Generator) -> None:
    x, scale = normal(rng, BATCH, 5), np.float32(0.7)
    attributes = {"output_dtype": TensorProto.INT16}
    check_node("QuantizeLinear", [x, scale], opset=21, attributes=attributes)
    attributes = {"output_dtype": TensorProto.FLOAT16}
    q = rng.integers(0, 256, (BATCH, 5)).astype("u1")
    check_node("DequantizeLinear", [q, scale], opset=23, attributes=attributes)


@pytest.mark.parametrize("shift", [0, 100, -100])
def test_dynamic_quantize(rng: np.random.Generator, shift: float) -> None:
    x = (normal(rng, BATCH, 5) + shift).astype("f4")
    check_node("DynamicQuantizeLinear", [x], outputs=3, compiled=shift == 0)


def test_dynamic_quantize_of_zeros() -> None:
    check_node("DynamicQuantizeLinear", [np.zeros((3, 4), np.float32)], outputs=3)


@pytest.mark.parametrize("precision", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_the_quotient_has_the_digits_that_are_asked_for(
    rng: np.random.Generator, precision: int
) -> None:
    """A quotient of few digits is near a half more often, and rounded once more."""
    attributes = {"precision": precision, "output_dtype": TensorProto.INT16}
    inputs = [5 * normal(rng, 30, 40), np.float32(0.0283203125)]
    check_node("QuantizeLinear", inputs, opset=23, attributes=attributes)


def test_the_quotient_has_the_digits_of_the_scale(rng: np.random.Generator) -> None:
    """Since opset 23; before, it has those of f32."""
    inputs = [normal(rng, 30, 40).astype(np.float16), np.float16(0.03), np.int8(5)]
    check_node("QuantizeLinear", inputs, opset=23)


def test_another_precision_is_left_to_the_reference(rng: np.random.Generator) -> None:
    attributes = {"precision": TensorProto.DOUBLE}
    inputs = [normal(rng, 3, 4), np.float32(0.5)]
    model, _ = one_node("QuantizeLinear", inputs, opset=23, attributes=attributes)
    assert import_model(model).by_reference


@pytest.mark.parametrize("zero", [0, 1, 6])
def test_halves_are_rounded_before_they_are_moved(zero: int) -> None:
    """The zero point, even or odd, does not change which way they go, in any operator."""
    whole, half, one = np.arange(64, dtype=np.uint8), np.float32(0.5), np.float32(1)
    nothing, moved = np.uint8(0), np.uint8(zero)
    wanted = (np.rint(whole / 2) + zero).astype(np.uint8)
    data, unit = [half, nothing], [one, nothing]
    column, row = whole.reshape(64, 1), whole.reshape(1, 1, 64)
    filters = np.ones((1, 1, 1), np.uint8)
    cases = {
        "QuantizeLinear": ([whole / np.float32(2), one, moved], wanted),
        "QLinearMatMul": (
            [column, *data, np.ones((1, 1), np.uint8), *unit, one, moved],
            wanted.reshape(64, 1),
        ),
        "QLinearConv": ([row, *data, filters, *unit, one, moved], wanted.reshape(1, 1, 64)),
    }
    for op, (inputs, expected) in cases.items():
        check_node(op, inputs, expected=[expected], compiled=True)
