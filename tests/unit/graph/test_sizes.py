"""Arithmetic on dimensions: sizes are at least one, which makes clamped slices simple."""

from __future__ import annotations

import pytest

from tilewright.graph.sizes import dims_equal, evaluate_size, tidy
from tilewright.tensor import ir as tir

N, S = tir.Var("n"), tir.Var("s")
ONE = tir.Const(1)

SIMPLER = {
    "at least one": (tir.maximum(N, 1), N),
    "one of them": (tir.minimum(ONE, N), ONE),
    "the last": (N - tir.maximum(N - 1, 0), ONE),
    "not from the end": (tir.Select(N - 1 < 0, N - 1 + N, N - 1), N - 1),
    "from the end": (tir.Select(-N < 0, N - N, -N), tir.Const(0)),
    "never minus one": (tir.Select(N.eq(-1), ONE, N), N),
    "an exact quotient": (N * S * 768 // (N * S * 12), tir.Const(64)),
    "a quotient by a sum": ((N * S + N) // (S + 1), N),
    "half of two": ((S * 2) - tir.minimum(S, S * 2), S),
}


@pytest.mark.parametrize("name", SIMPLER)
def test_tidy(name: str) -> None:
    given, expected = SIMPLER[name]
    assert tidy(given) == tidy(expected)
    for n in (1, 2, 5):
        for s in (1, 3, 4):
            sizes = {N: n, S: s}
            assert evaluate_size(given, sizes) == evaluate_size(expected, sizes)


def test_dimensions_that_may_differ_are_not_equal() -> None:
    assert dims_equal(N * S, S * N)
    assert not dims_equal(N, S)
    assert not dims_equal(tir.maximum(N, 2), N)
