"""Floats of at most eight bits: every code, and every place where rounding is decided.

Plain conversions are those of ml_dtypes. The Cast operator is checked against the ONNX reference
implementation as well, but for these cases, in which its text decides:

* `f64` is rounded once. ml_dtypes rounds to `f32` first.
* `f8e8m0` of infinity is the greatest scale if values saturate; the reference gives NaN.
* `f8e8m0` of what is out of range, zero included, is NaN if values do not saturate; the reference
  gives the nearest scale for some.
* Between the least scale and 2**-126 the reference rounds up too often: `f32` is subnormal there.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference.ops.op_cast import cast_to

import tilewright as tw
from tests.numeric.edge_values import assert_same, padded
from tests.numeric.small_floats import (
    SMALL_FLOATS,
    around_decisions,
    codes_of,
    every_half,
    midpoints,
    scale_code,
)
from tests.numeric.test_arithmetic import FORMS, run_all
from tilewright.dtypes import DTYPES, DType, f16, f32, f64
from tilewright.model.info import element_type
from tilewright.tensor import ir as tir

SCALES = DTYPES["f8e8m0"]
ROUNDED = [dtype for dtype in SMALL_FLOATS if dtype != SCALES]
MODES = ["up", "nearest", "down"]


@pytest.mark.parametrize(("target", "lanes"), FORMS)
@pytest.mark.parametrize("dtype", SMALL_FLOATS, ids=str)
def test_every_code_survives(dtype, target, lanes):
    """To `f32` and back is exact; NaN stays NaN."""
    a = padded(codes_of(dtype))
    values = {
        "wide": lambda x: tir.Cast(f32.vector(x.dtype.lanes), x),
        "back": lambda x: tir.Cast(x.dtype, tir.Cast(f32.vector(x.dtype.lanes), x) * 1.0),
    }
    found = run_all(dtype, values, [a], target, lanes)
    assert_same(found["wide"], a.astype(np.float32), f"{dtype} to f32")
    assert_same(found["back"], a, f"{dtype} to f32 and back")


@pytest.mark.parametrize(("target", "lanes"), FORMS)
@pytest.mark.parametrize("source", [f16, f32], ids=str)
def test_conversions_are_those_of_ml_dtypes(source, target, lanes):
    casts = {t.name: (lambda x, t=t: tir.Cast(t.vector(x.dtype.lanes), x)) for t in SMALL_FLOATS}
    a = padded(samples(source))
    found = run_all(source, casts, [a], target, lanes)
    for name, array in found.items():
        with np.errstate(all="ignore"):
            assert_same(array, a.astype(DTYPES[name].numpy), f"{source} to {name}")


def samples(source: DType) -> np.ndarray:
    """What is decided by rounding to any small float; of `f16` everything."""
    if source == f16:
        return every_half()
    found = np.concatenate([around_decisions(t) for t in SMALL_FLOATS])
    return np.unique(found.view(np.int32)).view(np.float32)


def casts_of(source: DType, wanted: dict[str, tuple[DType, dict]]):
    """Several casts of one array, each to a type with attributes, as a function of that array."""
    nodes = [
        helper.make_node("Cast", ["x"], [name], to=element_type(to), **attributes)
        for name, (to, attributes) in wanted.items()
    ]
    graph = helper.make_graph(
        nodes,
        "casts",
        [helper.make_tensor_value_info("x", element_type(source), ["n"])],
        [
            helper.make_tensor_value_info(name, element_type(to), ["n"])
            for name, (to, _) in wanted.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    module = tw.compile(model, cache=False)
    assert not module.by_reference
    return lambda x: dict(zip(wanted, module.run({"x": x}), strict=True))


@pytest.mark.parametrize("source", [f16, f32], ids=str)
def test_casts_are_those_of_the_reference(source):
    wanted = {
        f"{to.name}_{saturate}": (to, {"saturate": saturate})
        for to in ROUNDED
        for saturate in (0, 1)
    }
    x = samples(source)
    found = casts_of(source, wanted)(x)
    for name, (to, attributes) in wanted.items():
        with np.errstate(all="ignore"):
            expected = cast_to(x, element_type(to), bool(attributes["saturate"]))
        assert_same(found[name], expected, name)


@pytest.mark.parametrize("source", [f16, f32], ids=str)
def test_scales_are_rounded_as_the_standard_says(source):
    wanted = {
        f"{mode}_{saturate}": (SCALES, {"round_mode": mode, "saturate": saturate})
        for mode in MODES
        for saturate in (0, 1)
    }
    x = np.abs(samples(source))
    found = casts_of(source, wanted)(x)
    usual = (x.astype(np.float64) >= 2.0**-126) & (x.astype(np.float64) <= 2.0**127)
    for name, (_, attributes) in wanted.items():
        mode, saturates = attributes["round_mode"], bool(attributes["saturate"])
        expected = [scale_code(float(v), mode, saturates=saturates) for v in x]
        np.testing.assert_array_equal(found[name].view(np.uint8), expected, err_msg=name)
        reference = cast_to(x[usual], onnx.TensorProto.FLOAT8E8M0, saturates, mode)
        np.testing.assert_array_equal(
            found[name][usual].view(np.uint8), reference.view(np.uint8), err_msg=name
        )


def test_doubles_are_rounded_once():
    """The neighbours of a midpoint as `f64` are that midpoint as `f32`."""
    cast = casts_of(f64, {to.name: (to, {"saturate": 0}) for to in ROUNDED})
    for to in ROUNDED:
        middle = np.concatenate([midpoints(to), -midpoints(to)])
        for direction in (np.inf, -np.inf):
            x = np.nextafter(middle, direction)
            near = np.nextafter(middle.astype(np.float32), np.float32(direction))
            assert_same(cast(x)[to.name], near.astype(to.numpy), f"f64 to {to}")


@pytest.mark.parametrize("dtype", SMALL_FLOATS, ids=str)
def test_formats_are_those_of_ml_dtypes(dtype):
    import ml_dtypes

    form, info = dtype.format, ml_dtypes.finfo(dtype.numpy)
    assert form.max_value == float(info.max)
    assert form.mantissa == info.nmant
    assert np.isnan(codes_of(dtype).astype(np.float32)).any() == (form.nan is not None)
    assert np.isinf(codes_of(dtype).astype(np.float32)).any() == (form.infinity is not None)
