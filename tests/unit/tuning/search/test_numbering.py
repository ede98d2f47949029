"""Numbers of points: equal for equal rows only, in spaces of any size."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.tuning.search.spaces import Grid, keys_of
from tilewright.tuning.search.numbering import (
    codes_of,
    codes_of_keys,
    digits_of,
    distinct,
    is_among,
    sound,
)

SMALL = (3, 1, 4, 2)
HUGE = (100,) * 12


def test_codes_of_a_small_space_are_its_numbers():
    rows = digits_of(np.arange(24), SMALL)
    assert rows[:3].tolist() == [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    assert codes_of(rows, SMALL).tolist() == list(range(24))


@pytest.mark.parametrize("lengths", [(2,) * 64, (1 << 32, 1 << 32), HUGE])
def test_codes_differ_in_spaces_beyond_integers(lengths, rng):
    rows = rng.integers(lengths, size=(5000, len(lengths)))
    rows[0], rows[1] = np.zeros(len(lengths)), np.array(lengths) - 1
    assert len(np.unique(codes_of(rows, lengths))) == len(np.unique(rows, axis=0))


def test_digits_of_numbers_beyond_integers():
    number = 37 * 100**11 + 99
    assert digits_of(np.array([number], object), HUGE).tolist() == [[37] + [0] * 10 + [99]]


@pytest.mark.parametrize("lengths", [SMALL, HUGE, ()])
def test_codes_of_keys_are_those_of_their_rows(lengths, rng):
    rows = rng.integers(lengths, size=(9, len(lengths)))
    expected = np.unique(codes_of(rows, lengths))
    assert np.array_equal(np.unique(codes_of_keys(keys_of(rows), lengths)), expected)


def test_distinct_keeps_the_first_in_order():
    assert distinct(np.array([5, 3, 5, 9, 3], np.uint64)).tolist() == [0, 1, 3]


def test_is_among():
    known = np.array([2, 4, 8], np.uint64)
    asked = np.array([8, 9, 1, 2, 3], np.uint64)
    assert is_among(asked, known).tolist() == [True, False, False, True, False]
    assert not is_among(asked, known[:0]).any()


def test_sound_leaves_out_what_is_no_point():
    space = Grid((4, 4), every=2)
    rows = np.array([[1, 1], [1, 2], [1, 1], [5, 1], [-1, 1], [3, 3]])
    assert sound(space, rows).tolist() == [[1, 1], [3, 3]]
    assert sound(space, None).shape == sound(space, np.ones((2, 3))).shape == (0, 2)
