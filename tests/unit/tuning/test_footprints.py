"""Bytes, lines and strides, counted by hand."""

from __future__ import annotations

import pytest

from tests.unit.tuning.nests import nest
from tilewright.tuning.features.footprints import footprint, footprints


@pytest.mark.parametrize(
    ("steps", "size", "lines"),
    [
        ([], 4, 1),
        ([(4, 16)], 64, 1),
        ([(4, 16), (64, 8)], 512, 8),  # two dimensions that are one run
        ([(64, 8), (4, 16)], 512, 8),
        ([(4, 4), (256, 8)], 128, 8),  # short runs far apart
        ([(256, 8)], 32, 8),
        ([(4, 10), (4, 3)], 48, 1),  # windows of three
        ([(4, 10), (8, 5)], 72, 2),  # windows of ten, two apart
        ([(0, 100), (4, 2)], 8, 1),
        ([(-4, 16)], 64, 1),
    ],
)
def test_footprint_of_steps(steps, size, lines):
    assert footprint(steps, 4, 64) == (size, lines)


def test_footprint_is_at_most_the_buffer():
    assert footprint([(4, 1000)], 4, 64, 100) == (100, 2)


def _one(index: str, extent: int = 16, size: int = 64) -> tuple[float, float, float]:
    text = f"def f(A: f32[{size}], B: f32[{extent}]):\n"
    text += f"    for i in range({extent}):\n        B[i] = A[{index}]\n"
    (statement,) = nest(text).statements
    load = statement.accesses[0]
    found = footprints(statement, 64)[load.buffer][0]
    return load.slopes[0], found.size_bytes, found.lines


@pytest.mark.parametrize(
    ("index", "slope", "size"),
    [
        ("i", 1, 64),
        ("i * 4", 4, 64),
        ("i // 4", 0.25, 16),
        ("i % 4", 1, 16),
        ("(i // 4) * 4 + i % 4", 1, 64),
        ("(i // 4) * 16 + i % 4", 1, 64),
        ("(i // 4) * 16", 4, 16),
        ("63 - i", -1, 64),
        ("7", 0, 4),
    ],
)
def test_steps_are_those_of_linear_forms(index, slope, size):
    found = _one(index)
    assert found[:2] == (slope, size)


def test_neighbours_of_one_buffer_are_one_footprint():
    text = "def f(A: f32[66], B: f32[64]):\n    for i in range(64):\n"
    text += "        B[i] = A[i] + A[i + 1] + A[i + 2]\n"
    (statement,) = nest(text).statements
    by_name = {b.name: f[0].size_bytes for b, f in footprints(statement, 64).items()}
    assert by_name == {"A": 66 * 4, "B": 64 * 4}


def test_indices_that_data_decide_may_be_anywhere():
    text = "def f(A: f32[100], P: i64[8], B: f32[8]):\n    for i in range(8):\n"
    text += "        B[i] = A[P[i]]\n"
    (statement,) = nest(text).statements
    load = next(a for a in statement.accesses if a.buffer.name == "A")
    assert load.slopes == (100.0,)
