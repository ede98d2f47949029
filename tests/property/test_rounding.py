"""What the standard defines to the last bit has these bits: arithmetic in any order, quantisation.

Products and sums that follow one another must not be fused, whatever shares a kernel with them, and
no quotient may become a product with an inverse.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tilewright.graph.ir import Array

LEVELS = [
    pytest.param("x86-64-v2", marks=pytest.mark.isa("sse4.2")),
    pytest.param("x86-64-v3", marks=pytest.mark.isa("avx2", "fma")),
    pytest.param("x86-64-v4", marks=pytest.mark.isa("avx512f", "avx512bw", "avx512vl")),
]
SIZE = 37
"""Whole vectors of every level, and a rest."""

BINARY = ("Add", "Sub", "Mul", "Mul", "Div", "Max", "Min", "PRelu")
UNARY = ("Sqrt", "Abs", "Neg", "Reciprocal", "HardSigmoid", "LeakyRelu", "Floor", "Round")
SMALL = {"u1": np.uint8, "i1": np.int8, "u2": np.uint16, "i2": np.int16}


@st.composite
def arithmetic(draw: st.DrawFn) -> onnx.ModelProto:
    """A graph of operations that are rounded once each, on three rows of numbers."""
    values, nodes = ["a", "b", "c"], []
    for number in range(draw(st.integers(2, 12))):
        op = draw(st.sampled_from(BINARY + UNARY))
        # The last ones are used most: long chains share a kernel.
        inputs = [draw(st.sampled_from(values[-4:])) for _ in range(1 + (op in BINARY))]
        values.append(f"v{number}")
        nodes.append(helper.make_node(op, inputs, [values[-1]]))
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [SIZE]) for n in "abc"]
    last = [helper.make_tensor_value_info(values[-1], TensorProto.FLOAT, [SIZE])]
    graph = helper.make_graph(nodes, "arithmetic", infos, last)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@given(model=arithmetic(), seed=st.integers(0, 2**32))
def test_arithmetic_is_rounded_operation_by_operation(model: onnx.ModelProto, seed: int) -> None:
    rng = np.random.default_rng(seed)
    feeds = {name: rng.normal(size=SIZE).astype(np.float32) for name in "abc"}
    with np.errstate(all="ignore"):
        (wanted,) = ReferenceEvaluator(model).run(None, feeds)
    (found,) = tw.compile(model, threads=1, cache=False).run(feeds)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("number", [3, 7, 8, 11])
@pytest.mark.parametrize("op", ["ReduceMean", "AveragePool", "GlobalAveragePool", "Mean"])
def test_means_are_quotients(op: str, number: int, rng: np.random.Generator) -> None:
    """Sums of whole numbers are exact in any order: what is rounded is the division."""
    rows = rng.integers(-999, 999, (number, 1, SIZE, 1)).astype(np.float32)
    inputs = [*rows] if op == "Mean" else [np.moveaxis(rows, 0, -1)[..., 0, :]]
    attributes = {"axes": [2]} if op == "ReduceMean" else {}
    attributes |= {"kernel_shape": [number]} if op == "AveragePool" else {}
    names = [f"x{k}" for k in range(len(inputs))]
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)
        for name, array in zip(names, inputs, strict=True)
    ]
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, SIZE, 1])]
    node = helper.make_node(op, names, ["y"], **attributes)
    graph = helper.make_graph([node], "mean", infos, result)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    module = tw.compile(model, threads=1, cache=False)
    (found,) = module.run(dict(zip(names, inputs, strict=True)))
    np.testing.assert_array_equal(found, rows.sum(0) / np.float32(number))


@lru_cache
def quantiser(level: str) -> tw.Module:
    """`QuantizeLinear` to each small type, by a scale and a zero point that are given."""
    number = TensorProto.FLOAT
    infos = [helper.make_tensor_value_info(n, number, s) for n, s in (("x", [SIZE]), ("scale", []))]
    nodes, results = [], []
    for name, dtype in SMALL.items():
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        infos.append(helper.make_tensor_value_info(f"zero_{name}", kind, []))
        results.append(helper.make_tensor_value_info(name, kind, [SIZE]))
        nodes.append(helper.make_node("QuantizeLinear", ["x", "scale", f"zero_{name}"], [name]))
    graph = helper.make_graph(nodes, "quantiser", infos, results)
    opset = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    return tw.compile(model, target=level, threads=1, cache=False)


def quantised(x: Array, scale: np.float32, zero: np.integer) -> Array:
    """The standard's definition in NumPy, with as many digits as a sum needs."""
    limits = np.iinfo(zero.dtype)
    with np.errstate(all="ignore"):
        whole = np.rint(x / scale).astype(np.float64)
    return np.clip(whole + float(zero), limits.min, limits.max)


def halves(scale: np.float32, rng: np.random.Generator) -> Array:
    """Odd multiples of half the scale: quotients that lie between two numbers, or nearly."""
    ties = scale * (rng.integers(-300, 300, SIZE) + 0.5).astype(np.float32)
    return np.nextafter(ties, rng.choice([-np.inf, 0, np.inf], SIZE).astype(np.float32))


scales = st.floats(2**-149, 2.0**127, width=32) | st.sampled_from([1.0, 0.5, 2**-126, 3e-39, 0.1])


@pytest.mark.parametrize("level", LEVELS)
@given(
    scale=scales,
    x=arrays.arrays(np.float32, SIZE, elements=st.floats(width=32)),
    near=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_quantize_divides_and_rounds_half_to_even(
    level: str, scale: float, x: Array, near: bool, seed: int
) -> None:
    rng, step = np.random.default_rng(seed), np.float32(scale)
    with np.errstate(all="ignore"):
        given = halves(step, rng) if near else x
        is_number = ~np.isnan(given / step)  # the standard says nothing about the others
    zeros = {n: rng.integers(np.iinfo(t).min, np.iinfo(t).max, dtype=t) for n, t in SMALL.items()}
    feeds = {"x": given, "scale": np.asarray(step)}
    feeds |= {f"zero_{name}": np.asarray(zero) for name, zero in zeros.items()}
    for found, zero in zip(quantiser(level).run(feeds), zeros.values(), strict=True):
        wanted = quantised(given, step, zero)
        np.testing.assert_array_equal(found[is_number], wanted[is_number])


@lru_cache
def dynamic_quantiser(level: str) -> tuple[onnx.ModelProto, tw.Module]:
    """`DynamicQuantizeLinear`, and the module that is compiled of it."""
    small = TensorProto.UINT8
    results = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (
            ("y", small, [SIZE]),
            ("s", TensorProto.FLOAT, []),
            ("z", small, []),
        )
    ]
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [SIZE])
    graph = helper.make_graph([node], "dynamic", [info], results)
    opset = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    return model, tw.compile(model, target=level, threads=1, cache=False)


@pytest.mark.parametrize("level", LEVELS)
@given(x=arrays.arrays(np.float32, SIZE, elements=st.floats(width=32, allow_nan=False)))
def test_dynamic_quantisation_is_the_reference(level: str, x: Array) -> None:
    """Also of ranges that overflow, that are nothing, and whose scale is no normal number."""
    model, module = dynamic_quantiser(level)
    with np.errstate(all="ignore"):
        wanted, scale, zero = ReferenceEvaluator(model).run(None, {"x": x})
        is_number = ~np.isnan(x / scale)
    found = module.run({"x": x})
    np.testing.assert_array_equal(found[1], scale)
    np.testing.assert_array_equal(found[2], zero)
    np.testing.assert_array_equal(found[0][is_number], wanted[is_number])
