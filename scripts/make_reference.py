"""Write docs/primitives.md and docs/errors.md from the code, so that they cannot go stale.

`python scripts/make_reference.py` writes the pages; with `--check` it only says whether they are up
to date, which the test suite asks.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from pathlib import Path

import tilewright
from tilewright import explain
from tilewright.errors import CODES
from tilewright.schedule import PRIMITIVES
from tilewright.schedule.primitive import Primitive

DOCS = Path(__file__).parents[1] / "docs"


def primitives_page() -> str:
    """One section per primitive, from its docstring."""
    lines = [
        "# Schedule primitives",
        "",
        "Made by `python scripts/make_reference.py` from the docstrings.",
        "",
        *(f"- [`{name}`](#{name})" for name in PRIMITIVES),
    ]
    for primitive in PRIMITIVES.values():
        lines += ["", f"## {primitive.name}", "", f"`s.{_call(primitive)}`", ""]
        lines += ["```text", primitive.doc, "```"]
    return "\n".join(lines) + "\n"


def _call(primitive: Primitive) -> str:
    parts = []
    for parameter in primitive.parameters:
        text = f"*{parameter.name}" if parameter.variadic else parameter.name
        if parameter.default is not inspect.Parameter.empty:
            text += f"={parameter.default!r}"
        parts.append(text)
    return f"{primitive.name}({', '.join(parts)})"


def errors_page() -> str:
    """One section per code with its example, which is run: see `tilewright.explain`."""
    for module in pkgutil.walk_packages(tilewright.__path__, "tilewright."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    unknown = {code[0] for code in CODES} - explain.FAMILIES.keys()
    assert not unknown, f"families without a title: {unknown}"
    return explain.page(CODES, explain.EXAMPLES)


PAGES = {"primitives.md": primitives_page, "errors.md": errors_page}


def main() -> int:
    """Write or check the pages; 1 if a check finds an old one."""
    stale = 0
    for name, make in PAGES.items():
        text, path = make(), DOCS / name
        if "--check" in sys.argv:
            fresh = path.exists() and path.read_text(encoding="utf-8") == text
            print(f"{path.name}: {'up to date' if fresh else 'out of date'}")
            stale += not fresh
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
