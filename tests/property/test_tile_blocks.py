"""Every block of tiles keeps the meaning of a convolution by minimal filters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tests.examples import examples
from tests.numeric.convolution_cases import Layer, normal_weights
from tilewright.dtypes import f32
from tilewright.schedule import Schedule
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.context import Context
from tilewright.schedule.recipes.grouping import groups_of, inline_producers
from tilewright.schedule.recipes.tile_blocks import TILE_BLOCKS, tiled_products
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.library.tile_weights import winograd_weights
from tilewright.tensor.library.winograd import convolve_winograd


@dataclass(frozen=True)
class Case:
    """A convolution of an image with so many lines and columns, and a ReLU."""

    layer: Layer
    lines: int
    columns: int
    channels: int
    filters: int

    @cached_property
    def weights(self) -> np.ndarray:
        return normal_weights(self.layer, self.channels, self.filters)

    def program(self, *, tiled: bool = True) -> tuple[tir.Func, np.ndarray]:
        """With its constant weights."""
        layer = self.layer
        x = placeholder("x", (1, self.lines, self.columns, self.channels))
        pads = (*layer.before, *layer.behind)
        if tiled:
            constant = winograd_weights(self.weights, layer.tiles)
            w = placeholder("w", constant.shape)
            y = convolve_winograd(x, w, layer.tiles, pads, layer.groups, name="y")
        else:
            constant = self.weights
            w = placeholder("w", constant.shape)
            y = convolve(x, w, layer.strides, layer.dilations, pads, layer.groups, name="y")
        z = compute("z", y.shape, lambda *at: tir.maximum(y[at], tir.const(0.0, f32)))
        return func("convolution", [x, w], [z]), constant


LAYERS = [
    Layer((3, 3), (4, 4)),
    Layer((3, 3), (2, 2)),
    Layer((3, 3), (6, 6)),
    Layer((3, 3), (3, 3), (2, 2)),
    Layer((5, 5), (2, 2)),
]
CASES = st.builds(
    Case,
    layer=st.sampled_from(LAYERS),
    lines=st.sampled_from([7, 12, 16, 24]),
    columns=st.sampled_from([8, 15, 16, 24]),
    channels=st.sampled_from([3, 8, 20, 32]),
    filters=st.sampled_from([5, 16, 24]),
)


def drawn_point(data, program, target, threads):
    """The last block of the stages, and a point at random: with blocks as often as without."""
    schedule = Schedule(program)
    inline_producers(schedule)
    context = Context(schedule, target, threads, frozenset({"w"}))
    (group,) = tiled_products(context, groups_of(schedule))
    shape = TILE_BLOCKS.match(context, group)
    space = TILE_BLOCKS.space(shape, target)
    cycles = TILE_BLOCKS.cycles(shape, target.machine, space)
    assert np.isfinite(cycles).all()
    assert (cycles > 0).all()
    whole = (space["down"] == shape.lines) & (space["across"] == shape.columns)
    rows = data.draw(st.sampled_from([np.flatnonzero(w) for w in (whole, ~whole) if w.any()]))
    row = int(rows[data.draw(st.integers(0, len(rows) - 1))])
    return group.blocks[-1], space.point(row)


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
@examples(5)
@given(case=CASES, threads=st.sampled_from([1, 8]), data=st.data())
def test_points_can_be_followed(name, case, threads, data):
    target, (program, _) = Target.named(name), case.program()
    block, point = drawn_point(data, program, target, threads)
    decisions = []
    schedule = draft(program, target, threads, ["w"], points={block: point}, decisions=decisions)
    assert schedule.remarks == []
    assert [d.point for d in decisions if d.recipe is TILE_BLOCKS] == [point]


@examples(8)
@given(case=CASES, threads=st.sampled_from([1, 2]), data=st.data())
def test_points_compute_the_convolution(case, threads, data):
    target, (program, weights) = Target.host(), case.program()
    block, point = drawn_point(data, program, target, threads)
    trace = draft(program, target, threads, ["w"], points={block: point}).trace
    x = np.random.default_rng(0).standard_normal((1, case.lines, case.columns, case.channels))
    x = x.astype(np.float32)
    found = tw.build(program, threads=threads, trace=trace, constants={"w": weights})(x)
    plain, direct = case.program(tiled=False)
    exact = tw.build(plain, threads=1, constants={"w": direct})(x)
    np.testing.assert_allclose(found, exact, atol=1e-4 * max(1.0, np.abs(exact).max()))
