"""Access to the children of nodes, generated once for each node class.

Which fields hold children is read from the annotations, so a new node class needs no code here.
Programs are walked and rebuilt thousands of times a second by a search; straight-line code for each
class is several times faster than a loop over field names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.tensor import ir as tir
from tilewright.tensor.node import Holds, Node, child_fields

__all__ = ["LEAVES", "children_of", "rebuild", "same_or"]

LEAVES = (tir.Const, tir.Var, tir.Buffer)
"""Nodes with identity or without expressions inside."""

Getter = Callable[[Any], tuple[Node, ...]]
Rebuilder = Callable[[Any, Callable[[Any], Any]], Any]


class _Getters(dict[type, Getter]):
    def __missing__(self, kind: type[Node]) -> Getter:
        parts = []
        for name, held in child_fields(kind):
            match held:
                case Holds.ONE:
                    parts.append(f"n.{name}")
                case Holds.MAYBE:
                    parts.append(f"*(() if n.{name} is None else (n.{name},))")
                case Holds.MANY:
                    parts.append(f"*n.{name}")
                case Holds.PAIRS:
                    parts.append(f"*[child for _, child in n.{name}]")
        inside = "".join(f"{part}, " for part in parts)
        made: Getter = eval(f"lambda n: ({inside})")  # noqa: S307 (made from field names only)
        self[kind] = made
        return made


class _Rebuilders(dict[type, Rebuilder]):
    def __missing__(self, kind: type[Node]) -> Rebuilder:
        made = self[kind] = _rebuilder(kind)
        return made


def _rebuilder(kind: type[Node]) -> Rebuilder:
    """`rebuild(n, change)`: the children changed; `n` itself if all stay the same."""
    fields = child_fields(kind)
    lines = ["def rebuild(n, change):"]
    for name, held in fields:
        lines.append(f"    old_{name} = {name} = n.{name}")
        match held:
            case Holds.ONE:
                lines.append(f"    {name} = change({name})")
            case Holds.MAYBE:
                lines.append(f"    if {name} is not None: {name} = change({name})")
            case Holds.MANY:
                lines.append(f"    {name} = same_or({name}, [change(c) for c in {name}])")
            case Holds.PAIRS:
                lines.append(f"    {name} = same_pairs({name}, [change(c) for _, c in {name}])")
    same = " and ".join(f"{name} is old_{name}" for name, _ in fields) or "True"
    lines.append(f"    if {same}: return n")
    # A dtype that follows from the children is left to the constructor.
    follows = {n for n, v in getattr(kind, "defaults", {}).items() if n == "dtype" and v is None}
    known = {name for name, _ in fields}
    values = [
        name if name in known else "None" if name in follows else f"n.{name}"
        for name in kind.fields
    ]
    lines.append(f"    return kind({', '.join(values)})")
    scope: dict[str, Any] = {"kind": kind, "same_or": same_or, "same_pairs": _same_pairs}
    exec("\n".join(lines), scope)  # noqa: S102  (made from field names only)
    made: Rebuilder = scope["rebuild"]
    return made


def same_or(old: tuple[Any, ...], new: list[Any]) -> tuple[Any, ...]:
    """`old` itself if `new` holds the same objects."""
    for a, b in zip(old, new, strict=True):
        if a is not b:
            return tuple(new)
    return old


def _same_pairs(old: tuple[tuple[Any, Any], ...], new: list[Any]) -> tuple[Any, ...]:
    """`old` with the second part of each pair replaced; itself if `new` holds the same objects."""
    for (_, a), b in zip(old, new, strict=True):
        if a is not b:
            return tuple([(size, b) for (size, _), b in zip(old, new, strict=True)])
    return old


children_of = _Getters()
"""The function that gives the children of a node, by its class."""

rebuild = _Rebuilders()
"""The function that changes the children of a node, by its class."""
