"""The examples of the error reference: each raises its code and shows how; each fix works."""

from __future__ import annotations

import ast
import re
import traceback

import pytest

from tilewright.explain import EXAMPLES
from tilewright.explain.run import PRELUDE, error_of, run_right

OUTSIDE_OF_STEPS = {"S003", "S004", "S440"}
"""Errors about traces and of recipes: there is no step, or it is not the one that failed."""

WITHOUT_PROGRAM = {"S002", "S003", "S004", "S420"}
"""Errors about the words of a step alone."""


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_raises_its_code(code):
    example = EXAMPLES[code]
    error = error_of(example)
    text = str(error)
    assert error.code.id == code, text
    assert text.startswith(f"{code}: ")
    assert not re.search(r"<\w+>", text.partition("\n")[0]), f"a fact is missing:\n{text}"
    assert "\n  hint: " in text, f"nothing says what to do:\n{text}"
    assert not re.search(r"0x[0-9a-f]{6}|/tmp|/home|/work|site-packages", text), text


@pytest.mark.parametrize("code", [code for code in EXAMPLES if not EXAMPLES[code].alone])
def test_last_statement_raises(code):
    example = EXAMPLES[code]
    if example.wrong.startswith("$ "):
        assert example.wrong.count("\n") == 0
        return
    source = f"{PRELUDE}\n{example.given}\n{example.wrong}\n"
    frames = traceback.extract_tb(error_of(example).__traceback__)
    (line,) = [frame.lineno for frame in frames if frame.filename == f"<{code}>"][:1]
    last = ast.parse(source).body[-1]
    assert last.lineno <= line <= (last.end_lineno or line)


@pytest.mark.parametrize("code", [code for code in EXAMPLES if code[0] == "S"])
def test_errors_of_steps_show_step_and_program(code):
    text = str(error_of(EXAMPLES[code]))
    assert ("\n  step: " in text) == (code not in OUTSIDE_OF_STEPS)
    assert ("\n    def " in text) == (code not in WITHOUT_PROGRAM)


@pytest.mark.parametrize("code", [code for code in EXAMPLES if code[:2] in ("V0", "V1")])
def test_errors_of_programs_mark_the_place(code):
    assert "  # <- " in str(error_of(EXAMPLES[code]))


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
