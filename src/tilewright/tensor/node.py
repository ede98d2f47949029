"""The class decorator behind every IR node: immutable, slotted, compared by value, cheap to make.

Frozen dataclasses pay about a microsecond for each construction because every field goes through
`object.__setattr__`; schedules build thousands of nodes, so `node` generates an `__init__` that
writes through the slot descriptors instead. Hashes are computed once. `Var` and `Buffer` opt out of
value comparison: for them identity is meaning and the name is only a hint.
"""

from __future__ import annotations

import inspect
from typing import Any, Self, TypeVar, dataclass_transform

__all__ = ["Node", "node", "set_free"]

_C = TypeVar("_C", bound=type)


class Node:
    """Base of all IR nodes. `fields` names the constructor's arguments in order."""

    __slots__ = ("_free", "_hash")
    fields: tuple[str, ...] = ()
    _hash: int
    _free: frozenset[Node]  # what `visit.free_vars` has found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; build a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; build a new one")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other) or hash(self) != hash(other):
            return False
        return all(getattr(self, name) == getattr(other, name) for name in self.fields)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            values = tuple([getattr(self, name) for name in self.fields])
            value = hash((type(self).__name__, values))
            _set_hash(self, value)
            return value

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), tuple(getattr(self, name) for name in self.fields)

    def with_fields(self, **changes: Any) -> Self:
        """A copy with some fields replaced; the node itself if nothing changes."""
        for name, value in changes.items():
            if getattr(self, name) is not value:
                break
        else:
            return self
        parts = [changes[n] if n in changes else getattr(self, n) for n in self.fields]
        return type(self)(*parts)

    def __repr__(self) -> str:
        inside = ", ".join(repr(getattr(self, name)) for name in self.fields)
        return f"{type(self).__name__}({inside})"


_set_hash = Node.__dict__["_hash"].__set__
set_free = Node.__dict__["_free"].__set__
"""Remembers the free variables of a node; see `visit.free_vars`."""


@dataclass_transform(frozen_default=True)
def node(cls: _C) -> _C:
    """Make a slotted immutable class from annotations; `finish(self)` runs when fields are set.

    Defaults are class attributes, as in a dataclass; `ClassVar` annotations are left alone.
    """
    annotations = inspect.get_annotations(cls)
    own = [n for n, kind in annotations.items() if "ClassVar" not in str(kind)]
    inherited = [
        n for base in reversed(cls.__mro__[1:]) for n in base.__dict__.get("own_fields", ())
    ]
    body = {k: v for k, v in cls.__dict__.items() if k not in ("__dict__", "__weakref__")}
    defaults = {n: body.pop(n) for n in own if n in body}
    defaults = {**getattr(cls, "defaults", {}), **defaults}
    extra = ("__weakref__",) if not own and not inherited and cls.__mro__[1] is Node else ()
    body |= {"__slots__": tuple(own) + extra, "own_fields": tuple(own), "defaults": defaults}
    body["fields"] = tuple(inherited) + tuple(own)
    made: Any = type(cls)(cls.__name__, cls.__bases__, body)
    if made.fields:
        made.__init__ = _make_init(made, defaults)
    return made  # type: ignore[no-any-return]


def _make_init(cls: Any, defaults: dict[str, object]) -> Any:
    """Write `__init__(self, a, b=default)` that stores through slot descriptors."""
    scope: dict[str, Any] = {f"default_{n}": v for n, v in defaults.items()}
    arguments, lines = [], []
    for name in cls.fields:
        scope[f"set_{name}"] = getattr(cls, name).__set__
        arguments.append(f"{name}=default_{name}" if name in defaults else name)
        lines.append(f"    set_{name}(self, {name})")
    if hasattr(cls, "finish"):
        lines.append("    self.finish()")
    text = f"def __init__(self, {', '.join(arguments)}):\n" + "\n".join(lines)
    exec(text, scope)  # noqa: S102  (made from field names only, as `dataclasses` does)
    return scope["__init__"]
