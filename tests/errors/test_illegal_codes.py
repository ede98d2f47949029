"""Cases of refused steps together: names are distinct, and no code of a primitive is left out."""

from __future__ import annotations

from tests.errors import (
    test_illegal_blocks,
    test_illegal_computation,
    test_illegal_layout,
    test_illegal_loops,
    test_illegal_tensorize,
)
from tilewright.errors import CODES

FILES = [
    test_illegal_blocks,
    test_illegal_computation,
    test_illegal_layout,
    test_illegal_loops,
    test_illegal_tensorize,
]


def test_cases_of_a_file_have_distinct_names():
    for file in FILES:
        assert len({case.name for case in file.CASES}) == len(file.CASES) >= 15


def test_every_code_of_computations_and_layouts_is_raised():
    ours = {c for c in CODES if "S200" <= c < "S250" or "S300" <= c < "S400"}
    cases = [*test_illegal_computation.CASES, *test_illegal_layout.CASES]
    assert ours <= {case.code for case in cases}
