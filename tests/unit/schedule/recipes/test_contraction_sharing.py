"""What the busiest thread does of a product: as counted, iteration by iteration."""

import itertools
import math
import random
from dataclasses import replace

import numpy as np
import pytest

from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.space import (
    LEFT_STAYS,
    ContractionPoint,
    ContractionShape,
)
from tilewright.schedule.recipes.contraction.work import Work, balance
from tilewright.schedule.recipes.table import Table
from tilewright.target import Target

TARGET = Target.named("x86-64-v4")


def shape_of(rows, columns, threads, batch=1):
    about = {"batch": batch, "rows": rows, "columns": columns, "reduce": 512}
    return ContractionShape(**about, element_bytes=4, right_is_constant=True, threads=threads)


def points_of(shape, seed, count=60):
    """Points whose shared loop has spans, panels or cuts in it, and whole tiles."""
    drawn = CONTRACTION.points(shape, TARGET).sample(random.Random(seed), 4 * count)
    plain = [
        replace(p, row_tiles_per_block=1)
        for p in drawn
        if p.parallel and p.parts == 1 and not p.share_tiles and p.order == LEFT_STAYS
    ]
    return [p for p in plain if shape.rows % p.tile_rows == 0][:count]


def widths_of(shape, point):
    """Vectors of each panel."""
    vectors = math.ceil(shape.columns / point.lanes)
    return [min(point.tile_vectors, vectors - at) for at in range(0, vectors, point.tile_vectors)]


def iterations_of(shape, point):
    """The work of each iteration of the shared loop, in order."""
    widths = widths_of(shape, point)
    outer = shape.batch * (shape.rows // point.tile_rows)

    def cut(count):
        each = math.ceil(len(widths) / count)
        return [sum(widths[at : at + each]) for at in range(0, len(widths), each)]

    if point.reduce_per_block < shape.reduce:
        return cut(point.shares) * outer
    if point.spans:
        spans = cut(point.spans)
        if len(spans) >= point.shares:
            return [each * outer for each in spans]
        return [each for each in spans for _ in range(outer)]
    loops = (shape.batch, shape.rows // point.tile_rows)
    if shape.batch >= point.shares or math.prod(loops) >= point.shares:
        return None  # whole panels: nothing that this is about
    return widths * outer


@pytest.mark.parametrize(
    ("rows", "columns", "threads"),
    list(itertools.product((8, 48, 1024), (1024, 999, 96), (2, 3, 8))),
)
def test_the_busiest_thread_does_what_its_iterations_are(rows, columns, threads):
    shape = shape_of(rows, columns, threads)
    seen = 0
    for point in points_of(shape, seed=rows + columns + threads):
        work = Work.of(shape, TARGET.machine, Table.of([point]))
        iterations = iterations_of(shape, point)
        if iterations is None or len(iterations) != int(work.iterations[0]):
            continue  # spans of two sizes are not fused with panels
        seen += 1
        busiest = sum(iterations[: math.ceil(len(iterations) / threads)]) / sum(iterations)
        share = balance(work.iterations, work.threads) * work.unevenness() / work.threads
        assert share[0] == pytest.approx(busiest), point
    assert seen


def test_spans_that_leave_one_thread_more_to_do_are_not_drafted():
    """22 panels in spans of three: one of two threads had 12 of them."""
    shape = shape_of(1024, 1024, threads=2)
    point = ContractionPoint(8, 3, 16, 8, 512, parallel=1, spans=8, shares=8)
    even = replace(point, spans=0)
    table = Table.of([point, even])
    work = Work.of(shape, TARGET.machine, table)
    spans, blocks = work.unevenness()
    assert spans == pytest.approx(12 / (21 + 1 / 3) * 2)
    assert blocks == pytest.approx(1.0)
    assert np.argmin(CONTRACTION.cycles(shape, TARGET.machine, table)) == 1
