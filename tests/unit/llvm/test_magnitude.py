"""Sizes in floats show what integers of 64 bits hide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.graph.ops.map import evaluate_expr
from tilewright.llvm.magnitude import TOO_MUCH, checked, magnitude
from tilewright.tensor import ir as tir

H, W = tir.Var("h"), tir.Var("w")


def value(expr: tir.Expr, h: int, w: int) -> float:
    bound: dict[tir.Var, object] = {H: np.int64(h), W: np.int64(w)}
    with np.errstate(over="ignore"):
        return evaluate_expr(expr, bound, int)


@pytest.mark.parametrize(
    ("expr", "h", "w"),
    [
        ((H + (1 << 62)) * 4, 5, 0),
        ((H + (1 << 40)) * (W + (1 << 40)), 5, 5),
        (H * W * H, 1 << 40, 1 << 40),
        ((H * (1 << 40) + 63) // 64 * 64, 1 << 40, 0),
        (tir.maximum(H * W, 4) - W, 1 << 50, 1 << 50),
    ],
)
def test_what_wraps_is_too_much(expr, h, w):
    assert value(checked(expr), h, w) == -1


@given(h=st.integers(1, 1 << 20), w=st.integers(1, 1 << 20), pad=st.integers(0, 1 << 10))
def test_what_is_memory_is_exact(h, w, pad):
    expr = ((H + 2 * pad) * (W + pad) * 4 + 63) // 64 * 64
    exact = ((h + 2 * pad) * (w + pad) * 4 + 63) // 64 * 64
    assert value(checked(expr), h, w) == exact
    assert exact <= value(magnitude(expr), h, w) < TOO_MUCH
