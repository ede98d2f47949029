"""How the draft schedules windows that slide along the lines of channels-first data."""

from __future__ import annotations

import pytest

from tests.laid_out import HALO, NCHW
from tilewright.model.stored import stored_program
from tilewright.schedule import Schedule
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes import lines
from tilewright.schedule.recipes.sliding import Lines, puts_border, runs_along_lines
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute, func, placeholder, size
from tilewright.tensor.layout import Reorder
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.library.pool import pool

TARGET = Target.named("x86-64-v3")


def depthwise(
    side: int = 14,
    step: int = 1,
    kernel: int = 3,
    *,
    channels: int = 32,
    border: int = 1,
    threads: int = 1,
    batch: int | tir.Expr = 1,
) -> Schedule:
    x = placeholder("X", (batch, side, side, channels))
    w = placeholder("W", (channels, 1, kernel, kernel))
    y = convolve(x, w, (step, step), pads=(border,) * 4, groups=channels)
    z = compute("Z", y.shape, lambda *at: tir.maximum(y[at], 0.0))
    program = stored_program(func("f", [x, w], [z]), {"X": NCHW, "Z": NCHW})
    made = draft(program, TARGET, threads, ["W"])
    assert made.remarks == []
    return made


def sizes(schedule: Schedule, name: str) -> list[int | None]:
    return [tir.int_value(size) for size in schedule.buffer(name).shape]


def kinds(schedule: Schedule, block: str) -> dict[str, tir.LoopKind]:
    return {name: schedule.loop(name).kind for name in schedule.loops(block)}


def around(schedule: Schedule, block: str, other: str) -> list[str]:
    """The loops that two blocks share."""
    pairs = zip(schedule.loops(block), schedule.loops(other), strict=False)
    return [a for a, b in pairs if a == b]


def test_sums_of_several_lines_stay_in_registers():
    s = depthwise()
    assert s.block("Y").writes[0].buffer.scope is tir.Scope.REGISTER
    *_, rows, lane = s.loops("Y")
    assert s.loop(rows).kind is tir.LoopKind.UNROLLED
    assert tir.int_value(s.loop(rows).extent) == 7
    assert s.loop(lane).kind is tir.LoopKind.VECTOR
    assert tir.int_value(s.loop(lane).extent) == 8


def test_a_window_is_unrolled_across_lines_only():
    found = kinds(depthwise(), "Y")
    assert found["rh"] is tir.LoopKind.UNROLLED
    assert found["rw"] is tir.LoopKind.SERIAL
    assert list(found).index("rw") < list(found).index("rh")


def test_results_are_whole_vectors_and_lines_are_long_enough():
    s = depthwise()
    assert sizes(s, "Y") == [1, 32, 14, 16]
    assert sizes(s, "Y_border") == [1, 32, 16, 18]


@pytest.mark.parametrize("step", [2, 3])
def test_places_are_stored_by_phases(step):
    s = depthwise(28, step)
    *_, phases, places = sizes(s, "Y_border")
    assert phases == step
    assert (places or 0) * step >= 30
    *_, phase, place = s.loops("Y_border")
    assert s.loop(phase).kind is tir.LoopKind.UNROLLED
    assert s.loop(place).kind is tir.LoopKind.VECTOR


def test_a_channel_is_copied_at_a_time():
    s = depthwise()
    assert around(s, "Y_border", "Y") == list(s.loops("Y")[:2])
    *_, line = s.loops("Y_border")
    assert s.loop(line).kind is tir.LoopKind.VECTOR


def test_a_large_picture_is_copied_in_parts():
    s = depthwise(113)
    shared = around(s, "Y_border", "Y")
    assert len(shared) == 3
    assert 1 < (tir.int_value(s.loop(shared[-1]).extent) or 0) < 113
    assert sizes(s, "Y")[2] == 114, "tiles of lines are alike"


def test_data_without_a_border_are_copied_where_it_pays():
    assert "X_read" in depthwise(29, 2, border=0).blocks()
    assert "X_read" not in depthwise(29, 1, border=0).blocks()
    assert "X_read" not in depthwise(28, 2, kernel=2, border=0).blocks()


