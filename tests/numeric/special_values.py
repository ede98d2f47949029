"""What comes out for NaN, infinities, zeros of both signs, subnormal numbers and the ends of types.

Each `Rule` is a line of the table in docs/accuracy.md with an operator that shows it: NumPy
computes what is expected, in the type of the operands. Rules are about single elements; what folds,
sorts or normalises is in `special_folds`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["FLOATS", "INTEGERS", "RULES", "Rule", "table"]

Array = np.ndarray
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SIGNED = INTEGERS[:4]
UNSIGNED = INTEGERS[4:]


@dataclass(frozen=True)
class Rule:
    """An operator, what its results are on special values, and for which types that is tested.

    `loose` allows for a relative error where results are finite and not zero: of functions. Where
    `holds` is false, nothing is promised.
    """

    op: str
    says: str
    expected: Callable[..., Array]
    types: tuple[str, ...]
    operands: int = 1
    attributes: dict[str, Any] = field(default_factory=dict)
    loose: float = 0.0
    constants: tuple[float, ...] = ()
    to: str = ""
    holds: Callable[..., Array] | None = None

    @property
    def name(self) -> str:
        shown = [f"{k}={v}" for k, v in self.attributes.items()]
        return " ".join([self.op, *shown, *([self.to] if self.to else [])])


def _truncated(x: Array, y: Array) -> Array:
    """Division towards zero; by zero it is zero, and the least number by -1 is itself."""
    if x.dtype.kind == "u":
        return np.where(y == 0, 0, x // np.where(y == 0, 1, y)).astype(x.dtype)
    down, rest = x // y, x % y
    up = (rest != 0) & ((x < 0) != (y < 0))
    return np.where(y == 0, 0, down + up.astype(x.dtype)).astype(x.dtype)


def _has_quotient(x: Array, y: Array) -> Array:
    """Whether x / y is none, infinite for a reason, or small enough for its digits to be known."""
    quotient = np.abs(x.astype("f8") / y.astype("f8"))
    return ~(quotient >= 2.0**53) | ~np.isfinite(x.astype("f8")) | (y == 0)


def _power(x: Array, y: Array) -> Array:
    return np.power(x.astype("f8"), y.astype("f8")).astype(x.dtype)


def _wide(f: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """In double precision, rounded once."""
    return lambda x: f(x.astype("f8")).astype(x.dtype)


def _erf(x: Array) -> Array:
    from math import erf, isnan

    return np.array([v if isnan(v) else erf(v) for v in x.tolist()])


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _shifted(left: bool) -> Callable[[Array, Array], Array]:
    def shift(x: Array, n: Array) -> Array:
        wide = x.astype(object)
        bits = x.dtype.itemsize * 8
        amounts = n.astype(object)
        moved = [
            0 if k >= bits else (v << k if left else v >> k) % (1 << bits)
            for v, k in zip(wide, amounts, strict=True)
        ]
        return np.array(moved, dtype=object).astype(x.dtype)

    return shift


def _clipped(x: Array, low: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _to_bool(x: Array) -> Array:
    return x.astype("f8") != 0


RULES = (
    Rule("Add", "∞ - ∞ is NaN; subnormal results are kept; integers wrap", np.add, FLOATS, 2),
    Rule("Sub", "as `Add`; x - x is +0", np.subtract, FLOATS, 2),
    Rule("Mul", "0·∞ is NaN; signs of zeros multiply; integers wrap", np.multiply, FLOATS, 2),
    Rule("Div", "x/0 is ±∞, 0/0 and ∞/∞ are NaN", np.divide, FLOATS, 2),
    Rule("Add", "", np.add, INTEGERS, 2),
    Rule("Sub", "", np.subtract, INTEGERS, 2),
    Rule("Mul", "", np.multiply, INTEGERS, 2),
    Rule(
        "Div",
        "rounds toward zero; by zero it is 0; the least number by -1 is itself",
        _truncated,
        INTEGERS,
        2,
    ),
    Rule(
        "Mod",
        "has the sign of the divisor; by zero it is 0",
        np.mod,
        INTEGERS,
        2,
    ),
    Rule(
        "Mod",
        "has the sign of the dividend, as `fmod` of C; by zero it is 0 for integers",
        np.fmod,
        INTEGERS,
        2,
        {"fmod": 1},
    ),
    Rule(
        "Mod",
        "x mod 0 and ∞ mod y are NaN, x mod ∞ is x; exact while |x / y| < 2⁵³",
        np.fmod,
        FLOATS,
        2,
        {"fmod": 1},
        holds=_has_quotient,
    ),
    Rule("Neg", "changes the sign of zeros too; the least integer stays", np.negative, FLOATS),
    Rule("Neg", "", np.negative, SIGNED),
    Rule("Abs", "of -0 is +0; the least integer stays", np.abs, FLOATS),
    Rule("Abs", "", np.abs, SIGNED),
    Rule("Sign", "of NaN is NaN, of ±0 it is 0", np.sign, FLOATS),
    Rule("Max", "NaN if one operand is NaN", np.maximum, FLOATS, 2),
    Rule("Min", "NaN if one operand is NaN", np.minimum, FLOATS, 2),
    Rule("Clip", "NaN stays; the upper limit wins", _clipped, FLOATS, constants=(-1.0, 2.0)),
    Rule("Relu", "NaN stays", lambda x: np.maximum(x, x.dtype.type(0)), FLOATS),
    Rule("Round", "halves go to the even neighbour; -0.4 is -0", np.rint, FLOATS),
    Rule("Floor", "-0 stays -0", np.floor, FLOATS),
    Rule("Ceil", "-0.5 is -0", np.ceil, FLOATS),
    Rule("Sqrt", "below zero NaN, of -0 it is -0", _wide(np.sqrt), FLOATS),
    Rule("Reciprocal", "of ±0 it is ±∞", lambda x: x.dtype.type(1) / x, FLOATS),
    Rule("Exp", "of -∞ it is 0, subnormal results are kept", _wide(np.exp), FLOATS, loose=2.0),
    Rule("Log", "below zero NaN, of ±0 it is -∞", _wide(np.log), FLOATS, loose=2.0),
    Rule("Tanh", "of ±∞ it is ±1, of ±0 it is ±0", _wide(np.tanh), FLOATS, loose=4.0),
    Rule("Erf", "of ±∞ it is ±1, of ±0 it is ±0", _wide(_erf), FLOATS, loose=4.0),
    Rule("Sigmoid", "of -∞ it is 0, of ∞ it is 1", _wide(_sigmoid), FLOATS, loose=4.0),
    Rule("Sin", "of ±∞ it is NaN, of ±0 it is ±0", _wide(np.sin), FLOATS, loose=4.0),
    Rule("Cos", "of ±∞ it is NaN", _wide(np.cos), FLOATS, loose=4.0),
    Rule(
        "Pow",
        "as `pow` of C99: x⁰ and 1ʸ are 1 also for NaN, (-1)^±∞ is 1, 0⁻¹ is ∞ …",
        _power,
        FLOATS,
        2,
        loose=4.0,
    ),
    Rule("Equal", "NaN equals nothing, -0 equals 0", np.equal, FLOATS, 2, to="bool"),
    Rule("Less", "false for NaN", np.less, FLOATS, 2, to="bool"),
    Rule("GreaterOrEqual", "false for NaN", np.greater_equal, FLOATS, 2, to="bool"),
    Rule("IsNaN", "", np.isnan, FLOATS, to="bool"),
    Rule("IsInf", "", np.isinf, FLOATS, to="bool"),
    Rule(
        "BitShift",
        "by the width of the type or more it is 0",
        _shifted(True),
        UNSIGNED,
        2,
        {"direction": "LEFT"},
    ),
    Rule("BitShift", "", _shifted(False), UNSIGNED, 2, {"direction": "RIGHT"}),
    Rule("Cast", "NaN is true, ±0 is false", _to_bool, FLOATS, to="bool"),
    Rule(
        "Cast",
        "overflow is ±∞, halves go to the even neighbour, subnormal numbers are kept",
        lambda x: x.astype("float16"),
        ("float32", "float64"),
        to="float16",
    ),
    Rule("Cast", "", lambda x: x.astype(ml_dtypes.bfloat16), ("float32", "float64"), to="bfloat16"),
    Rule("Cast", "", lambda x: x.astype("float32"), ("float64", "float16"), to="float32"),
)


def table() -> str:
    """The rules that say something, as a table of the page."""
    rows = ["| operator | on special values |", "| --- | --- |"]
    for rule in RULES:
        if rule.says:
            shown = "".join(f", `{k}={v}`" for k, v in rule.attributes.items())
            target = f" to {rule.to}" if rule.to else ""
            is_cast = rule.op == "Cast"
            of = " of integers" if rule.types[0] in INTEGERS and rule.op in ("Mod", "Div") else ""
            says = rule.says.replace("|", "\\|")
            rows.append(f"| {rule.op}{target if is_cast else ''}{of}{shown} | {says} |")
    return "\n".join(rows)
