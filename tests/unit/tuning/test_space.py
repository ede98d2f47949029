"""The space of a kernel: digits, numbers, points, prices and features."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.unit.tuning.nests import AVX2
from tilewright.schedule.draft import draft
from tilewright.schedule.points import decided_cycles
from tilewright.tensor import library
from tilewright.tensor.library.convolve import convolve
from tilewright.tuning.features.points import SHARED
from tilewright.tuning.space import KernelSpace
from tilewright.tuning.task import task_of_func


def _program(kind: str):
    a = tw.placeholder("A", (64, 96))
    match kind:
        case "product":
            return library.matmul(64, 80, 96)
        case "softmax":
            return library.softmax(64, 96)
        case "copy":
            return tw.func("copy", [a], [tw.compute("C", (96, 64), lambda i, j: a[j, i])])
        case "map":
            return tw.func("map", [a], [tw.compute("C", (64, 96), lambda i, j: a[i, j] * 2 + 1)])
    raise AssertionError(kind)


KINDS = ("product", "softmax", "copy", "map")


@pytest.fixture(params=KINDS)
def space(request) -> KernelSpace:
    return task_of_func(_program(request.param), AVX2, threads=2).drafted.space


def test_numbers_and_digits_are_inverse(space):
    rows = space.sample(np.random.default_rng(1), 20)
    assert len(rows)
    assert [space.digits(space.number(row)).tolist() for row in rows] == rows.tolist()
    assert all(0 <= space.number(row) < space.size for row in rows)


def test_samples_are_followed_and_different(space):
    rows = space.sample(np.random.default_rng(2), 50)
    assert space.followed(rows).all()
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_points_and_digits_are_inverse(space):
    for row in space.sample(np.random.default_rng(3), 10):
        found = space.digits_of(space.points(row))
        assert found is not None
        assert space.points(found) == space.points(row)


def test_the_draft_is_a_point_and_its_price_is_that_of_the_draft(space):
    drafted = space.drafted()
    assert drafted is not None
    expected = sum(decided_cycles(d, AVX2.machine) for d in space.decisions)
    assert space.cycles(drafted[None])[0] == pytest.approx(expected)
    columns = dict(zip(*_columns(space, drafted), strict=True))
    assert columns[SHARED[0]] == pytest.approx(0, abs=1e-6)


def _columns(space: KernelSpace, row):
    found = space.features(row[None])
    return found.names, found.rows[0]


def test_features_of_one_space_have_the_same_columns(space):
    rng = np.random.default_rng(4)
    first, second = (space.features(space.sample(rng, 5)) for _ in range(2))
    assert first.names == second.names
    assert first.names[: len(SHARED)] == SHARED


@pytest.mark.parametrize("kind", KINDS)
def test_a_sampled_point_is_what_the_draft_then_decides(kind):
    program = _program(kind)
    space = task_of_func(program, AVX2, threads=2).drafted.space
    for row in space.sample(np.random.default_rng(5), 4):
        points = space.points(row)
        decided = {(d.block, d.point) for d in draft(program, AVX2, 2, points=points).decisions}
        assert decided.issuperset(points.items())


def test_the_nearest_point_of_another_space_is_followed():
    large = task_of_func(_program("product"), AVX2).drafted.space
    other = task_of_func(library.matmul(48, 96, 128), AVX2).drafted.space
    near = 0
    for row in large.sample(np.random.default_rng(6), 20):
        (point,) = large.points(row).values()
        found = other.nearest({other.decisions[0].block: point})
        if found is not None:
            near += 1
            assert other.followed(found[None])[0]
    assert near > 10


def test_the_loops_of_a_layer_have_millions_of_points():
    x, w = tw.placeholder("X", (1, 58, 58, 64)), tw.placeholder("W", (64, 64, 3, 3))
    layer = tw.func("layer", [x, w], [convolve(x, w)])
    assert task_of_func(layer, AVX2, ["W"], threads=2).drafted.space.size >= 10**6
