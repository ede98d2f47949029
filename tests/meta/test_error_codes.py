"""Every error code is explained by an example, raised by some test, and found on the page."""

from __future__ import annotations

import ast
import re

import pytest

from tests.meta.source_files import ROOT, sources
from tilewright.explain import EXAMPLES, FAMILIES

PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")


def _defined() -> dict[str, str]:
    """Where each code is defined: the registry in a test process may hold codes of tests."""
    found = {}
    for source in sources():
        for node in ast.walk(source.tree):
            match node:
                case ast.Call(
                    func=ast.Name(id="Code"), args=[ast.Constant(value=str() as code), _]
                ):
                    assert code not in found, f"{code} is defined at {found[code]}, too"
                    found[code] = source.at(node.lineno)
    return found


DEFINED = _defined()
BUGS = {code for code in DEFINED if code.startswith("I")}


def test_every_code_belongs_to_a_family():
    wrong = {code: at for code, at in DEFINED.items() if not re.fullmatch(r"[A-Z]\d{3}", code)}
    assert not wrong
    assert {code[0] for code in DEFINED} == FAMILIES.keys()


def test_every_code_has_an_example():
    missing = {code: DEFINED[code] for code in DEFINED.keys() - BUGS - EXAMPLES.keys()}
    assert not missing, f"add these to tilewright/explain/examples: {missing}"


def test_every_example_has_a_code():
    assert DEFINED.keys() - BUGS >= EXAMPLES.keys()


@pytest.mark.parametrize("code", sorted(BUGS))
def test_bugs_are_provoked_by_some_test(code):
    """What users can meet is raised by its example; bugs need a test that breaks something."""
    tests = (ROOT / "tests" / "unit").rglob("test_*.py")
    assert any(f'raises_code("{code}"' in test.read_text(encoding="utf-8") for test in tests)


def test_every_code_is_raised():
    """A code that nothing but its definition mentions is dead."""
    names = [
        node.id
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]
    assert not DEFINED.keys() - set(names)


def test_page_has_a_section_for_each_code():
    headings = re.findall(r"^### (\w+)$", PAGE, flags=re.MULTILINE)
    assert set(headings) == EXAMPLES.keys()
    assert len(headings) == len(EXAMPLES)


def test_links_of_the_page_lead_somewhere():
    titles = re.findall(r"^#+ (.*)$", PAGE, flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\]\(#([^)]*)\)", PAGE)) <= anchors
    assert "v103" in anchors
