"""Operators on each element by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from onnx import TensorProto

from fuzz.case import Array
from fuzz.grow import Growth, Value, require
from fuzz.values import FLOATS, INTEGERS, numpy_type, random_array

__all__ = ["BINARY", "RULES", "UNARY"]

UNARY: Final = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Celu", "Cos",
    "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf",
    "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu",
    "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan",
    "Tanh", "ThresholdedRelu",
)  # fmt: skip
BINARY: Final = (
    "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Mul", "Or", "Sub", "Xor",
)  # fmt: skip

Draw = Callable[[Growth], Any]


def _between(low: float, high: float) -> Draw:
    return lambda g: round(g.draw.uniform(low, high), 2)


ATTRIBUTES: Final[dict[str, dict[str, Draw]]] = {
    "Celu": {"alpha": _between(0.3, 3)},
    "Elu": {"alpha": _between(0.1, 3)},
    "Gelu": {"approximate": lambda g: g.draw.choice(("none", "tanh"))},
    "HardSigmoid": {"alpha": _between(0.05, 0.9), "beta": _between(-1, 1)},
    "IsInf": {
        "detect_negative": lambda g: g.draw.randint(0, 1),
        "detect_positive": lambda g: g.draw.randint(0, 1),
    },
    "LeakyRelu": {"alpha": _between(-0.5, 0.9)},
    "Selu": {"alpha": _between(0.5, 2), "gamma": _between(0.5, 2)},
    "Shrink": {"bias": _between(-1, 1), "lambd": _between(0, 2)},
    "Swish": {"alpha": _between(-1, 2)},
    "ThresholdedRelu": {"alpha": _between(-1, 2)},
}


def unary(g: Growth, op: str) -> None:
    """One operand, attributes from a table."""
    drawn = {name: draw(g) for name, draw in ATTRIBUTES.get(op, {}).items()}
    kept = {
        n: v for n, v in drawn.items() if n in g.schema(op).attributes and g.draw.random() < 0.7
    }
    types = g.types(op)
    if op == "Erf":  # of integers it would be nearly always 0
        types = tuple(t for t in types if t in FLOATS)
    g.add(op, [g.pick(types)], **kept)


def binary(g: Growth, op: str) -> None:
    """Two operands whose shapes go together, in any order."""
    x = g.pick(g.types(op))
    g.add(op, _shuffled(g, [x, g.broadcast(x)]))


def _shuffled(g: Growth, values: list[Value]) -> list[Value]:
    g.draw.shuffle(values)
    return values


def division(g: Growth, op: str) -> None:
    """`Div` and `Mod`: no integer is divided by zero, and none is the least one by -1."""
    x = g.pick(g.types(op))
    whole = x.type in INTEGERS
    y = g.broadcast(x, make=lambda s: _divisors(g, x.type, s) if whole else _floats(g, x, s))
    attributes = {}
    if op == "Mod":
        attributes["fmod"] = 0 if whole and g.draw.random() < 0.6 else 1
        require(
            y.all(lambda a: np.all(a.astype(np.float64) != 0)), "the rest of a division by zero"
        )
    g.add(op, [x, y], **attributes)


def _divisors(g: Growth, elem_type: int, shape: tuple[int, ...]) -> Array:
    dtype = numpy_type(elem_type)
    numbers = np.array([g.draw.choice((1, 2, 3, 5, 7, 10)) for _ in range(int(np.prod(shape)))])
    signs = [g.draw.choice((1, -1)) if dtype.kind == "i" else 1 for _ in numbers]
    return (numbers * np.maximum(signs, np.where(numbers == 1, 1, -1))).astype(dtype).reshape(shape)


def _floats(g: Growth, x: Value, shape: tuple[int, ...]) -> Array:
    return random_array(g.draw, x.type, shape, g.flavour)


def power(g: Growth, op: str) -> None:
    """Integers stay small enough for every type; exponents of them are not negative."""
    x = g.pick(g.types(op))
    if x.type in INTEGERS:
        require(x.all(lambda a: a.size == 0 or np.abs(a.astype(np.float64)).max() <= 11), "large")
    kinds = g.types(op, 1) if g.opset >= 12 and g.draw.random() < 0.3 else (x.type,)
    kind = g.choose_type(kinds)
    whole = x.type in INTEGERS or kind in INTEGERS

    def exponents(shape: tuple[int, ...]) -> Array:
        if whole:
            return (
                np.array(g.draw.choices((0, 1, 2), k=int(np.prod(shape))))
                .reshape(shape)
                .astype(numpy_type(kind))
            )
        return random_array(g.draw, kind, shape)

    g.add(op, [x, g.broadcast(x, make=exponents, elem_type=kind)])


def shift(g: Growth, op: str) -> None:
    """By fewer bits than there are."""
    x = g.pick(g.types(op))
    bits = 8 * x.dtype.itemsize

    def counts(shape: tuple[int, ...]) -> Array:
        drawn = [g.draw.randrange(bits) for _ in range(int(np.prod(shape)))]
        return np.array(drawn).astype(x.dtype).reshape(shape)

    y = g.broadcast(x, make=counts)
    g.add(op, [x, y], direction=g.draw.choice(("LEFT", "RIGHT")))


def variadic(g: Growth, op: str) -> None:
    """One to four operands."""
    x = g.pick(g.types(op))
    others = [g.broadcast(x) for _ in range(g.draw.randint(0, 3))]
    g.add(op, _shuffled(g, [x, *others]))


def where(g: Growth, op: str) -> None:
    x = g.pick(g.types(op, 1))
    y = g.broadcast(x)
    condition = g.broadcast(x, elem_type=TensorProto.BOOL)
    g.add(op, [condition, *_shuffled(g, [x, y])])


def clip(g: Growth, op: str) -> None:
    """Limits are attributes before opset 11 and scalars since; one of them may be missing."""
    x = g.pick(g.types(op))
    low, high = sorted((g.draw.choice((-2, -1, 0, 1)), g.draw.choice((0, 1, 2, 3))))
    if x.dtype.kind == "u":
        low = max(low, 0)
    has_low, has_high = g.draw.random() < 0.8, g.draw.random() < 0.8
    if g.opset < 11:
        g.add(op, [x], min=float(low) if has_low else None, max=float(high) if has_high else None)
        return
    limits = [
        g.parameter(np.array(v).astype(x.dtype)) if given else None
        for v, given in ((low, has_low), (high, has_high))
    ]
    g.add(op, [x, *limits])


def prelu(g: Growth, op: str) -> None:
    x = g.pick(g.types(op))
    g.add(op, [x, g.broadcast(x, one_way=True)])


def cast(g: Growth, op: str) -> None:
    """To any type that holds the values: what overflows an integer has no defined result."""
    x = g.pick(g.types(op, 0))
    require(x.type != TensorProto.STRING, "texts are numbers only by luck")
    targets = [t for t in g.types(op, "T2") if t != TensorProto.STRING]
    target = g.draw.choice(targets) if g.draw.random() < 0.7 else g.choose_type(targets)
    require(x.all(lambda a: _fits(a, target)), "out of range")
    if op == "CastLike":
        g.add(op, [x, g.new(target, g.dims(0, 2))])
        return
    g.add(op, [x], to=target)


def _fits(array: Array, target: int) -> bool:
    if array.size == 0 or target == TensorProto.BOOL:
        return True
    exact = array.astype(np.float64)
    if numpy_type(target).kind in "iu" or target in {TensorProto.INT4, TensorProto.UINT4}:
        import ml_dtypes

        info = ml_dtypes.iinfo(numpy_type(target))
        return bool(np.isfinite(exact).all() and exact.min() >= info.min and exact.max() < info.max)
    import ml_dtypes

    largest = float(ml_dtypes.finfo(numpy_type(target)).max)
    return bool(np.isfinite(exact).all() and np.abs(exact).max() <= largest)


def bit_cast(g: Growth, op: str) -> None:
    x = g.pick(g.types(op))
    same = [t for t in g.types(op, "T2") if numpy_type(t).itemsize == x.dtype.itemsize]
    g.add(op, [x], to=g.choose_type(same))


RULES: Final = {
    **dict.fromkeys(UNARY, unary),
    **dict.fromkeys(BINARY, binary),
    **dict.fromkeys(("Div", "Mod"), division),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), variadic),
    **dict.fromkeys(("Cast", "CastLike"), cast),
    "BitCast": bit_cast,
    "BitShift": shift,
    "Clip": clip,
    "PRelu": prelu,
    "Pow": power,
    "Where": where,
}
