"""The golden fixture itself: what a missing, an equal and a different text do."""

from __future__ import annotations

import pytest

from tests.conftest import TESTS, Golden, pytest_assertrepr_compare


def test_a_missing_text_is_a_clear_failure():
    golden = Golden(TESTS / "golden" / "meta" / "nothing.txt", update=False)
    with pytest.raises(pytest.fail.Exception, match="no expected text tests/golden/meta/nothing"):
        assert golden == "some text"


def test_texts_are_written_on_request_and_compared_without_trailing_newlines(tmp_path):
    path = tmp_path / "folder" / "text.txt"
    assert Golden(path, update=True) == "a\nb"
    golden = Golden(path, update=False)
    assert golden == "a\nb\n"
    assert golden != "a\nc"
    assert golden.named("after").path.name == "text.after.txt"


def test_a_difference_is_shown_as_a_diff(golden):
    assert golden == "first\nsecond\n"
    shown = pytest_assertrepr_compare("==", Golden(golden.path, update=False), "first\nthird")
    assert shown is not None
    assert shown[-2:] == ["-second", "+third"]
    assert pytest_assertrepr_compare("==", 1, 2) is None
