"""The package's own source as data for the meta tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tilewright"


@dataclass(frozen=True)
class Source:
    """One module: its dotted name below `tilewright` (empty for the package), text and tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def part(self) -> str:
        """The first name below the package: the layer that this module belongs to."""
        return self.name.split(".", maxsplit=1)[0]

    def imports(self) -> Iterator[tuple[int, str]]:
        """(line, dotted module) of everything imported, at any depth of the module.

        `from a.b import c` yields `a.b.c`: whether `c` is a module or a name does not matter
        to rules that look at prefixes.
        """
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)

    def at(self, line: int) -> str:
        """`path:line`, clickable."""
        return f"{self.path.relative_to(ROOT)}:{line}"


@cache
def sources() -> tuple[Source, ...]:
    """All modules of the package, in a stable order."""
    return tuple(_read(path) for path in sorted(PACKAGE.rglob("*.py")))


def _read(path: Path) -> Source:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text(encoding="utf-8")
    return Source(name, path, text, ast.parse(text, filename=str(path)))
