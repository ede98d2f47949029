"""Every point of the spaces of windows can be followed, and computes what NumPy says."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from tests.examples import examples
from tests.windows import Windows, convolved, windows, windows_of
from tilewright.model.stored import stored_program
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.recipe import Decision
from tilewright.schedule.recipes.table import Table
from tilewright.schedule.recipes.windows.channel_space import ChannelPoint, ChannelShape
from tilewright.schedule.recipes.windows.channels import CHANNEL_WINDOWS
from tilewright.schedule.recipes.windows.line_space import LinePoint
from tilewright.schedule.recipes.windows.moves import Move
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, size
from tilewright.tensor.layout import LayoutStep, Reorder, Split
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.library.pool import pool

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
FORMS = ("last", "first", "blocks")
BLOCK = 16
RECIPE_OF = {"last": ChannelPoint, "blocks": ChannelPoint, "first": LinePoint}


def layout(form: str, rank: int) -> tuple[LayoutStep, ...]:
    space = range(1, rank - 1)
    if form == "first":
        return (Reorder((0, rank - 1, *space)),)
    return (
        (Split(rank - 1, BLOCK), Reorder((0, rank - 1, *space, rank))) if form == "blocks" else ()
    )


def stored(array: np.ndarray, form: str) -> np.ndarray:
    if form == "blocks":
        array = array.reshape(*array.shape[:-1], -1, BLOCK)
        return np.ascontiguousarray(np.moveaxis(array, -2, 1))
    return np.ascontiguousarray(np.moveaxis(array, -1, 1)) if form == "first" else array


class Case:
    """A window in a form, with a batch that is known or not, followed by something or not."""

    def __init__(self, data: st.DataObject, w: Windows, form: str) -> None:
        channels = data.draw(
            st.sampled_from((BLOCK, 3 * BLOCK) if form == "blocks" else (1, 5, 24))
        )
        self.form, self.w = form, w
        self.is_weighted = data.draw(st.booleans(), label="convolution")
        assume(max(w.kernel) > 1)
        batch = data.draw(st.integers(1, 2), label="batch")
        rng = np.random.default_rng(3)
        self.x = rng.integers(-9, 9, (batch, *w.space, channels)).astype(np.float32)
        self.weights = rng.integers(-9, 9, (channels, 1, *w.kernel)).astype(np.float32)
        n = size("n") if data.draw(st.booleans(), label="symbolic batch") else batch
        x, weights = placeholder("X", (n, *self.x.shape[1:])), placeholder("W", self.weights.shape)
        if self.is_weighted:
            y = convolve(x, weights, *w.geometry, channels)
            wanted = convolved(self.x, self.weights, w, channels)
        else:
            axes = tuple(range(-w.rank, 0))
            assume(windows_of(np.ones_like(self.x), w, 0).sum(axis=axes).min() > 0)
            y = pool(x, tir.Fold.MAX, w.kernel, *w.geometry)
            wanted = windows_of(self.x, w, -np.inf).max(axis=axes)
        if data.draw(st.booleans(), label="followed"):
            z, wanted = compute("Z", y.shape, lambda *at: y[at] * 2 + 1), wanted * 2 + 1
        else:
            z = y
        self.wanted = stored(wanted, form)
        made = func("f", [x, weights] if self.is_weighted else [x], [z])
        steps = layout(form, w.rank + 2)
        self.program = stored_program(made, {"X": steps, z.buffer.name: steps}) if steps else made

    def decision(self, target: Target, threads: int) -> Decision:
        """What is drafted for the window; some are no windows, such as those of one place."""
        decisions: list[Decision] = []
        draft(self.program, target, threads, ["W"], decisions=decisions)
        found = [d for d in decisions if isinstance(d.point, RECIPE_OF[self.form])]
        assume(found)
        return found[-1]

    def run(self, target: Target, threads: int, decision: Decision, point: object) -> None:
        """Follow a point, and compare."""
        points = dict.fromkeys(decision.blocks, point)
        s = draft(self.program, target, threads, ["W"], points=points)
        assert s.remarks == []
        constants = {"W": self.weights} if self.is_weighted else {}
        kernel = tw.build(
            self.program, target=target, threads=threads, trace=s.trace, constants=constants
        )
        np.testing.assert_array_equal(kernel(stored(self.x, self.form)), self.wanted)


def drawn(data: st.DataObject, table: Table[object], many: int) -> Sequence[object]:
    rows = st.lists(st.integers(0, len(table) - 1), min_size=1, max_size=many, unique=True)
    return [table.point(row) for row in data.draw(rows, label="rows")]


@pytest.mark.parametrize("form", FORMS)
@examples(12)
@given(w=windows(largest=15), threads=st.sampled_from([1, 2]), data=st.data())
def test_points_compute_what_numpy_says(form: str, w: Windows, threads: int, data: st.DataObject):
    case, target = Case(data, w, form), Target.host()
    decision = case.decision(target, threads)
    table = decision.recipe.space(decision.shape, target)
    for point in drawn(data, table, 2):
        case.run(target, threads, decision, point)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("form", FORMS)
@examples(8)
@given(w=windows(largest=15), threads=st.sampled_from([1, 8]), data=st.data())
def test_points_can_be_followed(name: str, form: str, w: Windows, threads: int, data):
    case, target = Case(data, w, form), Target.named(name)
    decision = case.decision(target, threads)
    table = decision.recipe.space(decision.shape, target)
    cycles = decision.recipe.cycles(decision.shape, target.machine, table)
    assert len(cycles) == len(table)
    assert np.isfinite(cycles).all()
    assert (cycles > 0).all()
    for point in drawn(data, table, 3):
        points = dict.fromkeys(decision.blocks, point)
        made = draft(case.program, target, threads, ["W"], points=points)
        assert made.remarks == []


@examples(10)
@given(
    space=st.tuples(st.integers(1, 19), st.integers(1, 19)),
    channels=st.sampled_from((1, 8, 24)),
    threads=st.sampled_from([1, 2]),
    data=st.data(),
)
def test_points_serve_images_of_all_sizes(
    space: tuple[int, int], channels: int, threads: int, data: st.DataObject
):
    w, target = Windows(space, (3, 3), (1, 1), (1, 1), (1,) * 4), Target.host()
    rng = np.random.default_rng(4)
    x = rng.integers(-9, 9, (1, *space, channels)).astype(np.float32)
    weights = rng.integers(-9, 9, (channels, 1, 3, 3)).astype(np.float32)
    inputs = [
        placeholder("X", (1, size("h"), size("w"), channels)),
        placeholder("W", weights.shape),
    ]
    program = func("f", inputs, [convolve(*inputs, *w.geometry, channels)])
    decisions: list[Decision] = []
    draft(program, target, threads, ["W"], decisions=decisions)
    found = [d for d in decisions if isinstance(d.point, ChannelPoint)]
    assume(found)
    table = found[-1].recipe.space(found[-1].shape, target)
    for point in drawn(data, table, 2):
        points = dict.fromkeys(found[-1].blocks, point)
        s = draft(program, target, threads, ["W"], points=points)
        assert s.remarks == []
        made = tw.build(program, threads=threads, trace=s.trace, constants={"W": weights})
        np.testing.assert_array_equal(made(x), convolved(x, weights, w, channels))


def test_costs_of_many_points_take_no_time():
    move = Move.of(3, 1, 1)
    shape = ChannelShape((1,), 56, 56, 1024, move, move, (3, 3), 58 * 58, 4, 8, has_border=True)
    target = Target.named("x86-64-v4")
    table = CHANNEL_WINDOWS.space(shape, target)
    large = table
    while len(large) < 100_000:
        columns = {name: np.tile(column, 2) for name, column in large.columns.items()}
        large = Table(ChannelPoint, columns)
    start = time.perf_counter()
    CHANNEL_WINDOWS.cycles(shape, target.machine, large)
    assert len(large) / (time.perf_counter() - start) > 200_000  # a slow machine has time, too
