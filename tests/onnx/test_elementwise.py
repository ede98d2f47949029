"""Arithmetic, activations, logic and conversions against the ONNX reference, and as native code."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

from tests.onnx.small_models import (
    BATCH,
    check,
    check_kernels,
    check_node,
    make_model,
    one_node,
    run,
)
from tilewright.dtypes import DTYPES
from tilewright.frontend.onnx import import_model
from tilewright.graph.ir import Array

FLOATS = ["f4", "f8", "f2"]
SIGNED = ["i1", "i2", "i4", "i8"]
UNSIGNED = ["u1", "u2", "u4", "u8"]
SHAPE = (77,)
"""Of a length that vectors do not divide."""
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 0.5, -2.5, 3.5, 1e-7])


def node(op: str, inputs: list[str], number: int = 0, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs, [f"{op}_{number}"], **attributes)


def floats(rng: np.random.Generator, dtype: str) -> Array:
    """Special values, then ordinary ones."""
    values = rng.normal(0, 3, SHAPE)
    values[: len(SPECIAL)] = SPECIAL
    return values.astype(dtype)


def integers(rng: np.random.Generator, dtype: str) -> Array:
    """The extremes, then small values."""
    limits = np.iinfo(dtype)
    values = rng.integers(max(limits.min, -20), min(limits.max, 20), SHAPE).astype(dtype)
    values[:4] = [limits.min, limits.max, 0, 1]
    return values


UNARY = [
    *("Abs", "Neg", "Sign", "Reciprocal", "Floor", "Ceil", "Round", "Sqrt", "Exp", "Log", "Erf"),
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh"),
    *("Atanh", "Sigmoid", "Relu", "Softsign", "IsNaN", "IsInf", "Identity"),
]


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_floats(rng: np.random.Generator, dtype: str) -> None:
    ops = [node(op, ["x"]) for op in UNARY if (op, dtype) != ("Erf", "f8")]  # f32 in the reference
    ops += [
        node("IsInf", ["x"], 1, detect_negative=0),
        node("IsInf", ["x"], 2, detect_positive=0),
        node("IsInf", ["x"], 3, detect_positive=0, detect_negative=0),
    ]
    feeds = {"x": floats(rng, dtype)}
    check(make_model(ops, feeds), feeds, compiled=dtype == "f4")


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_activations_with_parameters(rng: np.random.Generator, dtype: str) -> None:
    feeds = {"x": rng.normal(0, 3, SHAPE).astype(dtype)}
    ops = [
        node("LeakyRelu", ["x"], alpha=0.25),
        node("Elu", ["x"], alpha=1.5),
        node("Selu", ["x"]),
        node("Selu", ["x"], 1, alpha=2.0, gamma=3.0),
        node("ThresholdedRelu", ["x"], alpha=0.75),
        node("HardSigmoid", ["x"], alpha=0.25, beta=0.75),
        node("HardSwish", ["x"]),
        node("Softplus", ["x"]),
        node("Mish", ["x"]),
        node("Gelu", ["x"], approximate="tanh"),
        node("Gelu", ["x"], 1),
        node("HardSigmoid", ["x"], 1),
        node("Shrink", ["x"], bias=0.25, lambd=0.75),
    ]
    check(make_model(ops, feeds), feeds, compiled=True)


@pytest.mark.parametrize("alpha", [1.0, 0.5, -2.0])
def test_celu(rng: np.random.Generator, alpha: float) -> None:
    x = rng.normal(0, 3, SHAPE).astype("f4")
    wanted = np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x.astype("f8") / alpha))
    check_node("Celu", [x], expected=[wanted.astype("f4")], attributes={"alpha": alpha})


@pytest.mark.parametrize("op", ["Softplus", "Mish", "Gelu", "Elu", "Selu", "Sigmoid", "Softsign"])
def test_activations_of_large_numbers_do_not_overflow(op: str) -> None:
    x = np.array([-1e4, -200, -90, 90, 200, 1e4, 3e38], np.float32)
    model, feeds = one_node(op, [x])
    (found,) = run_both(model, feeds)
    assert np.isfinite(found).all()
    if op in ("Softplus", "Mish", "Gelu", "Elu"):
        np.testing.assert_array_equal(found[3:], x[3:])


def run_both(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """What a model means, which native code keeps."""
    check_kernels(import_model(model).graph, feeds)
    return run(model, feeds)


def test_softplus_keeps_small_results() -> None:
    x = np.array([-30, -20, -10], np.float32)
    wanted = np.log1p(np.exp(x.astype("f8"))).astype("f4")
    check_node("Softplus", [x], expected=[wanted], compiled=True)


def test_swish(rng: np.random.Generator) -> None:
    x = rng.normal(0, 3, SHAPE).astype("f4")
    for alpha in (1.0, 0.4):
        wanted = x / (1 + np.exp(-alpha * x))
        check_node("Swish", [x], opset=24, expected=[wanted], attributes={"alpha": alpha})


BINARY = ["Add", "Sub", "Mul", "Div", "Min", "Max", "Sum", "Equal", "Less", "Greater"]
BINARY += ["LessOrEqual", "GreaterOrEqual"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_of_floats(rng: np.random.Generator, dtype: str) -> None:
    feeds = {"x": floats(rng, dtype), "y": floats(rng, dtype)[::-1].copy()}
    ops = [node(op, ["x", "y"]) for op in (*BINARY, "Mean", "Pow", "PRelu")]
    ops += [node("Max", ["x", "y", "x"], 1), node("Sum", ["x"], 1), node("Mod", ["x", "y"], fmod=1)]
    check(make_model(ops, feeds), feeds, compiled=True)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_arithmetic_of_integers(rng: np.random.Generator, dtype: str) -> None:
    x, y = integers(rng, dtype), integers(rng, dtype)
    y[y == 0] = 3  # division by zero is undefined
    y[1] = 2
    feeds = {"x": x, "y": y}
    ops = [node(op, ["x", "y"]) for op in BINARY if op != "Div"]
    ops += [node("Mod", ["x", "y"]), node("Mod", ["x", "y"], 1, fmod=1), node("Sign", ["x"])]
    ops += [node(f"Bitwise{op}", ["x", "y"]) for op in ("And", "Or", "Xor")]
    ops += [node("Abs", ["x"]), node("BitwiseNot", ["x"])]
    check(make_model(ops, feeds), feeds, compiled=dtype in ("i1", "i8", "u1", "u4"))


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_integers_are_divided_toward_zero(rng: np.random.Generator, dtype: str) -> None:
    x, y = integers(rng, dtype), integers(rng, dtype)
    y[(y == 0) | (y == -1)] = 3
    wanted = [int(math.copysign(abs(int(a)) // abs(int(b)), int(a) * int(b))) if a else 0
              for a, b in zip(x.flat, y.flat, strict=True)]  # fmt: skip
    expected = np.array(wanted, dtype).reshape(SHAPE)
    check_node("Div", [x, y], expected=[expected], compiled=True)


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_bit_shifts(rng: np.random.Generator, dtype: str, direction: str) -> None:
    bits = np.iinfo(dtype).bits
    x = rng.integers(0, np.iinfo(dtype).max, SHAPE, dtype=dtype)
    amount = rng.integers(0, bits + 3, SHAPE).astype(dtype)
    both = [(int(a), int(n)) for a, n in zip(x.flat, amount.flat, strict=True)]
    moved = [(a << n if direction == "LEFT" else a >> n) % 2**bits for a, n in both]
    expected = np.array(moved, dtype).reshape(SHAPE)
    attributes = {"direction": direction}
    check_node("BitShift", [x, amount], expected=[expected], attributes=attributes, compiled=True)


def test_logic(rng: np.random.Generator) -> None:
    feeds = {name: rng.random(SHAPE) < 0.5 for name in "xy"}
    ops = [node(op, ["x", "y"]) for op in ("And", "Or", "Xor", "Equal")] + [node("Not", ["x"])]
    check(make_model(ops, feeds), feeds, compiled=True)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "u1", "?"])
def test_where_broadcasts(rng: np.random.Generator, dtype: str) -> None:
    condition = rng.random((BATCH, 1, 5)) < 0.5
    x, y = (rng.integers(0, 2, s).astype(dtype) for s in ((4, 1), ()))
    check_node("Where", [condition, x, y], compiled=True)


@pytest.mark.parametrize(
    ("base", "exponent"),
    [
        ("f4", "i8"),
        ("f4", "f8"),
        ("f8", "f4"),
        ("f2", "i4"),
        ("i4", "i8"),
        ("i8", "i4"),
        ("i4", "f4"),
    ],
)
def test_powers_have_the_type_of_the_base(
    rng: np.random.Generator, base: str, exponent: str
) -> None:
    x, y = (rng.integers(1, 6, SHAPE).astype(t) for t in (base, exponent))
    check_node("Pow", [x, y], compiled=True)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0, 3.0, 7.0, -0.5, -1.0, 2.5])
@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_known_powers(rng: np.random.Generator, exponent: float, dtype: str) -> None:
    x = np.abs(rng.normal(2, 1, SHAPE)).astype(dtype) + np.ones((), dtype)
    wanted = np.power(x.astype("f8"), exponent).astype(dtype)
    constant = np.float32(exponent)
    check_node("Pow", [x, constant], known=[1], expected=[wanted], compiled=True)


def test_remainders_are_exact_where_quotients_are_large(rng: np.random.Generator) -> None:
    x = (rng.normal(0, 1, SHAPE) * 10.0 ** rng.integers(-5, 6, SHAPE)).astype("f4")
    y = rng.normal(0, 1, SHAPE).astype("f4")
    (found,) = run_both(*one_node("Mod", [x, y], attributes={"fmod": 1}))
    np.testing.assert_array_equal(found, np.fmod(x, y))


def test_float_remainders_have_the_sign_of_the_divisor(rng: np.random.Generator) -> None:
    x, y = rng.normal(0, 9, (2, *SHAPE)).astype("f4")
    x[:4], y[:4] = [0, -0.0, 6, -6], [3, 3, np.inf, -3]
    check_node("Mod", [x, y], expected=[np.mod(x, y)], compiled=True)


def test_shrink_of_integers(rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, SHAPE).astype("i4")
    attributes = {"lambd": 2.5, "bias": 1.5}
    check_node("Shrink", [x], attributes=attributes, compiled=True)


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i4", "i1", "u1"])
def test_clip(rng: np.random.Generator, dtype: str) -> None:
    x, low, high = rng.integers(0, 90, SHAPE).astype(dtype), np.dtype(dtype).type(20), None
    for bounds in ([low, high], [None, low], [low, np.dtype(dtype).type(60)], [None, None]):
        check_node("Clip", [x, *bounds])
    above = [np.dtype(dtype).type(v) for v in (60, 20)]
    expected = np.full(SHAPE, 20, dtype)
    check_node("Clip", [x, *above], expected=[expected], compiled=True)


@pytest.mark.parametrize("bounds", [{}, {"min": -0.5}, {"max": 0.5}, {"min": -1.0, "max": 0.25}])
def test_clip_by_attributes(rng: np.random.Generator, bounds: dict[str, float]) -> None:
    x = rng.normal(0, 1, SHAPE).astype("f4")
    wanted = np.clip(x, bounds.get("min", -np.inf), bounds.get("max", np.inf))
    check_node("Clip", [x], opset=6 if bounds else 10, expected=[wanted], attributes=bounds)


CAST = {name: t.numpy for name, t in DTYPES.items() if not t.is_small}


@pytest.mark.parametrize("source", CAST)
def test_casts_between_all_types(rng: np.random.Generator, source: str) -> None:
    """Values that every type can hold; fractions are cut off, all but zero is true."""
    x = rng.integers(0, 100, SHAPE).astype(CAST[source])
    if CAST[source].kind not in "iub":
        x = (x.astype("f4") + 0.25).astype(CAST[source])
    x[:3] = 0
    numbers = {name: helper.np_dtype_to_tensor_dtype(t) for name, t in CAST.items()}
    ops = [node("Cast", ["x"], k, to=n) for k, n in enumerate(numbers.values())]
    with np.errstate(all="ignore"):
        expected = [x.astype(t) for t in CAST.values()]
    narrow = source in ("f16", "bf16", "bool", "i8")
    check(make_model(ops, {"x": x}), {"x": x}, expected, compiled=narrow)


def test_casts_into_narrow_floats_round_once() -> None:
    """1 + 2⁻¹¹ + 2⁻³⁵ lies above a tie of f16, but is one after it was rounded to f32."""
    x = np.array([1 + 2.0**-11 + 2.0**-35, 1 + 2.0**-11, 65519.0, 65520.0])
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    assert expected[0] != expected[1]
    number = onnx.TensorProto.FLOAT16
    check_node("Cast", [x], expected=[expected], attributes={"to": number}, compiled=True)


def test_cast_like(rng: np.random.Generator) -> None:
    x, like = rng.integers(0, 9, SHAPE), np.zeros(3, ml_dtypes.bfloat16)
    check_node("CastLike", [x, like], expected=[x.astype(ml_dtypes.bfloat16)], compiled=True)


def test_bit_casts(rng: np.random.Generator) -> None:
    x = rng.normal(0, 1, SHAPE).astype("f4")
    attributes = {"to": onnx.TensorProto.INT32}
    check_node(
        "BitCast", [x], opset=26, expected=[x.view("i4")], attributes=attributes, compiled=True
    )


@pytest.mark.parametrize("opset", [7, 10, 13])
def test_dropout_drops_nothing(rng: np.random.Generator, opset: int) -> None:
    x = rng.normal(0, 1, SHAPE).astype("f4")
    check_node("Dropout", [x], opset=opset, expected=[x])
    mask = np.ones(SHAPE, "f4" if opset < 10 else bool)  # once of the type of the data
    check_node("Dropout", [x], opset=opset, outputs=2, expected=[x, mask])


@pytest.mark.parametrize("shape", [(), (0,), (BATCH, 0, 3), (1,), (BATCH, 2, 1, 3)])
def test_any_shape(rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    x = np.asarray(rng.normal(0, 1, shape), "f4")
    for op in ("Relu", "Erf", "Gelu", "Neg"):
        check_node(op, [x])
    for op in ("Add", "Max", "Less"):
        check_node(op, [x, np.float32(0.5)])
