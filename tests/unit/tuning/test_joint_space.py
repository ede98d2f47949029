"""Several kernels as one space: rows belong to one of them, and are priced together."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.tuning.nests import AVX2
from tilewright.tensor import library
from tilewright.tuning.features.points import SHARED
from tilewright.tuning.joint_space import JointSpace
from tilewright.tuning.search.mutation import crossed, mutated
from tilewright.tuning.task import task_of_func

SPACES = [
    task_of_func(program, AVX2, constants).drafted.space
    for program, constants in (
        (library.matmul(64, 80, 96), ["B"]),
        (library.softmax(64, 96), []),
        (library.matmul(96, 80, 64), []),
    )
]


@pytest.fixture(scope="module")
def space() -> JointSpace:
    return JointSpace(SPACES)


def test_samples_are_points_of_every_variant(space):
    rows = space.sample(np.random.default_rng(0), 200)
    assert space.followed(rows).all()
    assert set(rows[:, 0]) == {0, 1, 2}
    for row in rows[:20]:
        variant, own = space.part(row)
        assert SPACES[variant].followed(own[None])[0]
        assert (space.row_of(variant, own) == row).all()


def test_what_is_not_of_a_variant_is_not_followed(space):
    rows = space.sample(np.random.default_rng(1), 100)
    few = rows[rows[:, 0] == 1]
    assert len(few)
    beyond = few.copy()
    beyond[:, -1] = 1  # the shortest variant has no such digit
    assert not space.followed(beyond).any()


def test_its_size_is_that_of_all_together(space):
    assert space.size == sum(own.size for own in SPACES)
    assert space.combinations >= space.size


def test_prices_are_those_of_each_variant(space):
    rows = space.sample(np.random.default_rng(2), 30)
    expected = [SPACES[k].cycles(own[None])[0] for k, own in (space.part(row) for row in rows)]
    assert space.cycles(rows) == pytest.approx(expected)


def test_predictions_are_by_the_first_variants_draft(space):
    rows = space.sample(np.random.default_rng(3), 30)
    found = space.features(rows)
    predicted = found.rows[:, found.names.index(SHARED[0])]
    first = SPACES[0].drafted_cycles
    assert predicted == pytest.approx(np.log2(space.cycles(rows) / first), abs=1e-6)
    assert (found.rows[:, found.names.index("variant")] == rows[:, 0]).all()


def test_drafts_come_in_the_order_of_variants(space):
    assert space.drafts()[:, 0].tolist() == [0, 1, 2]
    assert space.followed(space.drafts()).all()


def test_changed_points_are_points(space):
    rng = np.random.default_rng(4)
    rows = space.sample(rng, 100)
    assert space.followed(mutated(space, rng, rows)).all()
    assert space.followed(crossed(space, rng, rows, rows[::-1])).all()