def test_threads_share_channels():
    s = depthwise(channels=256, threads=2)
    assert tir.LoopKind.PARALLEL in kinds(s, "Y").values()
    assert around(s, "Y_border", "Y")


@pytest.mark.parametrize("threads", [1, 2])
def test_an_unknown_batch(threads):
    s = depthwise(batch=size("n"), threads=threads)
    assert sizes(s, "Y_border")[1:] == [32, 16, 18]


def test_deep_windows_have_all_pictures_of_a_channel_copied(monkeypatch):
    def made() -> Schedule:
        x, w = placeholder("X", (1, 6, 10, 10, 4)), placeholder("W", (4, 1, 3, 3, 3))
        y = convolve(x, w, pads=(1,) * 6, groups=4)
        first = (Reorder((0, 4, 1, 2, 3)),)
        program = stored_program(func("f", [x, w], [y]), {"X": first, "Y": first})
        return draft(program, TARGET)

    assert len(around(made(), "Y_border", "Y")) == 2
    monkeypatch.setattr(lines, "_NEAR", 0.0)
    assert len(around(made(), "Y_border", "Y")) == 4


def window(block: str, y: Tensor, inputs: list[Tensor]) -> Lines | None:
    return Lines.of(Schedule(func("f", inputs, [y])).block(block))


def test_what_slides_along_lines():
    image = placeholder("X", (1, 8, 20, 30))
    pooled = pool(image, tir.Fold.MAX, (3, 3), (2, 2))
    assert window("Y", pooled, [image]) is None, "channels lie innermost"
    s = depthwise(20, 2)
    found = Lines.of(Schedule(s.func).block("Y"))
    assert found is None, "its loops are tiled already"


def test_steps_and_offsets_are_told_by_indices():
    x, w = placeholder("X", (1, 20, 30, 4)), placeholder("W", (4, 1, 2, 3))
    y = convolve(x, w, (1, 2), (3, 4), groups=4)
    s = Schedule(stored_program(func("f", [x, w], [y]), {"X": NCHW, "Y": NCHW}))
    found = Lines.of(s.block("Y"))
    assert found is not None
    assert found.across is not None
    assert (found.along.step, found.along.offsets) == (2, (0, 4, 8))
    assert (found.across.step, found.across.offsets) == (1, (0, 3))
    assert (found.height, found.width, found.taps) == (17, 11, 6)
    assert found.along.reach(11) == 29
    assert found.across.overlaps


@pytest.mark.parametrize(("groups", "each"), [(1, 1), (2, 4), (2, 2)])
def test_sums_over_channels_are_products(groups, each):
    x, w = placeholder("X", (1, 10, 10, 8)), placeholder("W", (each * groups, 8 // groups, 3, 3))
    y = convolve(x, w, groups=groups)
    s = Schedule(stored_program(func("f", [x, w], [y]), {"X": NCHW, "Y": NCHW}))
    assert not any(runs_along_lines(s, block) for block in s.blocks())


def test_a_border_belongs_to_the_window_that_reads_it():
    x, w = placeholder("X", (1, 10, 10, 8)), placeholder("W", (8, 1, 3, 3))
    y = convolve(x, w, pads=(1,) * 4, groups=8)
    s = Schedule(stored_program(func("f", [x, w], [y]), {"X": NCHW, "Y": NCHW}))
    assert puts_border(s.block("Y"), s.block("Y_border"))
    assert not puts_border(s.block("Y"), s.block("Y"))


def test_data_with_their_border_stored_are_not_copied():
    x, w = placeholder("X", (1, 10, 10, 8)), placeholder("W", (8, 1, 3, 3))
    y = convolve(x, w, pads=(1,) * 4, groups=8)
    program = stored_program(func("f", [x, w], [y]), {"X": (*HALO, *NCHW), "Y": NCHW})
    s = draft(program, TARGET)
    assert s.remarks == []
    assert "Y_border" not in s.blocks()
    assert s.loop(s.loops("Y")[-1]).kind is tir.LoopKind.VECTOR
