"""The examples of the error reference: each raises its code and shows how; each fix works."""

from __future__ import annotations

import ast
import re
import traceback
from collections.abc import Iterable

import pytest

from tilewright.errors import TilewrightError
from tilewright.explain import EXAMPLES
from tilewright.explain.run import PRELUDE, error_of, run_right

OUTSIDE_OF_STEPS = {"S003", "S004", "S006", "S440"}
"""Errors about traces and of recipes: there is no step, or it is not the one that failed."""

WITHOUT_PROGRAM = {"S002", "S003", "S004", "S006", "S420"}
"""Errors about the words of a step alone."""


@pytest.fixture(scope="module")
def error(request: pytest.FixtureRequest) -> TilewrightError:
    """What the example of a code raises, for all tests of it."""
    return error_of(EXAMPLES[request.param])


def of_each(codes: Iterable[str]) -> pytest.MarkDecorator:
    """A test of the errors of these codes' examples, which are run once."""
    return pytest.mark.parametrize("error", [*codes], indirect=True, scope="module")


@of_each(EXAMPLES)
def test_example_raises_its_code(error, request):
    code = request.node.callspec.params["error"]
    text = str(error)
    assert error.code.id == code, text
    assert text.startswith(f"{code}: ")
    assert not re.search(r"<\w+>", text.partition("\n")[0]), f"a fact is missing:\n{text}"
    assert "\n  hint: " in text, f"nothing says what to do:\n{text}"
    assert not re.search(r"0x[0-9a-f]{6}|/tmp|/home|/work|site-packages", text), text


@of_each(code for code in EXAMPLES if not EXAMPLES[code].alone)
def test_last_statement_raises(error):
    code = error.code.id
    example = EXAMPLES[code]
    if example.wrong.startswith("$ "):
        assert example.wrong.count("\n") == 0
        return
    source = f"{PRELUDE}\n{example.given}\n{example.wrong}\n"
    frames = traceback.extract_tb(error.__traceback__)
    (line,) = [frame.lineno for frame in frames if frame.filename == f"<{code}>"][:1]
    last = ast.parse(source).body[-1]
    assert last.lineno <= line <= (last.end_lineno or line)


@of_each(code for code in EXAMPLES if code[0] == "S")
def test_errors_of_steps_show_step_and_program(error):
    text = str(error)
    assert ("\n  step: " in text) == (error.code.id not in OUTSIDE_OF_STEPS)
    assert ("\n    def " in text) == (error.code.id not in WITHOUT_PROGRAM)


@of_each(code for code in EXAMPLES if code[:2] in ("V0", "V1"))
def test_errors_of_programs_mark_the_place(error):
    assert "  # <- " in str(error)


@pytest.mark.parametrize("code", EXAMPLES)
def test_fix_of_example_works(code):
    example = EXAMPLES[code]
    assert example.right != example.wrong
    run_right(example)


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_reads_well(code):
    """Two or three sentences, and lines that fit on the page."""
    example = EXAMPLES[code]
    assert re.search(r"[.]$", example.meaning)
    assert 40 <= len(example.meaning) <= 330
    lines = f"{example.given}\n{example.wrong}\n{example.right}".splitlines()
    assert max(map(len, lines)) <= 100
