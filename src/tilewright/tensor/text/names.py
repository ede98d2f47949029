"""Names for printing: unique, deterministic, and equal to the hints wherever possible.

Loops, buffers and sizes get names that are unique in the whole program, because these names are the
handles of schedules. Iterators belong to their block, so `vi` may appear in many blocks.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node
from tilewright.tensor.visit import walk

__all__ = ["Names", "identifier"]

Named = tir.Var | tir.Buffer


def identifier(hint: str) -> str:
    """`hint` made a valid Python name: `i.0` becomes `i_0`."""
    text = re.sub(r"\W", "_", hint) or "_"
    if text[0].isdigit():
        text = f"_{text}"
    return f"{text}_" if keyword.iskeyword(text) else text


class Names:
    """Gives each variable and buffer its name; the first to ask for a hint gets it unchanged."""

    def __init__(self, root: Node | None = None) -> None:
        # A second `i` must not take `i_1` from a variable that is really called so.
        self._hints = set(_hints(root)) if root is not None else set()
        self._taken: set[str] = set()
        self._names: dict[Named, str] = {}

    def of(self, thing: Named) -> str:
        """The name of a variable or buffer."""
        name = self._names.get(thing)
        if name is None:
            name = self._names[thing] = self._free(identifier(thing.name))
            self._taken.add(name)
        return name

    def release(self, things: Iterable[Named]) -> None:
        """Their names may be used again: their scope has ended."""
        for thing in things:
            self._taken.discard(self._names.get(thing, ""))

    def _free(self, hint: str) -> str:
        if hint not in self._taken:
            return hint
        number = 1
        while (name := f"{hint}_{number}") in self._taken or name in self._hints:
            number += 1
        return name


def _hints(root: Node) -> Iterable[str]:
    if isinstance(root, tir.Func):
        yield from (identifier(p.name) for p in root.params)
        root = root.body
    for node in walk(root):
        match node:
            case tir.Var():
                yield identifier(node.name)
            case tir.Alloc(buffer=buffer) | tir.Load(buffer=buffer) | tir.Store(buffer=buffer):
                yield identifier(buffer.name)
