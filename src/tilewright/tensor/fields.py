"""Access to the children of nodes, generated once for each node class.

Which fields hold children is read from the annotations, so a new node class needs no code here.
Programs are walked and rebuilt thousands of times a second by a search; straight-line code for each
class is several times faster than a loop over field names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node

__all__ = ["LEAVES", "children_of", "rebuild", "same_or"]

LEAVES = (tir.Const, tir.Var, tir.Buffer)
"""Nodes with identity or without expressions inside."""

_WORDS = ("Expr", "Stmt", "Range", "Region", "Iter,", "Cover", "Var")

Getter = Callable[[Any], tuple[Node, ...]]
Rebuilder = Callable[[Any, Callable[[Any], Any]], Any]


def _child_fields(kind: type[Node]) -> tuple[tuple[str, str], ...]:
    """(field, text of its annotation) for each field that holds children."""
    if issubclass(kind, LEAVES):
        return ()
    annotations: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        annotations |= inspect.get_annotations(base)
    pairs = [(name, str(annotations.get(name, ""))) for name in kind.fields]
    return tuple((n, text) for n, text in pairs if any(word in text for word in _WORDS))


class _Getters(dict[type, Getter]):
    def __missing__(self, kind: type[Node]) -> Getter:
        parts = []
        for name, text in _child_fields(kind):
            if text.startswith("tuple"):
                parts.append(f"*n.{name}")
            elif "None" in text:
                parts.append(f"*(() if n.{name} is None else (n.{name},))")
            else:
                parts.append(f"n.{name}")
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
    fields = _child_fields(kind)
    lines = ["def rebuild(n, change):"]
    for name, text in fields:
        lines.append(f"    old_{name} = {name} = n.{name}")
        if text.startswith("tuple"):
            lines.append(f"    {name} = same_or({name}, [change(c) for c in {name}])")
        elif "None" in text:
            lines.append(f"    if {name} is not None: {name} = change({name})")
        else:
            lines.append(f"    {name} = change({name})")
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
    scope: dict[str, Any] = {"kind": kind, "same_or": same_or}
    exec("\n".join(lines), scope)  # noqa: S102  (made from field names only)
    made: Rebuilder = scope["rebuild"]
    return made


def same_or(old: tuple[Any, ...], new: list[Any]) -> tuple[Any, ...]:
    """`old` itself if `new` holds the same objects."""
    for a, b in zip(old, new, strict=True):
        if a is not b:
            return tuple(new)
    return old


def _rebuild_cover(cover: tir.Cover, change: Callable[[Any], Any]) -> tir.Cover:
    old = tuple([count for _, count in cover.segments])
    new = same_or(old, [change(count) for count in old])
    if new is old:
        return cover
    sizes = [size for size, _ in cover.segments]
    return tir.Cover(tuple(zip(sizes, new, strict=True)))


children_of = _Getters({tir.Cover: lambda cover: tuple([n for _, n in cover.segments])})
"""The function that gives the children of a node, by its class."""

rebuild = _Rebuilders({tir.Cover: _rebuild_cover})
"""The function that changes the children of a node, by its class."""
