"""Minimal filters are exact, and need as many products as they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tilewright.tensor.build import compute, func, placeholder
from tilewright.tensor.interpret import interpret
from tilewright.tensor.library.minimal_filters import Filter, minimal_filter

SIZES = [(m, r) for m in range(1, 8) for r in range(1, 6)]


@pytest.mark.parametrize(("results", "taps"), SIZES)
def test_matrices_filter_exactly(results, taps):
    """In fractions: no rounding hides an error."""
    f = minimal_filter(results, taps)
    data = [Fraction(k * k - 3, k + 1) for k in range(f.tile)]
    weights = [Fraction(2 * k - 3, k + 2) for k in range(taps)]
    products = [
        sum(g * w for g, w in zip(row, weights, strict=True))
        * sum(b * d for b, d in zip(column, data, strict=True))
        for row, column in zip(f.weights, f.data, strict=True)
    ]
    found = [sum(a * p for a, p in zip(row, products, strict=True)) for row in f.back]
    expected = [sum(data[i + k] * weights[k] for k in range(taps)) for i in range(results)]
    assert found == expected
    assert len(products) == results + taps - 1


def computed(f: Filter, transform: str, inputs: np.ndarray) -> list[float]:
    """What the expressions of a transform are for some elements."""
    x = placeholder("X", inputs.shape)
    parts = getattr(f, transform)(lambda k: x[k])
    outputs = [compute(f"Y{k}", (1,), lambda _, part=part: part) for k, part in enumerate(parts)]
    made = interpret(func("program", [x], outputs), {"X": inputs})
    return [float(made[f"Y{k}"][0]) for k in range(len(parts))]


@pytest.mark.parametrize(("results", "taps"), SIZES)
def test_expressions_are_the_matrices(results, taps):
    f = minimal_filter(results, taps)
    inputs = np.random.default_rng(1).integers(-8, 8, f.tile).astype(np.float32)
    for transform, matrix in (("transformed", f.data), ("finished", f.back)):
        expected = np.array(matrix, np.float64) @ inputs
        np.testing.assert_allclose(computed(f, transform, inputs), expected, rtol=1e-5, atol=1e-4)


def test_pairs_of_points_share_their_sums():
    """The expressions of a pair differ in one sign: their parts are computed once."""
    x = placeholder("X", (6,))
    rows = minimal_filter(4, 3).transformed(lambda k: x[k])[1:3]
    first, second = (row.args[0] for row in rows)  # what is contracted
    assert (first.a, first.b) == (second.a, second.b)
    assert type(first) is not type(second)


def test_there_are_only_so_many_points():
    with pytest.raises(ValueError, match="no points"):
        minimal_filter(12, 5)
