"""Any tile of a product that has the extents of an instruction can be given to it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, note
from hypothesis import strategies as st

from tests.programs import assert_same_meaning
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, sum_over

SMALL = st.integers(1, 4)


def product(m: int, n: int, k: int, *, batch: int, swapped: bool) -> tir.Func:
    """C[b, i, j] = Σ A[b, i, k] · B[b, k, j], with the factors in either order."""
    a, b = placeholder("A", (batch, m, k)), placeholder("B", (batch, k, n))
    r = reduce_axis(k, "k")

    def value(x: tir.Expr, i: tir.Expr, j: tir.Expr) -> object:
        left, right = a[x, i, r], b[x, r, j]
        return sum_over(right * left if swapped else left * right, r)

    return func("product", [a, b], [compute("C", (batch, m, n), value)])


@given(
    tile=st.tuples(SMALL, SMALL, SMALL),
    count=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    outer=st.permutations(["x", "i_0", "j_0", "k_0"]),
    inner=st.permutations(["i_1", "j_1", "k_1"]),
    swapped=st.booleans(),
    first=st.sampled_from(["decompose", "blockize", "tensorize"]),
)
def test_products_in_tiles(tile, count, outer, inner, swapped, first):
    m, n, k = (t * c for t, c in zip(tile, count, strict=True))
    program = product(m, n, k, batch=2, swapped=swapped)
    schedule = Schedule(program)
    for loop, size in zip("ijk", tile, strict=True):
        schedule.split(loop, size)
    schedule.reorder(*outer, *inner)
    target = inner[0]
    if first == "blockize":
        target = schedule.blockize(target)
    elif first == "decompose":
        schedule.decompose_reduction("C", outer[outer.index("k_0")])
    elif count[2] == 1:
        # The tile is the whole reduction: its start value stays inside, where none may be.
        schedule.decompose_reduction("C", "k_0")
    if first == "blockize" and schedule.block("C").init is not None:
        return
    note(str(schedule.func))
    schedule.tensorize(target, f"f32.gemm({tile[0]},{tile[1]},{tile[2]})")
    note(str(schedule.func))
    assert_same_meaning(schedule, program, np.random.default_rng(0))
