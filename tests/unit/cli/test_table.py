"""Tables that fit a screen of any width."""

from __future__ import annotations

import pytest

from tilewright.cli.table import aligned, cut, fitted

LINES = [
    ["name", "path", "time", "rate"],
    ["a", "/a/long/path/to/something", "1 ms", "100.0"],
    ["another", "plain text that is long", "20 ms", "7.0"],
]


def test_columns_are_aligned():
    assert aligned([["name", "size"], ["a", "10"]]) == "name  size\na       10"


@pytest.mark.parametrize("width", [80, 48, 40, 30])
def test_columns_are_cut_and_then_left_out(width):
    text = fitted(LINES, 2, {"path": 10}, ["rate"], width)
    assert max(map(len, text.splitlines())) <= width
    assert ("rate" in text) == (width >= 36)
    assert ("/a/long/path" in text) == (width >= 48)


def test_a_table_that_cannot_fit_is_as_narrow_as_it_may_be():
    text = fitted(LINES, 2, {"path": 10}, ["rate"], 10)
    assert "rate" not in text
    assert max(map(len, text.splitlines())) == 7 + 2 + 10 + 2 + 5


def test_paths_keep_their_end_and_texts_their_beginning():
    assert cut("/a/b/conv", 6) == "…/conv"
    assert cut("abcdefghi", 6) == "abcde…"
    assert cut("abc", 6) == "abc"
