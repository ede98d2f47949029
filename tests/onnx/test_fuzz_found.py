"""Models on which tilewright was once wrong: found by `python -m fuzz`, and kept as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.compare import difference
from fuzz.engines import run_reference, run_tilewright
from fuzz.kept import read_kept

FOUND = sorted((Path(__file__).parents[1] / "fuzz_found").glob("*.py"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_stays_right(path):
    kept = read_kept(path)
    expected = kept.expected or run_reference(kept.case.model, kept.case.runs)
    found, _ = run_tilewright(kept.case)
    assert not difference(found, expected)


def test_there_is_something_to_run():
    assert FOUND
