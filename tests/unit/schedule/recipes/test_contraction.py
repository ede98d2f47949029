"""The contraction recipe: plans that fit the machine, drafts that ask for nothing impossible."""

import itertools
import random
from dataclasses import replace

import pytest

from tests.programs import matmul, symbolic_matmul
from tilewright.build import build
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.cycles import contraction_cycles, draft_contraction
from tilewright.schedule.recipes.contraction.space import (
    ContractionPoint,
    ContractionShape,
    contraction_points,
    contraction_space,
)
from tilewright.schedule.recipes.table import Table
from tilewright.schedule.source import DRAFT, Workload, not_followed
from tilewright.target import Target
from tilewright.tensor import library
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, sum_over

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64+dotprod")
SHAPES = [
    ContractionShape(batch, rows, columns, reduce, size, right_is_constant=True, threads=threads)
    for batch, rows, columns, reduce, size, threads in itertools.product(
        (1, 64), (1, 5, 700), (8, 1000), (1, 96), (4, 8), (1, 4)
    )
]


@pytest.mark.parametrize("name", TARGETS)
def test_tiles_fit_the_registers(name):
    target = Target.named(name)
    for shape in SHAPES:
        for point in contraction_space(shape, target):
            assert point.lanes == target.lanes(shape.element_bytes)
            assert point.tile_rows * point.tile_vectors < target.vector_registers
            assert point.tile_rows <= shape.rows
            assert shape.reduce % point.reduce_per_block == 0


@pytest.mark.parametrize("name", TARGETS)
def test_more_of_anything_is_not_predicted_to_be_faster(name):
    target = Target.named(name)
    for shape in SHAPES:
        _, base = draft_contraction(shape, target)
        for field in ("batch", "columns", "reduce"):
            larger = {**shape.__dict__, field: getattr(shape, field) * 2}
            _, cycles = draft_contraction(ContractionShape(**larger), target)
            assert cycles >= 0.995 * base, (shape, field)  # a draft does not price every point


@pytest.mark.parametrize(
    ("program", "fetched"),
    [
        (matmul(96, 64, 1024), ("B",)),  # panels of the constant operand
        (matmul(4096, 32, 64), ("A",)),  # all of it stays: the rows are the stream
        (
            library.batched_matmul(16, 128, 128, 128),
            ("A", "B"),
        ),  # packed in the kernel, batch by batch
    ],
)
def test_what_is_fetched_ahead(program, fetched):
    constants = frozenset({"B"} if len(program.params[0].shape) == 2 else ())
    schedule = draft(program, Target.named("x86-64-v3"), 1, constants)
    notes = [dict(schedule.loop(loop).notes) for loop in schedule.loops(schedule.blocks()[-2])]
    found = [note["prefetch"] for note in notes if "prefetch" in note]
    assert found == [fetched]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "program", [matmul(96, 64, 256), matmul(1, 64, 256), matmul(200, 96, 48), symbolic_matmul()]
)
def test_drafts_leave_no_remarks(program, threads):
    kernel = build(program, threads=threads)
    assert kernel.report.remarks == ()


def drafted(program, **decisions):
    """The schedule of a product with some decisions of the drafted point changed."""
    target = Target.named("x86-64-v3")
    point = draft(program, target, 1, ("B",)).decisions[0].point
    return draft(program, target, 1, ("B",), replace(point, **decisions))


def test_blocks_of_rows_are_copied_where_their_panels_begin():
    schedule = drafted(matmul(96, 64, 1024), tile_rows=4, row_tiles_per_block=6, copies_left=1)
    assert schedule.remarks == []
    assert [schedule.loop(n).extent.value for n in schedule.loops("A_read")[:2]] == [4, 24]


def test_column_blocks_are_the_outermost_loop():
    schedule = drafted(
        matmul(96, 256, 64), tile_rows=4, tile_vectors=2, row_tiles_per_block=6, spans=4, order=0
    )
    assert schedule.remarks == []
    extents = [schedule.loop(name).extent.value for name in schedule.loops("C")]
    assert extents[:4] == [4, 4, 4, 6]  # spans, blocks of rows, panels, tiles


def test_panels_further_ahead_are_fetched_if_the_point_says_so():
    schedule = drafted(matmul(96, 64, 1024), prefetch=2)
    notes = [dict(schedule.loop(name).notes) for name in schedule.loops("C")]
    assert [n["prefetch_ahead"] for n in notes if "prefetch" in n] == [2]


def test_copies_are_drafted_only_where_rows_share_sets():
    target = Target.named("x86-64-v3")
    about = {"right_is_constant": True, "threads": 1, "may_copy_left": True}
    for pitch, copied in ((4096, True), (4096 + 64, False)):
        shape = ContractionShape(1, 96, 64, 1024, 4, pitch_bytes=pitch, **about)
        assert contraction_space(shape, target)["copies_left"].any() == copied


def test_copied_rows_do_not_conflict():
    """Rows that share all their sets are worth a copy, if enough panels use it."""
    target = Target.named("x86-64-v3")
    about = {"right_is_constant": True, "threads": 1, "may_copy_left": True, "pitch_bytes": 4096}
    shape = ContractionShape(1, 96, 4096, 1024, 4, **about)
    point = ContractionPoint(12, 1, 8, 8, 1024, parallel=0)
    table = Table.of([point, replace(point, copies_left=1)])
    plain, copied = contraction_cycles(shape, target.machine, table)
    assert copied < plain


def test_tiles_are_alike_where_the_result_is_stored_in_blocks():
    """What follows writes blocks of columns: a narrower last tile had no loop for them."""
    x, w = placeholder("X", (20, 24)), placeholder("W", (256, 24))
    b, r = placeholder("b", (256,)), reduce_axis(24, "k")
    y = compute("Y", (20, 256), lambda i, j: sum_over(x[i, r] * w[j, r], r))
    z = compute("Z", (16, 20, 16), lambda o, i, j: y[i, o * 16 + j] + b[o * 16 + j])
    program, target = func("blocks", [x, w, b], [z]), Target.named("x86-64-v4")
    constants = frozenset({"W", "b"})
    (decision,) = draft(program, target, 1, constants).decisions
    assert decision.shape.result_block == 16
    space = contraction_points(decision.shape, target)
    points = space.sample(random.Random(3), 60)
    assert {point.tile_vectors for point in points} <= {1, 2, 4, 8, 16}
    for point in points:
        given = Workload(program, target, 1, constants, points={decision.block: point})
        assert not_followed(DRAFT.schedule(given), given, given.points) is None
