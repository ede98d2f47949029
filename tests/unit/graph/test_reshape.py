"""Reshapes inside of kernels: only dimensions that change cost divisions."""

from __future__ import annotations

import pytest

from tests.onnx.lowered import lowered
from tilewright.dtypes import f32
from tilewright.graph.ir import TensorType
from tilewright.graph.ops import Reshape
from tilewright.graph.sizes import as_shape
from tilewright.tensor import ir as tir
from tilewright.tensor.printer import print_node
from tilewright.tensor.visit import walk

N, S = tir.Var("n"), tir.Var("s")

CASES = [
    ((N, S, 768), (N, S, 12, 64), "in0[vi0, vi1, vi2 * 64 + vi3]"),
    ((N, S, 12, 64), (N, S, 768), "in0[vi0, vi1, vi2 // 64, vi2 % 64]"),
    ((N, S), (N, 1, S, 1), "in0[vi0, vi2]"),
    ((1, N, 1, S), (N, S), "in0[0, vi0, 0, vi1]"),
    ((N, 1), (N,), "in0[vi0, 0]"),
    ((N, S, 4), (N * S, 4), "in0[vi0 // s, vi0 % s, vi1]"),
    ((6, 4), (4, 6), "in0[(vi0 * 6 + vi1) // 4, (vi0 * 6 + vi1) % 4]"),
    ((), (1, 1), "in0[()]"),
]


@pytest.mark.parametrize(("before", "after", "expected"), CASES)
def test_places(before: tuple[object, ...], after: tuple[object, ...], expected: str) -> None:
    program = lowered(Reshape(as_shape(after)), [TensorType(f32, as_shape(before))])  # type: ignore[arg-type]
    (load,) = {part for part in walk(program.body) if isinstance(part, tir.Load)}
    assert print_node(load) == expected
