"""Loop-context and relation features against counts by hand."""

from __future__ import annotations

import pytest

from tests.unit.tuning.nests import PRODUCT, columns, nest
from tilewright.tensor.parser import parse
from tilewright.tuning.features.loops import (
    CONTEXT_NAMES,
    CURVE_NAMES,
    LOOP_NAMES,
    context_features,
    curve_features,
    loop_features,
)
from tilewright.tuning.features.scaling import signed_log2


def _context(text: str) -> dict[str, float]:
    return columns(CONTEXT_NAMES, context_features(nest(text)))


def _is(row: dict[str, float], **expected: float) -> None:
    found = {name: row[name] for name in expected}
    assert found == pytest.approx({name: signed_log2(x) for name, x in expected.items()})


def test_loops_are_told_from_the_inside_out():
    row = _context(PRODUCT)
    _is(row, loop0_length=16, loop1_length=8, loop2_length=4, loop3_length=0)
    assert [row[f"loop{k}_level"] for k in range(3)] == [2, 1, 0]
    _is(row, loop0_top_down=512, loop1_top_down=32, loop2_top_down=4)
    _is(row, loop0_bottom_up=16, loop1_bottom_up=128, loop2_bottom_up=512)
    assert row["loop0_vectorized"] == row["loop1_serial"] == row["loop2_serial"] == 1
    _is(row, loop0_mad=1, loop1_mad=0, statements=1, loops=3, depth=3, around=1)


def test_accesses_have_strides_counts_and_reuse():
    """The sums first, then B with 128 places and A with 32."""
    row = _context(PRODUCT)
    _is(row, loop0_access0_stride=1, loop1_access0_stride=0, loop2_access0_stride=16)
    _is(row, loop0_access0_count=16, loop1_access0_count=16, loop2_access0_count=64)
    _is(row, loop0_access0_reuse=1, loop1_access0_reuse=8, loop2_access0_reuse=8)
    _is(row, loop2_access1_count=128, loop2_access1_reuse=4, loop1_access1_stride=16)
    _is(row, loop2_access2_count=32, loop2_access2_reuse=16, loop1_access2_stride=1)
    _is(row, loop2_access3_count=0)


def test_threads_share_what_parallel_loops_move():
    row = _context(PRODUCT.replace("range(4)", "parallel(4)"))
    _is(row, loop2_access0_thread_count=4, loop2_access0_thread_reuse=1)
    _is(row, loop2_access1_thread_count=1, loop2_access1_thread_reuse=4)
    _is(row, loop1_access0_thread_count=1)


def test_outer_loops_of_deep_nests_are_pooled():
    text, pad = "def f(A: f32[1024], B: f32[1024]):\n", "    "
    for k in range(10):
        text += f"{pad}for i{k} in range(2):\n"
        pad += "    "
    index = " + ".join(f"i{k} * {2 ** (9 - k)}" for k in range(10))
    row = _context(f"{text}{pad}B[{index}] = A[{index}]\n")
    _is(row, around=4, depth=10, loops=10)


def test_relations_are_sampled_by_powers_of_two():
    """Of the sums: counts 2^4, 2^4, 2^6 and reuse 2^0, 2^3, 2^3 from the inside out."""
    row = columns(CURVE_NAMES, curve_features(nest(PRODUCT)))
    # count → reuse, both ascending: (0, 0), (4, 0), (4, 3), (6, 3)
    found = [row[f"curve0_count_reuse_{t}"] for t in range(8)]
    assert found == [0, 0, 0, 0, 3, 3, 3, 3]
    assert [row[f"curve0_count_reuse_{t}_rest"] for t in range(8)] == [0, 1, 2, 3, 0, 1, 0, 1]
    # reuse → count: (0, 0), (0, 4), (3, 4), (3, 6)
    assert [row[f"curve0_reuse_count_{t}"] for t in range(4)] == [4, 4, 4, 6]
    # around: 2^2, 2^5, 2^9
    assert [row[f"curve0_count_around_{t}"] for t in (0, 4, 6)] == [0, 5, 9]
    assert [row[f"curve0_around_count_{t}"] for t in (0, 2, 5, 9)] == [0, 4, 4, 6]


def test_lengths_do_not_depend_on_structure():
    short = "def f(A: f32[1], B: f32[1]):\n    B[0] = A[0]\n"
    for text in (PRODUCT, short, "def f(A: f32[8]):\n    pass\n"):
        assert loop_features(parse(text)).shape == (len(LOOP_NAMES),)
