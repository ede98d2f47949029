"""Small rules of conduct for library code, each checked on the syntax tree."""

from __future__ import annotations

import ast
import importlib
from pathlib import PurePath

from tests.meta.source_files import ROOT, sources

MAX_LINES = 450


def test_no_module_is_too_long():
    long = [
        f"{source.at(1)} has {lines} lines; do two ideas share it?"
        for source in sources()
        if (lines := source.text.count("\n")) > MAX_LINES
    ]
    assert not long, "\n".join(long)


def test_every_module_opens_with_a_docstring():
    bare = [s.at(1) for s in sources() if s.text.strip() and ast.get_docstring(s.tree) is None]
    assert not bare, "\n".join(bare)


def test_environment_is_read_in_options_only():
    wrong = [
        source.at(node.lineno)
        for source in sources()
        if source.name != "options"
        for node in ast.walk(source.tree)
        if _reads_environment(node)
    ]
    assert not wrong, "\n".join(wrong)


def _reads_environment(node: ast.AST) -> bool:
    names = {"environ", "environb", "getenv", "getenvb"}
    if isinstance(node, ast.Attribute):
        return node.attr in names and isinstance(node.value, ast.Name) and node.value.id == "os"
    if isinstance(node, ast.ImportFrom):
        return node.module == "os" and any(alias.name in names for alias in node.names)
    return False


def test_library_does_not_print():
    wrong = [
        source.at(node.lineno)
        for source in sources()
        if source.part != "cli"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_has_a_name_that_says_nothing():
    vague = {"utils", "util", "misc", "common", "helpers"}
    wrong = [s.at(1) for s in sources() if vague & set(s.name.split("."))]
    assert not wrong, "\n".join(wrong)


def test_every_golden_belongs_to_a_test():
    """A text whose test is gone or renamed is removed with it."""
    golden = ROOT / "tests" / "golden"
    orphans = [
        str(text.relative_to(ROOT))
        for text in sorted(golden.rglob("*.txt"))
        if not _has_test(text.relative_to(golden))
    ]
    assert not orphans, "\n".join(orphans)


def _has_test(text: PurePath) -> bool:
    module = ROOT / "tests" / text.parent.with_suffix(".py")
    if not module.exists():
        return False
    functions = {
        node.name
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    # Parameters and further texts follow the name: test_split_8_4.txt, test_split.after.txt.
    return any(text.name.startswith(name) for name in functions)


def test_every_module_can_be_imported():
    for source in sources():
        if source.name.rpartition(".")[2] == "__main__":
            continue  # importing it runs the program
        importlib.import_module(f"tilewright.{source.name}" if source.name else "tilewright")
