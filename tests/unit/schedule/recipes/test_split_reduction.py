"""Threads share a long reduction where tiles are too few for them, in parts of equal length."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.programs import matmul, matmul_relu, symbolic_matmul
from tilewright.build import build
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.cycles import draft_contraction
from tilewright.schedule.recipes.contraction.space import ContractionPoint, ContractionShape
from tilewright.schedule.recipes.recipe import Decision
from tilewright.schedule.schedule import Schedule
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import func, placeholder, size
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.visit import free_vars

V3 = Target.named("x86-64-v3")


def parts_of(s: Schedule) -> list[int | None]:
    """How many parts threads share: the parallel loops over the first dimension of partial sums."""
    found: list[int | None] = []
    for block in (s.block(name) for name in s.blocks() if name.endswith("_rf")):
        part = block.writes[0].ranges[0].start
        bindings = [b for it, b in zip(block.iters, block.bindings, strict=True) if it.var is part]
        loops = [s.loop(var.name) for binding in bindings for var in free_vars(binding)]
        parallel = [loop for loop in loops if loop.kind is tir.LoopKind.PARALLEL]
        found += [tir.int_value(loop.extent) for loop in parallel]
    return found


@pytest.mark.parametrize(
    ("steps", "threads", "parts"),
    [
        (65536, 2, 2),
        (60000, 3, 6),  # two are as busy as three
        (65536, 3, 8),  # three, three and two
        (65536, 5, 8),
        (40002, 4, 6),
    ],
)
def test_a_product_of_one_tile_is_summed_up_in_parts(steps, threads, parts):
    s = draft(matmul(4, 16, steps), V3, threads, ["B"])
    assert s.remarks == []
    assert parts_of(s) == [parts]


def window(channels: int, kernel: int) -> tir.Func:
    """A convolution with one place of results."""
    x = placeholder("X", (1, kernel, kernel, channels))
    w = placeholder("W", (8, channels, kernel, kernel))
    return func("window", [x, w], [convolve(x, w)])


def test_any_loop_of_the_sum_may_be_cut():
    """4999 is a prime number: threads share the lines of the window."""
    s = draft(window(4999, 3), V3, 3, ["W"])
    assert s.remarks == []
    assert parts_of(s) == [3]


@pytest.mark.parametrize(
    ("program", "threads", "remark"),
    [
        (matmul(1, 8, 65537), 2, "C: 2 threads do not share a sum of 65537 steps"),
        (window(4999, 2), 3, "Y: 3 threads do not share a sum of 2 × 2 × 4999 steps"),
    ],
    ids=["matmul", "window"],
)
def test_a_sum_without_equal_parts_stays_whole_and_says_so(program, threads, remark):
    s = draft(program, V3, threads, ["B", "W"])
    assert parts_of(s) == []
    assert s.remarks == [remark]


def test_one_tile_is_for_one_thread():
    """A parallel loop of one iteration would keep the sums out of the registers."""
    kernel = build(matmul(1, 4, 65537), threads=2)
    assert kernel.report.remarks == ("C: 2 threads do not share a sum of 65537 steps",)
    s = draft(matmul(1, 8, 65537), V3, 2)
    kinds = {s.loop(loop).kind for block in s.blocks() for loop in s.loops(block)}
    assert tir.LoopKind.PARALLEL not in kinds


@pytest.mark.parametrize(
    ("program", "threads"),
    [
        (matmul(4, 16, 65536), 1),
        (matmul(4, 16, 256), 2),
        (matmul(4, 4608, 65536), 2),
        (matmul(512, 16, 65536), 2),
        (matmul(4, 16, size("k")), 2),
        (symbolic_matmul(), 2),
    ],
    ids=["one thread", "too little work", "many panels", "many rows", "unknown length", "symbolic"],
)
def test_other_reductions_stay_whole_without_a_remark(program, threads):
    s = draft(program, V3, threads, ["B"])
    assert parts_of(s) == []
    assert s.remarks == []


def test_loops_that_were_chosen_elsewhere_are_kept():
    program = matmul(4, 16, 65536)
    assert parts_of(draft(program, V3, 2, ["B"])) == [2]
    shape = ContractionShape(1, 4, 16, 65536, 4, right_is_constant=True, threads=2)
    assert parts_of(draft(program, V3, 2, ["B"], draft_contraction(shape, V3)[0])) == []


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize(
    ("program", "meaning"),
    [
        (matmul(4, 4, 160000), lambda a, b: a @ b),
        (matmul_relu(3, 5, 350350), lambda a, b: np.maximum(a @ b, 0)),
        (window(4999, 3), lambda x, w: np.einsum("nhwc,ochw->no", x, w).reshape(1, 1, 1, 8)),
        (window(4999, 6), lambda x, w: np.einsum("nhwc,ochw->no", x, w).reshape(1, 1, 1, 8)),
    ],
    ids=["matmul", "epilogue", "window", "wide window"],
)
def test_shared_sums_are_right(program, meaning, threads):
    rng = np.random.default_rng(0)
    shapes = [[int(tir.int_value(d) or 0) for d in p.shape] for p in program.params]
    *operands, result = (rng.integers(-3, 4, shape).astype("f4") for shape in shapes)
    assert parts_of(draft(program, Target.host(), threads)) != []
    build(program, threads=threads)(*operands, result)
    assert np.array_equal(result, meaning(*operands))  # small integers: exact in any order


def rows_in_registers(s: Schedule) -> int:
    """Rows of the tile in which partial sums stay: its unrolled loops that a row has."""
    (block,) = (s.block(name) for name in s.blocks() if name.endswith("_rf"))
    spatial = [it.var for it in block.iters if it.kind is tir.IterKind.SPATIAL]
    bindings = dict(zip((it.var for it in block.iters), block.bindings, strict=True))
    names = {var.name for own in spatial for var in free_vars(bindings[own])}
    loops = [s.loop(name) for name in s.loops(block.name) if name in names]
    unrolled = [loop for loop in loops if loop.kind is tir.LoopKind.UNROLLED]
    return math.prod(tir.int_value(loop.extent) or 1 for loop in unrolled)


@pytest.mark.parametrize("height", [1, 3, 5])
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("threads", [2, 8])
def test_partial_sums_have_the_tile_of_the_point(height, window, threads):
    """Lines and columns of an image are rows of one product also where its sum is cut."""
    size = height + window - 1
    x = placeholder("X", (1, size, 4 + window, 64))
    w = placeholder("W", (32, 64, window, window))
    program = func("conv", [x, w], [convolve(x, w)])
    decisions: list[Decision] = []
    draft(program, V3, threads, ["W"], decisions=decisions)
    (own,) = (d for d in decisions if isinstance(d.point, ContractionPoint))
    assert own.shape.rows == height * 5
    about = {"tile_rows": 5, "tile_vectors": 1, "lanes": 8, "row_tiles_per_block": 99}
    parts = own.shape.parts[0]
    steps = own.shape.reduce // parts
    point = ContractionPoint(**about, reduce_per_block=steps, parallel=1, parts=parts)
    s = draft(program, V3, threads, ["W"], points=dict.fromkeys(own.blocks, point))
    assert s.remarks == []
    assert rows_in_registers(s) == 5
