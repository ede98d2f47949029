"""How the draft schedules programs whose data and results are stored in other orders and blocks."""

from __future__ import annotations

import pytest

from tests.laid_out import HALO, NCHW, blocked
from tilewright.model.stored import stored_program
from tilewright.schedule import Schedule
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.digits import block_width, digits_of, result_digits
from tilewright.schedule.recipes.grouping import is_shifted
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute, func, placeholder
from tilewright.tensor.layout import LayoutStep
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.library.pool import pool
from tilewright.tensor.visit import find_block

TARGET = Target.named("x86-64-v3")
Steps = tuple[LayoutStep, ...]


def biased(y: Tensor) -> tuple[Tensor, Tensor]:
    b = placeholder("B", y.shape[-1:])
    return b, compute("Z", y.shape, lambda *at: tir.maximum(y[at] + b[at[-1]], 0.0))


def convolution(
    x: Steps = (), z: Steps = (), *, kernel: int = 3, groups: int = 1, threads: int = 1
) -> Schedule:
    image = placeholder("X", (1, 14, 14, 32))
    w = placeholder("W", (32 if groups > 1 else 64, 32 // groups, kernel, kernel))
    b, y = biased(convolve(image, w, pads=(kernel // 2,) * 4, groups=groups))
    program = stored_program(func("conv", [image, w, b], [y]), {"X": x, "Z": z})
    return draft(program, TARGET, threads, ["W", "B"])


def extents(schedule: Schedule, block: str) -> list[int | None]:
    return [tir.int_value(it.extent) for it in schedule.block(block).iters]


def sizes(schedule: Schedule, name: str) -> list[int | None]:
    return [tir.int_value(size) for size in schedule.buffer(name).shape]


LAYOUTS = [(), NCHW, blocked(8), blocked(16), HALO, (*HALO, *blocked(8)), (*HALO, *NCHW)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("z", LAYOUTS)
@pytest.mark.parametrize("x", LAYOUTS)
def test_every_product_is_scheduled(x, z, threads):
    s = convolution(x, z, threads=threads)
    assert s.remarks == []
    result = s.block("Y").writes[0].buffer
    assert result.scope is tir.Scope.REGISTER
    assert s.loop(s.loops("Y")[-1]).kind is tir.LoopKind.VECTOR


def test_results_in_blocks_are_computed_in_rows_of_any_width():
    rows, in_blocks = convolution(), convolution(z=blocked(8))
    assert extents(in_blocks, "Y") == extents(rows, "Y")
    assert sizes(in_blocks, "W") == sizes(rows, "W")
    *_, block, lane = in_blocks.loops("Z")
    assert in_blocks.loop(block).kind is tir.LoopKind.UNROLLED
    assert tir.int_value(in_blocks.loop(lane).extent) == 8
    assert in_blocks.loop(lane).kind is tir.LoopKind.VECTOR


def test_turned_results_are_moved_in_tiles_behind_the_epilogue():
    s = convolution(z=NCHW)
    assert s.buffer("Y").scope is tir.Scope.REGISTER
    assert s.loops("Z")[0] == s.loops("Y")[0]
    assert s.loops("Z_stored")[0] not in s.loops("Y")


def test_a_sum_over_blocks_is_walked_as_the_data_lie():
    s = convolution((*HALO, *blocked(8)))
    walks = [p for p, it in enumerate(s.block("Y").iters) if it.kind is tir.IterKind.REDUCE]
    lengths = {tir.int_value(s.block("Y").iters[p].extent) for p in walks}
    assert lengths == {4, 3, 24}  # blocks, lines, and the elements of a line side by side
    loops = [n for n in s.loops("Y") if any(n in str(s.block("Y").bindings[p]) for p in walks)]
    blocks, lines, elements, steps = (tir.int_value(s.loop(n).extent) or 0 for n in loops)
    assert (blocks, lines, elements * steps) == (4, 3, 24)
    assert sizes(s, "W") == [4, 4, 3, 3, 8, 16]


def test_short_windows_are_unrolled_inside_of_the_walk():
    image, w = placeholder("X", (1, 14, 14, 32)), placeholder("W", (64, 32, 1, 3))
    y = convolve(image, w)
    program = stored_program(func("conv", [image, w], [y]), {"X": NCHW})
    s = draft(program, TARGET, 1, ["W"])
    assert s.remarks == []
    kinds = [s.loop(name).kind for name in s.loops("Y")]
    assert kinds[-3:] == [tir.LoopKind.UNROLLED, tir.LoopKind.UNROLLED, tir.LoopKind.VECTOR]


@pytest.mark.parametrize("x", [HALO, (*HALO, *blocked(8))])
def test_data_with_their_border_are_not_copied(x):
    assert "Y_border" not in convolution(x).blocks()
    assert "Y_border" not in convolution(x, x, groups=32).blocks()
    assert "Y_border" in convolution(x[2:]).blocks()


def test_an_epilogue_writes_inside_of_a_border():
    s = convolution(z=HALO)
    assert s.loops("Z")[0] == s.loops("Y")[0]
    order = s.blocks()
    assert max(order.index(n) for n in order if n.startswith("Z_")) < order.index("Y")


def test_a_fold_without_an_epilogue_stays_in_registers_below_a_border():
    x = placeholder("X", (1, 16, 16, 32))
    y = pool(x, tir.Fold.MAX, (3, 3), (2, 2), pads=(1, 1, 1, 1))
    s = draft(stored_program(func("f", [x], [y]), {"Y": HALO}), TARGET, 1)
    assert s.remarks == []
    assert s.block("Y").writes[0].buffer.scope is tir.Scope.REGISTER


def test_windows_over_rows_walk_through_blocks_of_the_result_line_by_line():
    s = convolution(z=blocked(8), groups=32)
    first = [loop for loop in s.loops("Y") if tir.int_value(s.loop(loop).extent) != 1][:2]
    lines, blocks = (tir.int_value(s.loop(loop).extent) for loop in first)
    assert blocks == 4
    assert lines in (7, 14)  # one or two at a time


def test_weights_of_a_window_lie_in_the_blocks_of_its_channels():
    s = convolution(blocked(8), blocked(8), groups=32)
    assert sizes(s, "W") == [4, 1, 3, 3, 8]


def test_digits():
    a, b, c = (tir.Var(name) for name in "abc")
    sizes_of = {a: tir.Const(3), b: tir.Const(4), c: tir.Const(8)}
    assert digits_of(a, sizes_of) == (a,)
    assert digits_of(b * 8 + c, sizes_of) == (b, c)
    assert digits_of(a * 32 + b * 8 + c, sizes_of) == (a, b, c)
    for other in (b * 4 + c, b * 8, b * 8 + c + 1, b * 8 + tir.Var("x"), tir.Const(3), b + c):
        assert digits_of(other, sizes_of) is None


def stage(shape: tuple[int, ...], value: object) -> tir.Block:
    made = compute("S", shape, value)  # type: ignore[arg-type]
    block = find_block(made.nest, "S")  # type: ignore[arg-type]
    assert block is not None
    return block


def test_a_result_is_read_by_digits_if_every_element_is_read_once():
    t = placeholder("T", (1, 5, 16))
    blocks = stage((2, 5, 8), lambda o, h, i: t[0, h, o * 8 + i])
    assert result_digits(blocks, t.buffer) is None  # no iterator is left for the first dimension
    whole = stage((1, 2, 5, 8), lambda *at: t[0, at[2], at[1] * 8 + at[3]])
    n, o, h, i = (it.var for it in whole.iters)
    assert result_digits(whole, t.buffer) == [(n,), (h,), (o, i)]
    twice = stage((1, 2, 5, 8), lambda n, o, h, i: t[n, h, o * 8 + i] + t[n, h, i])
    assert result_digits(twice, t.buffer) is None


def test_the_width_of_blocks():
    t, u = placeholder("T", (2, 9)), placeholder("U", (4, 5))
    plain = stage((16,), lambda i: t[0, i % 8])
    assert block_width(plain, plain.iters[0].var) == 8
    both = stage((16,), lambda i: t[i // 8, i % 8] + u[i // 4, i % 4])
    assert block_width(both, both.iters[0].var) == 4
    lines = stage((8,), lambda i: t[0, i])
    assert block_width(lines, lines.iters[0].var) == 0
    dense = placeholder("D", (2, 2, 4))
    digits = stage((16,), lambda i: dense[i // 8, i // 4 % 2, i % 4])
    assert block_width(digits, digits.iters[0].var) == 0


def test_shifted_copies():
    t = placeholder("T", (8, 8))
    assert is_shifted(stage((4, 4), lambda i, j: t[i + 1, j + 2]))
    assert is_shifted(stage((4, 4), lambda i, j: t[i, j]))
    assert not is_shifted(stage((4, 4), lambda i, j: t[j, i]))
    assert not is_shifted(stage((4, 4), lambda i, j: t[i * 2, j]))
    assert not is_shifted(stage((4, 4), lambda i, j: t[i, j] + 1.0))
