"""Strided loads side by side are columns of a square tile: rows are loaded and turned."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilewright import build
from tilewright.dtypes import f32, f64, i8, i16
from tilewright.llvm.columns import columns_of, turned
from tilewright.llvm.emit import emit
from tilewright.llvm.writer import Value, Writer
from tilewright.lower import lower
from tilewright.schedule.draft import draft
from tilewright.target import Target
from tilewright.tensor.build import compute, func, placeholder

SHUFFLE = re.compile(r"(%\S+) = shufflevector \S+ x \S+ (%\S+), <.*?> (%\S+), <.*> <(.*)>")


def transpose(rows: int, columns: int, dtype):
    x = placeholder("X", (rows, columns), dtype)
    y = compute("Y", (columns, rows), lambda i, j: x[j, i])
    return func("transpose", [x], [y])


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_rows_are_turned(count, size):
    """Every shuffle that is written is done with numbers of places instead of values."""
    writer = Writer()
    rows = [Value(f"%row{n}", f"<{count} x float>") for n in range(count)]
    columns = turned(writer, rows, size)
    held = {f"%row{n}": [(n, lane) for lane in range(count)] for n in range(count)}
    for line in writer.region.lines:
        name, a, b, mask = SHUFFLE.fullmatch(line).groups()
        both = held[a] + held[b]
        held[name] = [both[int(lane.split()[1])] for lane in mask.split(",")]
    for n, column in enumerate(columns):
        assert held[column.text] == [(row, n) for row in range(count)]


def column(offset: int, bases: tuple[str, ...] = ("%a", "%b")):
    return ("buffer", bases, (0, 64), offset)


def test_tiles_are_whole():
    wanted = [(column(n), 4) for n in (0, 4, 8, 16, 20, 28)]
    assert columns_of(wanted) == {column(0): 0, column(4): 0, column(16): 16, column(20): 16}


def test_columns_of_different_rows_are_no_tile():
    assert not columns_of([(column(0), 4), (column(4, ("%a", "%c")), 4)])


@pytest.mark.parametrize("dtype", [f32, f64, i16, i8])
def test_a_transpose_has_no_loads_of_single_elements(dtype):
    target = Target.named("x86-64-v3")
    size = 4 * target.lanes(dtype.size_bytes)
    text = emit(lower(draft(transpose(size, size, dtype), target).func, target), target)
    assert "shufflevector" in text
    assert "insertelement" not in text


@pytest.mark.parametrize("dtype", [f32, f64, i16, i8])
@pytest.mark.parametrize("shape", [(8, 8), (16, 64), (37, 50), (128, 33), (64, 1024)])
def test_transposes(shape, dtype):
    x = np.random.default_rng(1).integers(-100, 100, shape).astype(dtype.numpy)
    y = np.zeros(shape[::-1], dtype.numpy)
    build(transpose(*shape, dtype))(x, y)
    np.testing.assert_array_equal(y, x.T)


def test_a_transpose_in_one_buffer_reads_what_was_written():
    """Rows are loaded again once a store may have changed them."""
    x = placeholder("X", (8, 16))
    t = compute("T", (8, 8), lambda i, j: x[j, i] * 2.0)
    y = compute("Y", (8, 8), lambda i, j: t[j, i] + x[j, i])
    data = np.random.default_rng(2).normal(size=(8, 16)).astype(np.float32)
    found = np.zeros((8, 8), np.float32)
    build(func("twice", [x], [y]))(data, found)
    np.testing.assert_allclose(found, data[:, :8] * 2 + data[:, :8].T, rtol=1e-6)
