"""Primitives keep their form: fixed parts in the docstring, and the codes that they raise."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

import tilewright.schedule.primitives as folder
from tests.meta.source_files import sources
from tilewright.errors import CODES
from tilewright.schedule import PRIMITIVES


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_docstring_has_the_fixed_parts(name):
    doc = PRIMITIVES[name].doc
    places = [doc.find(part) for part in ("Before:", "After:", "Requires:", "Example:")]
    assert -1 not in places, f"{name} lacks a part of its docstring"
    assert places == sorted(places)
    assert f"s.{name}(" in doc


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_required_codes_exist(name):
    _, _, required = PRIMITIVES[name].doc.partition("Requires:")
    codes = re.findall(r"\b[SV]\d{3}\b", required)
    assert codes, f"{name} says nothing about what it refuses"
    assert set(codes) <= set(CODES)


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_own_codes_are_documented(name):
    """Every code that the file of a primitive defines stands in its docstring."""
    module = inspect.getmodule(PRIMITIVES[name].function)
    source = next(s for s in sources() if f"tilewright.{s.name}" == module.__name__)
    defined = {
        target.id
        for node in source.tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and re.fullmatch(r"S\d{3}", target.id)
    }
    missing = {code for code in defined if code not in PRIMITIVES[name].doc}
    assert not missing, f"{name} does not mention {sorted(missing)}"


def test_one_file_per_primitive():
    files = {s.name.rpartition(".")[2] for s in sources() if s.name.startswith(f"{_below()}.")}
    assert files == set(PRIMITIVES)


def _below() -> str:
    return folder.__name__.removeprefix("tilewright.")
