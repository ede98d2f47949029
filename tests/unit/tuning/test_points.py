"""Features of points: names, values that are known, every recipe, and that they are fast."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from tests.unit.tuning.nests import AVX2
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.cycles import contraction_cycles, contraction_parts
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.space import ContractionPoint, ContractionShape
from tilewright.schedule.recipes.table import Table
from tilewright.target import Target
from tilewright.tensor import library
from tilewright.tuning.features.points import (
    SHARED,
    columns_of,
    features_of_points,
    point_features,
)
from tilewright.tuning.features.sizes import sizes_of

SHAPE = ContractionShape(1, 100, 70, 64, 4, right_is_constant=True, threads=2)
POINTS = (
    ContractionPoint(6, 2, 8, 4, 64, parallel=0),
    ContractionPoint(8, 3, 8, 1, 24, parallel=1, shares=8),
)


def _columns(points=POINTS, shape=SHAPE, target=AVX2) -> dict[str, np.ndarray]:
    found = point_features(CONTRACTION, shape, Table.of(points), target)
    return dict(zip(found.names, found.rows.T, strict=True))


def test_columns_and_sizes_are_logarithms():
    columns = _columns()
    assert columns["contraction.tile_rows"] == pytest.approx([log2(7), log2(9)])
    assert columns["contraction.shape.rows"] == pytest.approx([log2(101)] * 2)


def test_sets_of_columns_have_the_analytic_prediction_and_their_own():
    names = tuple(_columns())
    more = (*names, "variant", "1.packs", "1.scattered.vectors", "1.scattered.shape.rows")
    assert columns_of(more, "all") == more
    assert columns_of(more, "shared") == (*SHARED, "1.packs")
    decisions = columns_of(more, "decisions")
    assert decisions[0] == "cycles_by_draft"
    assert decisions[-2:] == ("variant", "1.scattered.vectors")
    own = {f"contraction.{name}" for name in Table.of(POINTS).columns}
    assert set(decisions[1:-2]) == own


def test_registers_and_spills():
    columns = _columns()
    assert columns["tile_area"] == pytest.approx([log2(12), log2(24)])
    assert columns["registers_share"] == pytest.approx([15 / 16, 28 / 16])
    assert columns["registers_spilled"] == pytest.approx([0, log2(28 - 16 + 1)])


def test_tails_are_parts_of_what_is_computed():
    columns = _columns()
    assert columns["rows_tail"] == pytest.approx([2 / 102, 4 / 104])
    assert columns["columns_tail"] == pytest.approx([10 / 80, 2 / 72])
    assert columns["reduce_tail"] == pytest.approx([0, 8 / 72])
    assert columns["visits"] == pytest.approx([0, log2(3)])


def test_sizes_beside_caches():
    columns = _columns()
    first, second = (AVX2.machine.level(n).size_bytes for n in (1, 2))
    assert columns["panel_by_l1"][0] == pytest.approx(log2(64 * 16 * 4 / first))
    assert columns["block_by_l2"][0] == pytest.approx(log2(4 * 6 * 64 * 4 / second))
    assert columns["right_by_l2"][0] == pytest.approx(log2(64 * 70 * 4 / second))


def test_chunks_for_each_core():
    columns = _columns()
    assert columns["chunks_per_core"][0] == 0
    assert columns["chunks_per_core"][1] > 0
    assert (columns["imbalance"] >= 0).all()


def test_parts_of_a_prediction_are_all_of_it():
    table = Table.of(POINTS)
    parts = contraction_parts(SHAPE, AVX2.machine, table)
    assert parts.cycles == pytest.approx(contraction_cycles(SHAPE, AVX2.machine, table))


def test_prediction_is_beside_the_draft():
    table = CONTRACTION.space(SHAPE, AVX2)
    found = point_features(CONTRACTION, SHAPE, table, AVX2).only(["cycles_by_draft"]).rows
    assert found.min() == pytest.approx(0)


@pytest.mark.parametrize(
    "program",
    [
        library.matmul(64, 48, 32),
        library.softmax(33, 100),
        library.attention(1, 2, 32, 48, 16),
        library.add(33, 100),
        library.conv2d(1, 8, 8, 16, 16, 3),
        library.depthwise_conv2d(1, 12, 12, 16, 3),
        library.max_pool2d(1, 12, 12, 16, 2),
        library.transpose(33, 65),
        library.column_sum(33, 65),
    ],
    ids=lambda program: program.name,
)
@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v4", "aarch64"])
def test_every_recipe_has_features(program, target):
    target = Target.named(target)
    for decision in draft(program, target, 2).decisions:
        table = decision.recipe.space(decision.shape, target)
        found = point_features(decision.recipe, decision.shape, table, target)
        assert found.names[: len(SHARED)] == SHARED
        assert not np.isinf(found.rows).any()
        assert np.isfinite(found.rows[:, len(SHARED) :]).all()


def test_several_shapes_of_a_recipe_are_one_table():
    other = ContractionShape(4, 33, 50, 20, 4, right_is_constant=False, threads=1, walk=(4, 5))
    table = Table.of(POINTS)
    found = features_of_points([(CONTRACTION, s, table) for s in (SHAPE, other)], AVX2)
    assert found.rows.shape == (4, len(found.names))


def test_sizes_have_names_of_the_class_alone():
    other = ContractionShape(4, 33, 50, 20, 4, right_is_constant=False, threads=1, walk=(4, 5))
    assert [name for name, _ in sizes_of(SHAPE)] == [name for name, _ in sizes_of(other)]
    assert dict(sizes_of(other))["walk_product"] == pytest.approx(log2(21))


def test_different_recipes_have_different_columns():
    (decision,) = draft(library.add(33, 100), AVX2, 1).decisions
    table = decision.recipe.space(decision.shape, AVX2)
    pairs = [(CONTRACTION, SHAPE, Table.of(POINTS)), (decision.recipe, decision.shape, table)]
    with pytest.raises(ValueError, match="different recipes"):
        features_of_points(pairs, AVX2)
