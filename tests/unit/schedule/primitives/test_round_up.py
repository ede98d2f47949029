"""`round_up`: whole tiles, and inputs that are read at their last element again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.expect import raises_code
from tests.programs import matmul_relu
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import loads_of
from tilewright.tensor.build import compute, func, max_over, placeholder, reduce_axis, size
from tilewright.tensor.interpret import interpret
from tilewright.tensor.visit import walk


def rows(n: int | tir.Expr = 6) -> tir.Func:
    """The greatest difference of neighbours in a row, doubled: a copy, a fold, a map."""
    a = placeholder("A", (n, 5))
    k = reduce_axis(4, "k")
    b = compute("B", (n, 5), lambda i, j: a[i, j] * 2.0)
    m = compute("M", (n,), lambda i: max_over(b[i, k + 1] - b[i, k], k))
    c = compute("C", (n,), lambda i: m[i] + 1.0)
    return func("rows", [a], [c])


def test_program(golden):
    s = Schedule(rows())
    s.round_up("B", "vi", 4)
    s.round_up("M", "vi", 4)
    assert golden == s.func


def test_a_symbolic_extent(golden):
    s = Schedule(rows(size("n")))
    s.round_up("M", "vi", 8)
    assert golden == s.func


@pytest.mark.parametrize("n", [1, 3, 4, 7])
def test_meaning(n):
    program = rows(size("n"))
    s = Schedule(program)
    s.round_up("B", "vi", 4)
    s.round_up("M", "vi", 4)
    array = np.random.default_rng(n).standard_normal((n, 5)).astype(np.float32)
    assert np.array_equal(interpret(s.func, [array])["C"], interpret(program, [array])["C"])


def test_a_multiple_stays_as_it_is():
    s = Schedule(rows(8))
    before = s.func
    s.round_up("M", "vi", 4)
    assert s.func is before


def test_an_output_keeps_its_size():
    with raises_code("S202"):
        Schedule(rows()).round_up("C", "vi", 4)


def test_two_tiles_run_as_one_length():
    """What it is for: the loop over the result splits without a shorter tile."""
    s = Schedule(matmul_relu(m=5))
    s.round_up("C", "vi", 4)
    tiles, _ = s.split(s.loops("C")[0], 4)
    assert tir.int_value(s.loop(tiles).extent) == 2


def test_an_input_that_is_long_enough_is_read_as_it_is():
    """Windows of two that move by two, over a copy with room for one more of them."""
    a, k = placeholder("A", (9,)), reduce_axis(2, "k")
    b = compute("B", (9,), lambda i: a[i] * 2.0)
    m = compute("M", (3,), lambda i: max_over(b[i * 2 + k], k))
    c = compute("C", (3,), lambda i: m[i] + 1.0)
    program = func("windows", [a], [c])
    s = Schedule(program)
    s.round_up("M", "vi", 4)
    (load,) = loads_of(s.block("M"))
    assert not any(isinstance(part, tir.Min) for part in walk(load))
    array = np.random.default_rng(1).standard_normal(9).astype(np.float32)
    assert np.array_equal(interpret(s.func, [array])["C"], interpret(program, [array])["C"])
    s.round_up("M", "vi", 5)
    (load,) = loads_of(s.block("M"))
    assert any(isinstance(part, tir.Min) for part in walk(load))
    assert np.array_equal(interpret(s.func, [array])["C"], interpret(program, [array])["C"])
