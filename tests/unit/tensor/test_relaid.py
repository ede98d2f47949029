"""Programs over stored data: which loops there are, and that they mean the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laid_out import NCHW, blocked
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import loads_of
from tilewright.tensor.build import Tensor, compute, func, placeholder
from tilewright.tensor.interpret import interpret
from tilewright.tensor.layout import Fuse, LayoutStep, Pad, Split, Unfold
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.library.pool import pool
from tilewright.tensor.relaid import relaid
from tilewright.tensor.relaid.stages import with_copy
from tilewright.tensor.verify import verify
from tilewright.tensor.visit import find_block, walk, walk_stmts

Steps = tuple[LayoutStep, ...]
X = (1, 6, 5, 8)


def packed(array: np.ndarray, steps: Steps) -> np.ndarray:
    for step in steps:
        array = step.pack(array)
    return np.ascontiguousarray(array)


def mapped(y: Tensor, name: str = "Z") -> Tensor:
    return compute(name, y.shape, lambda *at: tir.maximum(y[at] * 2.0, 0.0))


def relaid_by_name(program: tir.Func, **layouts: Steps) -> tir.Func:
    return relaid(program, {p: layouts[p.name] for p in program.params if p.name in layouts})


def check(program: tir.Func, **layouts: Steps) -> tir.Func:
    """The program with layouts; it computes what the program without them does."""
    rng = np.random.default_rng(0)
    arrays = {
        p.name: rng.integers(-4, 5, [int(tir.int_value(d) or 0) for d in p.shape]).astype("f4")
        for p in program.params[:-1]
    }
    (expected,) = interpret(program, arrays).values()
    made = relaid_by_name(program, **layouts)
    stored = {name: packed(a, layouts.get(name, ())) for name, a in arrays.items()}
    (found,) = interpret(made, stored).values()
    assert np.array_equal(found, packed(expected, layouts.get(program.params[-1].name, ())))
    return made


def extents(program: tir.Func, block: str) -> list[int | None]:
    found = find_block(program, block)
    assert found is not None
    return [tir.int_value(it.extent) for it in found.iters]


def divides(program: tir.Func) -> bool:
    return any(isinstance(part, tir.FloorDiv | tir.FloorMod) for part in walk(program))


def conv(kernel: int = 3, pad: int = 1, filters: int = 16, groups: int = 1) -> tir.Func:
    x, w = placeholder("X", X), placeholder("W", (filters, X[-1] // groups, kernel, kernel))
    z = mapped(convolve(x, w, pads=(pad,) * 4, groups=groups))
    return func("conv", [x, w], [z])


def test_without_layouts_nothing_changes():
    program = conv()
    assert relaid(program, {}) is program


def test_loops_follow_what_is_stored():
    x = placeholder("X", X)
    made = check(func("f", [x], [mapped(x)]), X=blocked(4), Z=blocked(4))
    assert extents(made, "Z") == [1, 2, 6, 5, 4]
    assert not divides(made)


def test_a_sum_over_blocks_runs_block_by_block():
    made = check(conv(kernel=1, pad=0), X=blocked(4))
    assert extents(made, "Y")[-2:] == [2, 4]
    assert not divides(made)


def test_a_sum_within_a_group_runs_block_by_block():
    made = check(conv(pad=0, groups=2), X=blocked(2))
    assert extents(made, "Y")[-4:] == [3, 3, 2, 2]


def test_a_border_of_data_in_blocks_is_copied_as_a_product_reads_it():
    made = check(conv(), X=blocked(4))
    assert extents(made, "Y_border") == [1, 8, 7, 8]
    assert extents(made, "Y")[-3:] == [3, 3, 8]


def test_a_product_is_computed_in_rows_and_written_in_blocks():
    made = check(conv(), Z=blocked(8))
    assert extents(made, "Y")[:4] == [1, 6, 5, 16]
    assert extents(made, "Z") == [1, 2, 6, 5, 8]


def test_a_product_is_turned_behind_its_epilogue():
    made = check(conv(), Z=NCHW)
    assert extents(made, "Z") == [1, 6, 5, 16]
    assert extents(made, "Z_stored") == [1, 16, 6, 5]


def product(width: int, filters: int) -> tir.Func:
    x, w = placeholder("X", (1, 2, width, 4)), placeholder("W", (filters, 4, 1, 1))
    return func("product", [x, w], [mapped(convolve(x, w))])


def test_a_product_of_turned_data_runs_along_them_if_they_are_long():
    made = check(product(24, 6), X=NCHW, Z=NCHW)
    assert extents(made, "Y")[:4] == [1, 6, 2, 24]
    assert find_block(made, "Z_stored") is None
    made = check(product(23, 6), X=NCHW, Z=NCHW)
    assert extents(made, "Y")[:4] == [1, 2, 23, 6]


def test_turned_data_are_turned_back_for_many_columns():
    assert find_block(check(product(5, 128), X=NCHW), "Y_X") is not None
    assert find_block(check(product(5, 64), X=NCHW), "Y_X") is None


def test_only_what_is_read_is_copied():
    x, w = placeholder("X", (1, 6, 5, 4)), placeholder("W", (128, 4, 1, 1))
    program = func("product", [x, w], [mapped(convolve(x, w, strides=(2, 2)))])
    assert extents(check(program, X=NCHW), "Y_X") == [1, 3, 3, 4]


def pooling(**layouts: Steps) -> tir.Func:
    x = placeholder("X", X)
    return check(func("f", [x], [pool(x, tir.Fold.MAX, (3, 3))]), **layouts)


def test_a_window_reads_a_copy_where_its_data_are_stored_otherwise():
    assert extents(pooling(X=NCHW), "Y_X") == [1, 6, 5, 8]
    assert extents(pooling(X=blocked(4)), "Y_X") == [1, 6, 5, 8]
    assert extents(pooling(X=blocked(2), Y=blocked(4)), "Y_X") == [1, 2, 6, 5, 4]
    assert find_block(pooling(X=blocked(4), Y=blocked(4)), "Y_X") is None
    assert find_block(pooling(Y=blocked(4)), "Y_X") is None


def test_short_rows_of_a_window_are_turned_behind_it():
    made = pooling(Y=NCHW)
    assert extents(made, "Y")[:4] == [1, 4, 3, 8]
    assert extents(made, "Y_stored") == [1, 8, 4, 3]


def test_a_border_is_stored_as_the_window_wants_it():
    x = placeholder("X", X)
    y = pool(x, tir.Fold.MAX, (3, 3), pads=(1, 1, 1, 1))
    made = check(func("f", [x], [y]), Y=blocked(4))
    assert extents(made, "Y_border") == [1, 2, 8, 7, 4]
    assert not divides(made)


@pytest.mark.parametrize(
    "steps",
    [
        (Pad(3, 0, 4), Split(3, 6)),
        (Unfold(1, 4, 2, 6),),
        (Pad(1, 1, 1), Fuse(1, (8, 5))),
    ],
)
def test_what_stores_more_than_the_elements_is_written_by_a_stage_of_its_own(steps):
    x = placeholder("X", X)
    made = check(func("f", [x], [mapped(x)]), Z=steps)
    assert find_block(made, "Z_stored") is not None
    check(func("f", [x], [mapped(x)]), X=steps)


def test_a_part_of_a_result_keeps_its_loops_where_blocks_do_not_fit():
    a, b = placeholder("A", (2, 6)), placeholder("B", (2, 2))
    from tilewright.graph.ops import Concat

    (joined,) = Concat(1).lower([a, b], ["J"])
    program = func("f", [a, b], [joined])
    made = check(program, J=(Split(1, 2),))
    assert extents(made, "J_0") == [2, 3, 2]
    made = check(program, J=(Split(1, 4),))
    assert extents(made, "J_0") == [2, 6]
    check(program, J=(Fuse(0, (2, 8)),))
    check(program, A=(Split(1, 3),), J=(Split(1, 4), Fuse(0, (2, 2))))


def test_copies_of_one_buffer_have_names_of_their_own():
    """Handles of a schedule are names; a block may read a parameter at two places."""
    x = placeholder("X", (8, 8))
    y = compute("Y", (8, 8), lambda i, j: x[i, j] + x[7 - i, j])
    program = made = func("f", [x], [y])
    for load in loads_of(find_block(program, "Y")):
        made = with_copy(made, find_block(made, "Y"), load)
    verify(made)
    names = [s.buffer.name for s in walk_stmts(made) if isinstance(s, tir.Alloc)]
    assert sorted(names) == ["Y_X", "Y_X_2"]
    data = {"X": np.arange(64, dtype=np.float32).reshape(8, 8)}
    assert np.array_equal(interpret(made, data)["Y"], interpret(program, data)["Y"])


def test_one_copy_of_a_whole_buffer_is_enough_for_a_block():
    """Places held at the border are read of a copy of all, whichever they are."""
    x = placeholder("X", (8, 8))
    held = lambda i: tir.maximum(tir.minimum(i, 7), 0)  # noqa: E731
    y = compute("Y", (8, 8), lambda i, j: x[held(i - 1), j] - x[held(i + 1), j])
    program = made = func("f", [x], [y])
    for load in loads_of(find_block(program, "Y")):
        made = with_copy(made, find_block(program, "Y"), load)
    verify(made)
    names = [s.name for s in walk_stmts(made) if isinstance(s, tir.Block)]
    assert names == ["Y_X", "Y"]
    data = {"X": np.arange(64, dtype=np.float32).reshape(8, 8) ** 2}
    assert np.array_equal(interpret(made, data)["Y"], interpret(program, data)["Y"])
