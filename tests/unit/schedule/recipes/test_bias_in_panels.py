"""The bias with the weights: which vectors can lie there, where they are, and what it saves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tilewright.dtypes import f32, f64
from tilewright.schedule import Schedule
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.cycles import contraction_cycles, draft_space
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.space import (
    RIGHT_STAYS,
    ContractionPoint,
    ContractionShape,
    contraction_points,
    contraction_space,
)
from tilewright.schedule.recipes.table import Table
from tilewright.schedule.source import DRAFT, Workload, not_followed
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute, func, placeholder, reduce_axis, sum_over
from tilewright.tensor.layout import StoreAt
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.packing import packing_of

TARGET = Target.named("x86-64-v3")
ROWS, COLUMNS, STEPS = 12, 40, 24
SHAPE = ContractionShape(
    1, 96, 4096, 1024, 4, right_is_constant=True, threads=1, may_keep_right=True, biases=1
)


def sums() -> tuple[Tensor, Tensor, Tensor]:
    a, w = placeholder("A", (ROWS, STEPS)), placeholder("W", (COLUMNS, STEPS))
    r = reduce_axis(STEPS, "k")
    return a, w, compute("Y", (ROWS, COLUMNS), lambda i, j: sum_over(a[i, r] * w[j, r], r))


def drafted(program: tir.Func, constants: tuple[str, ...] = ("W", "b"), **decisions: int):
    made = draft(program, TARGET, 1, constants)
    (point,) = [d.point for d in made.decisions if d.recipe is CONTRACTION]
    return draft(program, TARGET, 1, constants, replace(point, **decisions))


def biases(schedule: Schedule) -> int:
    (shape,) = [d.shape for d in schedule.decisions if d.recipe is CONTRACTION]
    return shape.biases


def with_vector(shape: tuple[int, ...], at: Callable[..., tuple[Any, ...]], dtype=f32):
    a, w, y = sums()
    b = placeholder("b", shape, dtype)
    z = compute("Z", y.shape, lambda i, j: y[i, j] + b[at((i, j))].to(f32))
    return func("added", [a, w, b], [z])


VECTORS: dict[str, tuple[tir.Func, int]] = {
    "plain": (with_vector((COLUMNS,), lambda at: (at[1],)), 1),
    "of two dimensions": (with_vector((1, COLUMNS), lambda at: (0, at[1])), 1),
    "in blocks": (with_vector((COLUMNS // 8, 8), lambda at: (at[1] // 8, at[1] % 8)), 1),
    "along the rows": (with_vector((ROWS,), lambda at: (at[0],)), 0),
    "all": (with_vector((ROWS, COLUMNS), lambda at: at), 0),
    "a single number": (with_vector((1,), lambda _: (0,)), 0),
    "a part": (with_vector((COLUMNS + 1,), lambda at: (at[1] + 1,)), 0),
    "turned": (with_vector((8, COLUMNS // 8), lambda at: (at[1] % 8, at[1] // 8)), 0),
    "of another type": (with_vector((COLUMNS,), lambda at: (at[1],), f64), 0),
}


@pytest.mark.parametrize(("program", "count"), VECTORS.values(), ids=VECTORS)
def test_vectors_along_the_columns_can_lie_with_the_panels(program, count):
    assert biases(drafted(program)) == count


def test_only_constants_that_nobody_else_reads_can():
    a, w, y = sums()
    b = placeholder("b", (COLUMNS,))
    z = compute("Z", y.shape, lambda i, j: y[i, j] + b[j])
    alone = func("alone", [a, w, b], [z])
    twice = compute("T", (COLUMNS,), lambda j: b[j] * 2.0)
    both = func("both", [a, w, b], [z, twice])
    assert biases(drafted(alone)) == 1
    assert biases(drafted(alone, ("W",))) == 0
    assert biases(drafted(alone, ("b",))) == 0
    assert biases(drafted(both)) == 0


def test_what_is_added_follows_the_last_step_of_its_panel(rng):
    """Of each group, where columns are no multiple of the panel and the sum has three loops."""
    x, w = placeholder("A", (1, 9, 9, 12)), placeholder("W", (44, 6, 3, 3))
    y, b = convolve(x, w, groups=2), placeholder("b", (44,))
    z = compute("Z", y.shape, lambda *at: y[at] + b[at[-1]])
    program = func("grouped", [x, w, b], [z])
    schedule = drafted(program, tile_rows=3, tile_vectors=2, bias_in_panels=1)
    assert schedule.remarks == []
    stored = schedule.buffer("W")
    assert [tir.int_value(size) for size in stored.shape] == [2, 2, 6 * 9 + 1, 16]
    packing = packing_of(stored)
    assert packing is not None
    weights, bias = rng.uniform(1, 2, (44, 6, 3, 3)), rng.uniform(1, 2, 44)
    panels = packing.pack(weights, bias)
    for group in range(2):
        own = panels[group].transpose(1, 0, 2).reshape(55, 32)
        np.testing.assert_array_equal(own[-1, :22], bias[group * 22 :][:22])
        assert not own[:, 22:].any()
        expected = weights[group * 22 :][:22].reshape(22, 54)
        np.testing.assert_array_equal(np.sort(own[:-1, :22].T), np.sort(expected))


def test_several_vectors_follow_each_other():
    a, w, y = sums()
    g, b = placeholder("g", (COLUMNS,)), placeholder("b", (COLUMNS,))
    z = compute("Z", y.shape, lambda i, j: y[i, j] * g[j] + b[j])
    schedule = drafted(func("scaled", [a, w, g, b], [z]), ("W", "g", "b"), bias_in_panels=1)
    guests = [step for step in schedule.buffer("W").layout if isinstance(step, StoreAt)]
    assert [guest.name for guest in guests] == ["g", "b"]
    assert [param.name for param in schedule.func.params] == ["A", "W", "Z"]
    assert biases(schedule) == 2


def test_drafts_leave_it_and_the_whole_space_has_both():
    assert not contraction_space(SHAPE, TARGET)["bias_in_panels"].any()
    assert not draft_space(SHAPE, TARGET)["bias_in_panels"].any()
    *_, axis = contraction_points(SHAPE, TARGET).axes
    assert {name: column.tolist() for name, column in axis.items()} == {"bias_in_panels": [0, 1]}
    none = replace(SHAPE, biases=0)
    assert contraction_points(none, TARGET).size * 2 == contraction_points(SHAPE, TARGET).size


def test_parts_that_are_added_up_later_have_no_panel_at_hand():
    space = contraction_points(replace(SHAPE, threads=2, parts=(2, 4)), TARGET)
    rows = space.table(np.random.default_rng(0).integers(0, space.size, 20_000))
    together = rows.where(rows["bias_in_panels"] == 1)
    assert len(together)
    assert set(together["parts"].tolist()) == {1}
    assert set(rows["parts"].tolist()) == {1, 2, 4}


def test_what_is_fetched_ahead_is_not_waited_for():
    """Where nothing is, both streams are waited for alike."""
    point = ContractionPoint(6, 2, 8, 16, 1024, parallel=0, prefetch=1)
    points = [point, replace(point, prefetch=0), replace(point, order=RIGHT_STAYS)]
    apart, together = (
        contraction_cycles(SHAPE, TARGET.machine, Table.of(rows))
        for rows in (points, [replace(p, bias_in_panels=1) for p in points])
    )
    assert together[0] < apart[0]
    assert (together > 0.99 * apart).all()
    none = replace(SHAPE, biases=0)
    np.testing.assert_array_equal(apart, contraction_cycles(none, TARGET.machine, Table.of(points)))
    np.testing.assert_allclose(together[1:], apart[1:])


def test_a_point_that_asks_for_a_bias_where_there_is_none_is_not_followed():
    """What was measured would not be what was asked for."""
    a, w, y = sums()
    plain = func("plain", [a, w], [y])
    (decision,) = draft(plain, TARGET, 1, ("W",)).decisions
    asked = {decision.block: replace(decision.point, bias_in_panels=1)}
    workload = Workload(plain, TARGET, 1, frozenset({"W"}), points=asked)
    assert not_followed(DRAFT.schedule(workload), workload, asked) is not None
