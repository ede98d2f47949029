import pickle

import pytest

from tests.expect import raises_code
from tilewright.errors import (
    CODES,
    Code,
    InternalError,
    ProgramError,
    ScheduleError,
    UserError,
    require,
)
from tilewright.tensor import library
from tilewright.tensor.parser import parse

SAMPLE = Code("X901", "loop `{loop}` cannot be {verb}")


class Thing:
    name = "i"


def test_error_text_has_summary_facts_and_hint():
    error = ScheduleError(
        SAMPLE, {"verb": "split", "extent": 7}, marks={"loop": Thing()}, hint="try 8"
    )
    assert str(error) == "X901: loop `i` cannot be split\n  extent: 7\n  hint: try 8"


def test_error_text_shows_the_step_and_the_marked_program():
    func = library.add(2, 2)
    error = ScheduleError(SAMPLE, program=func, marks={"loop": func.body}).at_step("split('i', 3)")
    lines = str(error).splitlines()
    assert lines[1] == "  step: split('i', 3)"
    assert "    for i in range(2):  # <- loop" in "\n".join(lines)


def test_error_without_facts_names_the_missing_hole():
    assert str(ScheduleError(SAMPLE)) == "X901: loop `<loop>` cannot be <verb>"


def test_error_crosses_processes_with_its_text():
    func = library.add(2, 2)
    error = ScheduleError(SAMPLE, {"verb": "fused"}, program=func, marks={"loop": func.body})
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, ScheduleError)
    assert copy.code.id == "X901"
    assert str(copy) == str(error)


def test_parse_error_crosses_processes_with_its_excerpt():
    with raises_code("P003") as caught:
        parse("def f(A: f32[4]):\n    A[x] = 0.0")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)


def test_error_of_a_module_that_is_not_here_leaves_its_code_free(monkeypatch):
    text = pickle.dumps(UserError(Code("X902", "`{file}` is damaged"), {"file": "m"}))
    monkeypatch.delitem(CODES, "X902")
    copy = pickle.loads(text)
    assert (copy.code.id, str(copy)) == ("X902", "X902: `m` is damaged")
    assert Code("X902", "`{file}` is damaged") in CODES.values()


def test_codes_have_one_meaning():
    assert CODES["X901"] is SAMPLE
    assert Code("X901", SAMPLE.summary) == SAMPLE
    with pytest.raises(ValueError, match="X901 is defined twice"):
        Code("X901", "something else")


def test_require_raises_only_when_needed():
    require(True, ProgramError, SAMPLE, facts={"verb": "x"})
    with raises_code("X901", facts={"verb": "x"}):
        require(False, ProgramError, SAMPLE, facts={"verb": "x"})


def test_whose_fault_is_in_the_type():
    assert issubclass(ScheduleError, UserError)
    assert not issubclass(InternalError, UserError)
