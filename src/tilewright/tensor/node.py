"""The class decorator behind every IR node: immutable, slotted, compared by value, cheap to make.

Frozen dataclasses pay about a microsecond for each construction because every field goes through
`object.__setattr__`; schedules build thousands of nodes, so `node` generates an `__init__` that
writes through the slot descriptors instead. Hashes are computed once. `Var` and `Buffer` opt out of
value comparison: for them identity is meaning and the name is only a hint.

Every node knows which classes of nodes are inside it (`inside`, a set of bits): passes look for the
few loads, calls or conditions of a program without walking through its index arithmetic.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

__all__ = ["Holds", "Node", "child_fields", "node", "set_free"]

_C = TypeVar("_C", bound=type)

_WORDS = ("Expr", "Stmt", "Range", "Region", "Iter,", "Cover", "Var")

_SOUGHT = (
    *("Add", "Call", "Cast", "Compare", "Const", "Let", "Load", "Max", "Min", "Mul", "Reduce"),
    *("Select", "Sub", "TileSize", "TileStart", "Var", "Iter"),
    *("Alloc", "Block", "For", "If", "Prefetch", "Seq", "Store"),
)
"""Classes that passes look for. All others share a bit: below 2**30, integers are twice as fast."""


class Holds(enum.Enum):
    """How a field holds children."""

    ONE = "Expr"
    MAYBE = "Expr | None"
    MANY = "tuple[Expr, ...]"
    PAIRS = "tuple[tuple[int, Expr], ...]"


class Node:
    """Base of all IR nodes. `fields` names the constructor's arguments in order.

    A class that is looked for has a `bit` (None, which asks for nothing, if it is not); `kinds` are
    those of a class and its bases, and `inside` those of a node and of everything in it.
    """

    __slots__ = ("_free", "_hash", "inside")
    fields: ClassVar[tuple[str, ...]] = ()
    bit: ClassVar[int]
    kinds: ClassVar[int] = 0
    inside: int
    _values: ClassVar[Callable[[Any], object]]
    _hashed: ClassVar[Callable[[Any], object]]  # all but the dtypes, which follow from the rest
    _hash: int
    _free: frozenset[Node]  # what `visit.free_vars` has found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; build a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; build a new one")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        kind = type(self)
        if kind is not type(other):
            return False
        mine, its = getattr(self, "_hash", None), getattr(other, "_hash", None)
        if mine is not None and its is not None and mine != its:
            return False
        return kind._values(self) == kind._values(other)

    def __hash__(self) -> int:
        value: int | None = getattr(self, "_hash", None)  # cheaper to miss than an exception
        if value is None:
            kind = type(self)
            value = hash((kind.__name__, kind._hashed(self)))
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

    Defaults are class attributes, as in a dataclass; `ClassVar` annotations are left alone. Where a
    default is None, `finish` is there to replace it and runs only if it has to.
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
    inherited_kinds: int = getattr(cls.__mro__[1], "kinds", 0) & ~_OTHERS
    made.bit = 2 << _SOUGHT.index(cls.__name__) if cls.__name__ in _SOUGHT else None
    made.kinds = inherited_kinds | (made.bit or 0) or _OTHERS
    if not child_fields(made):
        made.inside = made.kinds
    dtypes = {n for n in made.fields if "DType" in _annotations(made).get(n, "")}
    made._values = _getter(made.fields)
    made._hashed = _getter([n for n in made.fields if n not in dtypes])
    made.__init__ = _make_init(made, defaults)
    return made  # type: ignore[no-any-return]


_OTHERS = 1


def _getter(names: Sequence[str]) -> Callable[[Any], object]:
    return attrgetter(*names) if names else type


def _annotations(kind: type) -> dict[str, str]:
    """The text of the annotation of each field."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        found |= {name: str(text) for name, text in inspect.get_annotations(base).items()}
    return found


def child_fields(kind: type[Node]) -> tuple[tuple[str, Holds], ...]:
    """The fields that hold children, read from the annotations; things with identity have none."""
    if kind.__eq__ is object.__eq__:
        return ()
    texts = _annotations(kind)
    pairs = [(name, texts.get(name, "")) for name in kind.fields]
    return tuple((n, _held(text)) for n, text in pairs if any(word in text for word in _WORDS))


def _held(text: str) -> Holds:
    if text.startswith("tuple"):
        return Holds.PAIRS if text.startswith("tuple[tuple") else Holds.MANY
    return Holds.MAYBE if "None" in text else Holds.ONE


def _make_init(cls: Any, defaults: dict[str, object]) -> Any:
    """Write `__init__(self, a, b=default)` that stores through slot descriptors."""
    scope: dict[str, Any] = {f"default_{n}": v for n, v in defaults.items()}
    scope |= {"set_inside": Node.__dict__["inside"].__set__}
    arguments, lines = [], []
    for name in cls.fields:
        scope[f"set_{name}"] = getattr(cls, name).__set__
        arguments.append(f"{name}=default_{name}" if name in defaults else name)
        lines.append(f"    set_{name}(self, {name})")
    if child_fields(cls):
        lines += _inside_lines(cls)
    if hasattr(cls, "finish"):
        missing = " or ".join(f"{n} is None" for n, v in defaults.items() if v is None)
        lines.append(f"    if {missing}: self.finish()" if missing else "    self.finish()")
    lines = lines or ["    pass"]
    text = f"def __init__({', '.join(['self', *arguments])}):\n" + "\n".join(lines)
    exec(text, scope)  # noqa: S102  (made from field names only, as `dataclasses` does)
    return scope["__init__"]


def _inside_lines(cls: type[Node]) -> list[str]:
    """Code that unites the kinds of a node with what is inside its children."""
    plain = [str(cls.kinds)]
    loops = []
    for name, held in child_fields(cls):
        match held:
            case Holds.ONE:
                plain.append(f"{name}.inside")
            case Holds.MAYBE:
                loops.append(f"    if {name} is not None: inside |= {name}.inside")
            case Holds.MANY:
                loops.append(f"    for child in {name}: inside |= child.inside")
            case Holds.PAIRS:
                loops.append(f"    for _, child in {name}: inside |= child.inside")
    union = " | ".join(plain)
    if not loops:
        return [f"    set_inside(self, {union})"]
    return [f"    inside = {union}", *loops, "    set_inside(self, inside)"]
