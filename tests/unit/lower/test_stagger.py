"""Planes of temporary buffers that would share sets of a cache are kept apart by a line."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import build
from tilewright.dtypes import f32
from tilewright.lower.stagger import gaps_of
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder
from tilewright.tensor.visit import walk_stmts

TARGET = Target.named("x86-64-v3")
LINE = 16


def allocated(program: tir.Func) -> list[tir.Buffer]:
    return [s.buffer for s in walk_stmts(program) if type(s) is tir.Alloc]


def two_stages(planes: int, rows: int, columns: int, *, whole: bool = False) -> tir.Func:
    """A stage that writes planes, and one that reads them, by single places or as one row."""
    x = placeholder("X", (rows, columns, planes))
    t = compute("T", (planes, rows, columns), lambda p, i, j: x[i, j, p] * 2.0)
    if whole:
        size = rows * columns
        y = compute(
            "Y",
            (planes * size,),
            lambda k: t[k // size, k // columns % rows, k % columns] + 1.0,
        )
    else:
        y = compute("Y", (rows, columns, planes), lambda i, j, p: t[p, i, j] + 1.0)
    return func("stages", [x], [y])


def gaps(program: tir.Func) -> dict[str, tuple[int, int]]:
    found = gaps_of(program, allocated(program), TARGET)
    return {buffer.name: gap for buffer, gap in found.items()}


def test_planes_that_are_a_page_apart():
    assert gaps(two_stages(36, 32, 32)) == {"T": (0, LINE)}


@pytest.mark.parametrize("shape", [(64, 30, 34), (64, 3, 345), (64, 23, 89), (64, 21, 98)])
def test_planes_that_are_nearly_pages_apart_are_a_line_more_than_that(shape):
    (_, gap) = gaps(two_stages(*shape))["T"]
    plane = shape[1] * shape[2]
    assert (plane + gap) % 1024 == LINE


def test_planes_that_share_a_few_sets():
    """18432 bytes apart are two sets, for 25 planes; rows of 2048 bytes have the same two."""
    assert gaps(two_stages(25, 9, 512)) == {"T": (1, LINE)}
    assert gaps(two_stages(16, 9, 512)) == {"T": (1, LINE)}  # 144 rows in 16 places
    assert not gaps(two_stages(1, 9, 512))


def test_a_gap_is_where_it_leaves_fewest_in_a_set():
    """A line behind each of 64 rows would bring planes to the same set again."""
    assert gaps(two_stages(36, 64, 512)) == {"T": (0, LINE)}


@pytest.mark.parametrize(
    "shape", [(36, 31, 32), (4, 32, 32), (36, 1, 3), (36, 1, 15), (36, 65, 16), (36, 49, 128)]
)
def test_other_planes_are_dense(shape):
    assert not gaps(two_stages(*shape))


def test_planes_that_one_loop_runs_through_are_dense():
    assert not gaps(two_stages(36, 32, 32, whole=True))


def test_sizes_that_are_not_known_have_no_gaps():
    n = tir.Var("n")
    buffer = tir.Buffer("T", (tir.Const(36), n, tir.Const(1024)), f32)
    assert not gaps_of(two_stages(36, 32, 32), [buffer], TARGET)


@pytest.mark.parametrize("shape", [(32, 32, 36), (9, 512, 25)])
@pytest.mark.parametrize("whole", [False, True])
def test_results_do_not_change(whole, shape):
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    program = two_stages(shape[-1], *shape[:-1], whole=whole)
    y = np.zeros(program.params[-1].shape[0].value if whole else shape, np.float32)
    build(program, trace="none")(x, y)
    expected = x * 2 + 1
    want = expected.transpose(2, 0, 1).reshape(-1) if whole else expected
    np.testing.assert_allclose(y, want, rtol=1e-6)
