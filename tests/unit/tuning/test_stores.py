"""Features of stores against counts by hand, one test for each group of definitions."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from tests.unit.tuning.nests import AVX2, PRODUCT, TILED, columns, nest
from tilewright.schedule.draft import draft
from tilewright.tensor import library
from tilewright.tensor.parser import parse
from tilewright.tuning.features.nests import lowered_loops
from tilewright.tuning.features.scaling import signed_log2
from tilewright.tuning.features.stores import (
    PROGRAM_NAMES,
    STORE_NAMES,
    program_features,
    store_features,
)


def _rows(text: str) -> list[dict[str, float]]:
    """Features of each statement, with numbers as they are before scaling."""
    rows = store_features(nest(text), AVX2).rows
    return [columns(STORE_NAMES, row) for row in rows]


def _is(row: dict[str, float], **expected: float) -> None:
    """Scaled numbers, given without scale."""
    found = {name: row[name] for name in expected}
    assert found == pytest.approx({name: signed_log2(x) for name, x in expected.items()})


def test_every_column_has_its_name():
    from tilewright.tuning.features import stores

    program = nest(TILED)
    for statement in program.statements:
        assert tuple(stores._row(program, statement, AVX2, 1.0)) == STORE_NAMES


def test_operations_are_times_iterations():
    (row,) = _rows(PRODUCT)
    _is(row, float_mad=512, float_add=0, float_mul=0, int_mad=3 * 512, iterations=512, loops=3)


def test_annotated_loops_are_told_with_their_places():
    (row,) = _rows(PRODUCT)
    _is(row, vector_count=1, vector_product=16, vector_innermost=16, unroll_count=0)
    assert row["vector_inner_spatial"] == 1
    assert row["unroll_none"] == row["parallel_none"] == 1


@pytest.mark.parametrize(
    ("loops", "position"),
    [
        (("unrolled", "range", "range"), "outer_spatial"),
        (("range", "unrolled", "range"), "inner_reduce"),
        (("range", "range", "unrolled"), "inner_spatial"),
        (("unrolled", "unrolled", "range"), "mixed"),
    ],
)
def test_position_of_an_unrolled_loop(loops, position):
    text = PRODUCT
    for old, new in zip(("range(4)", "range(8)", "vectorized(16)"), loops, strict=True):
        text = text.replace(old, f"{new}({old.partition('(')[2]}")
    (row,) = _rows(text)
    assert row[f"unroll_{position}"] == 1


def test_buffers_are_counted_in_bytes_and_lines():
    """Buffers by lines: the sums and B are walked along, A stands still for sixteen columns."""
    (row,) = _rows(PRODUCT)
    sums = {"bytes": 2048, "unique_bytes": 256, "lines": 32, "unique_lines": 4, "stride": 1}
    right = {"bytes": 2048, "unique_bytes": 512, "lines": 32, "unique_lines": 8, "stride": 1}
    left = {"bytes": 2048, "unique_bytes": 128, "lines": 2, "unique_lines": 2, "stride": 0}
    for place, expected in enumerate((sums, right, left)):
        _is(row, **{f"buffer{place}_{name}": x for name, x in expected.items()})
    assert row["buffer0_read_write"] == row["buffer1_read"] == row["buffer2_read"] == 1
    _is(row, buffer3_bytes=0, buffer4_lines=0)


def test_reuse_is_by_the_innermost_loop_that_does_not_move_a_buffer():
    (row,) = _rows(PRODUCT)
    # The sums come back in each step of the reduction: between two of them 16 iterations touch a
    # row of sums, a row of B and one element of A.
    _is(row, buffer0_reuse_count=8, buffer0_reuse_iterations=16, buffer0_reuse_bytes=132)
    # B comes back with each row: 128 iterations touch all of it, a row of A and a row of sums.
    _is(row, buffer1_reuse_count=4, buffer1_reuse_iterations=128, buffer1_reuse_bytes=608)
    # A comes back in each iteration, which touches one element of each buffer.
    _is(row, buffer2_reuse_count=16, buffer2_reuse_iterations=1, buffer2_reuse_bytes=12)
    _is(row, buffer0_bytes_by_reuse=256, buffer1_lines_by_reuse=8, buffer2_bytes_by_reuse=128)
    assert row["buffer0_reuse_loop"] == 1


def test_what_another_statement_touches_comes_back_by_it():
    text = "def f(A: f32[64], B: f32[64], C: f32[64]):\n    for i in range(64):\n"
    text += "        B[i] = A[i] + 1.0\n        C[i] = A[i] * 2.0\n"
    first, second = _rows(text)
    for row in (first, second):
        shared = next(k for k in (0, 1) if row[f"buffer{k}_read"])
        assert row[f"buffer{shared}_reuse_serial"] == 1
        _is(row, **{f"buffer{shared}_reuse_count": 1, f"buffer{shared}_reuse_bytes": 8})
        assert row[f"buffer{1 - shared}_reuse_none"] == 1
        _is(row, **{f"buffer{1 - shared}_bytes_by_reuse": 512})


def test_packed_and_unpacked_operands_differ():
    unpacked = PRODUCT.replace("B[k * 16 + j]", "B[j * 8 + k]")
    (row,), (other,) = _rows(PRODUCT), _rows(unpacked)
    _is(row, buffer1_lines=32)
    # Each column is eight elements further on: half a line each.
    _is(other, buffer0_lines=256, buffer0_stride=8, buffer0_unique_lines=8)


def test_intensity_ends_with_all_operations_by_all_bytes():
    (row,) = _rows(PRODUCT)
    assert row["intensity_9"] == pytest.approx(log2(1 + 1024 / (256 + 512 + 128)))
    assert row["intensity_0"] <= row["intensity_9"]


def test_allocations_know_the_loops_around_them():
    (row,) = _rows(PRODUCT)
    _is(row, alloc_bytes=256, alloc_product=64, alloc_outer=1, alloc_inner=512)
    text = "def f(A: f32[8], B: f32[8]):\n    for i in range(4):\n        T = alloc(f32[2])\n"
    text += "        for j in range(2):\n            T[j] = A[i * 2 + j]\n"
    text += "        for j_1 in range(2):\n            B[i * 2 + j_1] = T[j_1]\n"
    inner = _rows(text)[0]
    _is(inner, alloc_bytes=8, alloc_product=8, alloc_outer=4, alloc_inner=2)


def test_vector_instructions_of_whole_vectors():
    (row,) = _rows(PRODUCT)
    # 32 rows of two vectors: a multiply-add, two loads and a store each, and one that is broadcast.
    _is(row, vector_instructions=32 * 2 * 4 + 32, lanes=8)
    assert row["lanes_filled"] == 1
    assert row["is_vector"] == 1


def test_elements_that_lie_apart_are_moved_one_by_one():
    (row,) = _rows(PRODUCT.replace("B[k * 16 + j]", "B[j * 8 + k]"))
    _is(row, vector_instructions=32 * (2 * 3 + 1 + 16))


def test_cycles_are_those_of_the_busiest_port():
    (row,) = _rows(PRODUCT)
    machine = AVX2.machine
    ports = max(64 / machine.fma_per_cycle, 160 / machine.vector_loads, 64 / machine.vector_stores)
    whole = 256 + 512 + 128
    behind = sum(whole / machine.level(n).read for n in (2, 3, 4))
    _is(row, cycles=ports + behind)


def test_copies_of_an_unrolled_loop_share_loads():
    update = _rows(TILED)[1]
    # Eight steps: twelve multiply-adds, three vectors of B for all rows, four elements of A.
    _is(update, vector_instructions=8 * (12 + 3 + 4))


def test_register_tiles_and_what_does_not_fit():
    start, update, end = _rows(TILED)
    # Twenty columns are two vectors of eight and one of four, where masks cost something.
    _is(update, register_tile=4 * 3, registers_spilled=0, copies=4 * 3)
    assert update["lanes_filled"] == pytest.approx(20 / 24)
    assert update["registers_share"] == (12 + 3 + 1) / 16
    _is(start, register_tile=12)
    _is(end, register_tile=12)
    wide = TILED.replace("unrolled(4)", "unrolled(6)").replace("32]", "48]").replace("80]", "120]")
    _is(_rows(wide)[1], register_tile=18, registers_spilled=18 + 4 - 16)


def test_traffic_is_what_a_cache_does_not_hold():
    text = "def f(A: f32[32768], B: f32[1]):\n    for t in range(3):\n"
    text += "        for i in range(32768):\n            B[0] = B[0] + A[i]\n"
    (row,) = _rows(text)
    whole = 32768 * 4
    first, second = (AVX2.machine.level(n).size_bytes for n in (1, 2))
    assert first < whole < second
    _is(row, into_l1=3 * whole + 4, into_l2=whole + 4)  # again in each pass, or once
    assert row["share_of_l1"] == pytest.approx(log2((whole + 5) / first))


def test_tails_are_the_part_outside_of_the_longest_nest():
    text = "def f(A: f32[10], B: f32[10]):\n    for i in range(8):\n        B[i] = A[i] + 1.0\n"
    text += "    for i_1 in range(2):\n        B[i_1 + 8] = A[i_1 + 8] + 1.0\n"
    assert [row["tail"] for row in _rows(text)] == pytest.approx([0.2, 0.2])


def test_program_is_its_heaviest_statements_and_the_sum():
    row = columns(PROGRAM_NAMES, program_features(parse(TILED), AVX2))
    _is(row, store0_float_mad=4 * 20 * 8, sum_float_mad=4 * 20 * 8, sum_iterations=80 * 10)
    assert row["stores"] == 3
    _is(row, machine_vector_bytes=32, machine_vector_registers=16)


def test_program_without_statements_has_features():
    found = program_features(parse("def f(A: f32[8]):\n    pass\n"), AVX2)
    assert not found.any()


def test_packed_weights_look_packed_after_lowering():
    program = library.matmul(64, 256, 256)
    found = []
    for constants in ((), ("B",)):
        func = lowered_loops(draft(program, AVX2, 1, constants).func, AVX2)
        found.append(program_features(func, AVX2))
    assert not np.array_equal(*found)
