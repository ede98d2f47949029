"""How far indices reach: what is said is taken, both ends of it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.onnx.lowered import check_lowering
from tilewright.dtypes import f32
from tilewright.errors import GraphError
from tilewright.graph.ir import TensorType
from tilewright.graph.ops import Remap, axis
from tilewright.graph.ops.ends import ends
from tilewright.graph.sizes import as_shape, evaluate_size
from tilewright.tensor import ir as tir

O0, O1 = axis(0), axis(1)
M, N = tir.Var("m"), tir.Var("n")

REACHING = {
    "a step": O0 + 3,
    "steps back": N - 1 - O0 * 2,
    "a number of steps": 2 + 2 * O1,
    "two dimensions": O0 * 4 + O1,
    "a quotient": O0 // 3,
    "a quotient of a sum": (O0 * 2 + O1 + 1) // 4,
    "a remainder": O1 % 4,
    "a block and a place in it": O0 // 2 + O1 % 2,
}


@pytest.mark.parametrize("name", REACHING)
def test_ends_are_those_of_all_values(name):
    index, extents = REACHING[name], {O0: M, O1: N}
    for m, n in product((1, 2, 5, 9), (1, 3, 8)):
        sizes = {M: m, N: n}
        values = [
            evaluate_size(index, {**sizes, O0: i, O1: j}) for i, j in product(range(m), range(n))
        ]
        found = ends(index, extents)
        assert found is not None
        assert [evaluate_size(end, sizes) for end in found] == [min(values), max(values)]


@pytest.mark.parametrize(
    "index",
    [O0 - O0 % 2 * 2, (O0 * 2) % 4, O0 % N, O0 * O1, tir.minimum(O0, 3), O0 // N, 3 // (O0 + 1)],
)
def test_what_is_too_wide_to_refuse_by_it_is_not_said(index):
    assert ends(index, {O0: M, O1: N}) is None


def remap(index, length, source):
    return Remap(as_shape([length]), (index,)), TensorType(f32, as_shape([source]))


def test_a_source_that_is_too_short_for_blocks_is_refused():
    op, source = remap(O0 // 2, 9, 4)
    with pytest.raises(GraphError) as refused:
        op.infer([source])
    assert refused.value.code.id == "G012"
    assert remap(O0 // 2, 9, 5)[0].infer([TensorType(f32, as_shape([5]))])


def test_what_is_not_known_is_brought_inside():
    """Wherever an index goes, the tensor program reads a place of its source."""
    op, source = remap(O0 * O0 - 3, 6, 7)
    check_lowering(op, [source], [np.arange(7, dtype=np.float32)], {}, 1)


def test_what_shapes_prove_is_read_as_it_is():
    op, source = remap((O0 + N) % (N * 2), N * 2, N * 2)
    assert op._is_within(op.indices[0], source.shape[0])
