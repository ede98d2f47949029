"""Counts of operations in stored values."""

from __future__ import annotations

import pytest

from tests.unit.tuning.nests import nest
from tilewright.tuning.features.operations import KINDS


def _counts(value: str) -> dict[str, int]:
    text = f"def f(A: f32[8], B: f32[8]):\n    for i in range(8):\n        B[i] = {value}\n"
    (statement,) = nest(text).statements
    return {k: n for k, n in zip(KINDS, statement.operations.floats, strict=True) if n}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("A[i] * 2.0 + B[i]", {"mad": 1}),
        ("B[i] - A[i] * 2.0", {"mad": 1}),
        ("A[i] * 2.0 + B[i] * 3.0", {"mad": 1, "mul": 1}),
        ("(A[i] + 1.0) * 2.0", {"add": 1, "mul": 1}),
        ("A[i] / 2.0", {"div": 1}),
        ("max(A[i], 0.0) + exp(A[i])", {"add": 1, "compare": 1, "math": 1}),
    ],
)
def test_operations_are_counted_once(value, expected):
    assert _counts(value) == expected


def test_index_arithmetic_of_loads_is_integer_work():
    (statement,) = nest(
        "def f(A: f32[32], B: f32[8]):\n    for i in range(8):\n        B[i] = A[i * 3 + 1]\n"
    ).statements
    assert statement.operations.integers[KINDS.index("mad")] == 1
    assert sum(statement.operations.floats) == 0


def test_choices_and_logic_have_counts_of_their_own():
    (statement,) = nest(
        "def f(A: f32[8], B: f32[8]):\n"
        "    for i in range(8):\n"
        "        B[i] = select((A[i] < 1.0) & (A[i] < 2.0), A[i], 0.0)\n"
    ).statements
    assert (statement.operations.selects, statement.operations.logic) == (1, 1)
    assert statement.operations.floats[KINDS.index("compare")] == 2
