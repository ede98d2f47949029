"""How the draft schedules convolutions and pooling over channels-last data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.dtypes import f32
from tilewright.schedule import Schedule
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.choices import choices_of
from tilewright.schedule.recipes.contraction.phases import phases_of
from tilewright.schedule.recipes.contraction.space import BLOCKS_FIRST, ContractionPoint
from tilewright.schedule.recipes.recipe import Decision
from tilewright.schedule.recipes.table import Table
from tilewright.schedule.recipes.windows.channel_space import ChannelPoint, ChannelShape
from tilewright.schedule.recipes.windows.moves import Move
from tilewright.schedule.recipes.windows.ways import ASKED, COPIED, SERIAL
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, contraction, hidden_group, kind_of
from tilewright.tensor.build import Tensor, compute, func, placeholder, select, size
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.library.pool import pool
from tilewright.tensor.library.tiles import Tiles
from tilewright.tensor.library.transposed import convolve_transposed
from tilewright.tensor.library.winograd import convolve_winograd

TARGET = Target.named("x86-64-v3")


def biased(y: Tensor) -> tuple[Tensor, Tensor]:
    b = placeholder("B", y.shape[-1:])
    return b, compute("Z", y.shape, lambda *at: tir.maximum(y[at] + b[at[-1]], 0.0))


def convolution(
    space: tuple[int | tir.Expr, ...] = (14, 14),
    channels: int = 32,
    filters: int = 48,
    kernel: tuple[int, ...] = (3, 3),
    *,
    groups: int = 1,
    batch: int | tir.Expr = 1,
    threads: int = 1,
    **geometry: tuple[int, ...],
) -> Schedule:
    x = placeholder("X", (batch, *space, channels))
    w = placeholder("W", (filters, channels // groups, *kernel))
    b, z = biased(convolve(x, w, groups=groups, **geometry))
    return draft(func("conv", [x, w, b], [z]), TARGET, threads, ["W", "B"])


def kinds(schedule: Schedule, block: str) -> list[str]:
    return [schedule.loop(name).kind.value for name in schedule.loops(block)]


def stored(schedule: Schedule, name: str) -> tuple[int | None, ...]:
    return tuple(tir.int_value(size) for size in schedule.buffer(name).shape)


def test_rows_of_an_image_are_one_range_and_weights_are_panels():
    s = convolution(pads=(1, 1, 1, 1))
    assert s.buffer("Y").scope is tir.Scope.REGISTER
    assert stored(s, "Y") == (196, 48)  # batch, height and width are one
    panels, high, wide, channels, width = stored(s, "W")
    assert (panels * width, high, wide, channels) == (48, 3, 3, 32)
    assert len([it for it in s.block("Y").iters if it.kind is tir.IterKind.REDUCE]) == 2
    assert kinds(s, "Y")[-2:] == ["unrolled", "vectorized"]


def test_windows_of_one_element_are_a_matrix_product():
    s = convolution(kernel=(1, 1))
    rows, _, steps = s.block("Y").iters
    assert (tir.int_value(rows.extent), tir.int_value(steps.extent)) == (196, 32)


def test_gaps_between_the_elements_of_a_window_keep_its_steps_apart():
    s = convolution(dilations=(2, 2))
    steps = [it for it in s.block("Y").iters if it.kind is tir.IterKind.REDUCE]
    assert [tir.int_value(it.extent) for it in steps] == [3, 3, 32]


def test_only_the_outermost_row_may_be_symbolic():
    one = convolution(batch=size("n"))
    assert len(one.block("Y").iters) == 4  # rows, filters, two walks
    image = convolution((14, size("w")))
    assert len(image.block("Y").iters) == 6


def test_groups_are_separate_products():
    s = convolution(groups=2)
    groups, filters = s.block("Y").iters[1:3]
    assert (tir.int_value(groups.extent), tir.int_value(filters.extent)) == (2, 24)
    assert stored(s, "W")[0] == 2
    assert s.buffer("Y").scope is tir.Scope.REGISTER


def test_hidden_group():
    def block_of(groups: int, filters: int) -> tir.Block:
        x, w = placeholder("X", (1, 5, 5, 8)), placeholder("W", (filters, 8 // groups, 3, 3))
        y = convolve(x, w, groups=groups)
        return Schedule(func("f", [x, w], [y])).block("Y")

    found = hidden_group(block_of(2, 12))
    assert found is not None
    assert (found[0].name, found[1]) == ("vo", 6)
    assert hidden_group(block_of(1, 12)) is None
    assert hidden_group(block_of(8, 8)) is None  # depthwise: a window, not a product
    assert kind_of(block_of(8, 8)) is Kind.WINDOWED
    assert kind_of(block_of(2, 12)) is Kind.CONTRACTION


def test_small_windows_ask_for_their_border():
    s = convolution(channels=32, filters=32, groups=32, pads=(1, 1, 1, 1))
    assert "Y_border" not in s.blocks()
    *_, high, wide, column, lanes = kinds(s, "Y")
    assert (high, wide, column, lanes) == ("unrolled",) * 3 + ("vectorized",)
    assert stored(s, "W") == (2, 1, 3, 3, 16)


def test_large_windows_get_a_copy_with_border():
    s = convolution((56, 56), 32, 32, (7, 7), groups=32, pads=(3, 3, 3, 3))
    assert "Y_border" in s.blocks()
    assert kinds(s, "Y_border")[-1] == "vectorized"


def decided(channels: int, target: Target = TARGET) -> tuple[tir.Func, Decision]:
    x, w = placeholder("X", (1, 7, 7, channels)), placeholder("W", (channels, 1, 3, 3))
    program = func("f", [x, w], [convolve(x, w, groups=channels, pads=(1, 1, 1, 1))])
    decisions: list[Decision] = []
    draft(program, target, constants=["W"], decisions=decisions)
    return program, decisions[-1]


def test_columns_that_collide_in_the_cache_cost_more_unless_they_are_copied():
    """Columns a page apart share one set of the first cache, which half lines do not survive."""

    def per_channel(channels: int, border: int) -> float:
        _, decision = decided(channels)
        point = ChannelPoint(1, 6, 1, 8, 2, border, 16, SERIAL)
        table = Table.of([point])
        return decision.recipe.cycles(decision.shape, TARGET.machine, table)[0] / channels

    assert per_channel(1024, ASKED) > 1.2 * per_channel(1040, ASKED)
    assert per_channel(1024, COPIED) < 1.01 * per_channel(1040, COPIED)


def test_whole_lines_of_columns_that_collide_are_lost_if_windows_overlap():
    """A vector as long as a line uses it up, but other tiles want it again."""
    target = Target.named("x86-64-v4")

    def per_channel(channels: int, window: int) -> float:
        _, decision = decided(channels, target)
        assert isinstance(decision.shape, ChannelShape)
        move = Move.of(window, 1, 1)
        shape = replace(decision.shape, across=move, along=move, walks=(window, window))
        table = Table.of([ChannelPoint(1, 7, 1, 16, 2, ASKED, 0, SERIAL)])
        return decision.recipe.cycles(shape, target.machine, table)[0] / channels

    assert per_channel(1024, 3) > 1.5 * per_channel(1040, 3)
    assert per_channel(1024, 1) == pytest.approx(per_channel(1040, 1), rel=0.02)


def test_channels_are_copied_a_few_at_a_time():
    program, decision = decided(1024)
    assert isinstance(decision.point, ChannelPoint)
    copied = replace(decision.point, border=COPIED, channels=64)
    s = draft(program, TARGET, constants=["W"], loops=copied)
    shared = s.loops("Y")[0]
    assert s.loops("Y_border")[0] == shared
    assert tir.int_value(s.loop(shared).extent) == 16


def test_threads_share_channels_where_lines_are_few():
    s = convolution((7, 7), 1024, 1024, groups=1024, pads=(1, 1, 1, 1), threads=8)
    assert kinds(s, "Y")[0] == "parallel"
    assert (tir.int_value(s.loop(s.loops("Y")[0]).extent) or 0) >= 8


def test_pooling_keeps_its_results_in_registers():
    x = placeholder("X", (1, 112, 112, 64))
    y = pool(x, tir.Fold.MAX, (3, 3), (2, 2), (), (1, 1, 1, 1))
    s = draft(func("pool", [x], [y]), TARGET)
    assert s.blocks() == ("Y_init", "Y", "Y_write")
    assert s.block("Y").writes[0].buffer.scope is tir.Scope.REGISTER


def transposed(kernel: int, extra: int = 0) -> Schedule:
    x, w = placeholder("X", (1, 8, 8, 32)), placeholder("W", (32, 16, kernel, kernel))
    y = convolve_transposed(x, w, (2, 2), (), (1, 1, 1, 1), (extra, extra))
    b, z = biased(y)
    return draft(func("transposed", [x, w, b], [z]), TARGET, 1, ["W", "B"])


def test_phases_of_a_transposed_convolution_go_straight_to_their_places():
    s = transposed(4)
    assert s.blocks() == ("Y_border", "Y_phases_init", "Y_phases", "Z")
    assert s.buffer("Y_phases").scope is tir.Scope.REGISTER
    assert stored(s, "Y_phases") == (2, 2, 64, 16)


def test_phases_of_different_sizes_are_products_of_their_own():
    s = transposed(3, extra=1)
    sums = [n for n in s.blocks() if s.block(n).init is None and n.startswith("Y_")]
    assert {"Y_00", "Y_01", "Y_10", "Y_11"} <= set(sums)


@pytest.mark.parametrize(
    ("shape", "read", "expected"),
    [
        ((4, 6), lambda z, i, j: z[j % 2, i, j // 2], [2]),
        ((4, 6), lambda z, i, j: z[j % 3, i, j // 3], [3]),
        ((4, 5), lambda z, i, j: z[j % 2, i, j // 2], []),  # two does not divide five
        ((4, 6), lambda z, i, j: z[j // 2, i, j // 2], []),  # every element twice
    ],
)
def test_phases_of(shape, read, expected):
    z = placeholder("S", (3, 4, 3), f32)
    y = compute("Y", shape, lambda i, j: read(z, i, j))
    s = Schedule(func("f", [z], [y]))
    assert list(phases_of(s.block("Y"), z.buffer).values()) == expected


def winograd(size: int = 28, threads: int = 1) -> Schedule:
    x, u = placeholder("X", (1, size, size, 32)), placeholder("U", (6, 6, 32, 48))
    b, z = biased(convolve_winograd(x, u, Tiles((3, 3), (4, 4)), (1, 1, 1, 1)))
    return draft(func("winograd", [x, u, b], [z]), TARGET, threads, ["U", "B"])


def test_transforms_run_for_one_vector_at_a_time():
    s = winograd()
    for first, second in (("Y_rows", "Y_data"), ("Y_sums", "Z")):
        shared = [loop for loop in s.loops(first) if loop in s.loops(second)]
        assert tir.int_value(s.loop(shared[-1]).extent) == (4 if second == "Y_data" else 6)
        inside = [s.loop(n).kind.value for n in s.loops(second) if n not in shared]
        assert inside == ["unrolled", "unrolled", "vectorized"]
    assert s.block("Y_products").writes[0].buffer.scope is tir.Scope.REGISTER


def test_few_filters_have_places_in_vectors():
    """Three filters would leave most of a vector empty; a line of thirty-two places does not."""
    x, w = placeholder("X", (1, 32, 32, 16)), placeholder("W", (3, 16, 3, 3))
    b, z = biased(convolve(x, w, pads=(1, 1, 1, 1)))
    s = draft(func("few", [x, w, b], [z]), TARGET, 1, ["W", "B"])
    roles = contraction(s.block("Y_lines"))
    assert roles is not None
    assert roles.left.buffer.name == "W"
    assert s.block("Y_lines").writes[0].buffer.scope is tir.Scope.REGISTER
    assert s.remarks == []


STAGES = ("Y_border", "Y_rows", "Y_data", "Y_products", "Y_products_write", "Y_sums", "Z")


def test_small_images_are_transformed_at_once():
    s = winograd(12)
    assert set(s.loops("Y_data")).isdisjoint(s.loops("Y_products"))


def test_large_images_go_through_all_stages_in_blocks():
    s = winograd(224, threads=2)
    outermost = {s.loops(block)[0] for block in STAGES}
    assert len(outermost) == 1
    (blocks,) = outermost
    assert s.loop(blocks).kind is tir.LoopKind.PARALLEL
    assert (tir.int_value(s.loop(blocks).extent) or 0) >= 4
    assert s.block("Y_products").writes[0].buffer.scope is tir.Scope.REGISTER
    assert s.remarks == []


def test_choices():
    s = Schedule(func("f", *_chosen(lambda p, x: select(p.eq(0), x, 0.0))))
    assert {v.name: n for v, n in choices_of(s.block("Y")).items()} == {"vp": 3}
    s = Schedule(func("f", *_chosen(lambda p, x: select((p % 2).eq(0), x, 0.0))))
    assert {v.name: n for v, n in choices_of(s.block("Y")).items()} == {"vp": 2}
    s = Schedule(func("f", *_chosen(lambda p, x: select(p < 2, x, 0.0))))
    assert choices_of(s.block("Y")) == {}  # a border, not a choice
    s = Schedule(func("f", *_chosen(lambda _, x: select(x < 0.5, x, 0.0))))
    assert choices_of(s.block("Y")) == {}


def _chosen(value):
    x = placeholder("X", (3, 8))
    return [x], [compute("Y", (3, 8), lambda p, c: value(p, x[p, c]))]


def grouped_point(size: int, threads: int) -> ContractionPoint:
    """What is drafted for a convolution with four groups."""
    s = convolution((size, size), 64, 128, groups=4, threads=threads)
    (point,) = (d.point for d in s.decisions if isinstance(d.point, ContractionPoint))
    return point


def test_groups_take_turns_if_their_data_are_large():
    """Groups share lines of memory: of data beyond the second cache each takes some rows."""
    assert grouped_point(12, 1).order != BLOCKS_FIRST
    for threads in (1, 2):
        point = grouped_point(57, threads)
        rows = point.tile_rows * point.row_tiles_per_block
        assert point.order == BLOCKS_FIRST
        assert rows * 64 * 4 < TARGET.cache(2).share_bytes
        assert bool(point.parallel) == (threads > 1)
