"""Programs as data of JSON, and back; what comes back is checked as if a stranger had written it.

The form follows from the classes of `program.py`: a record is the list of its fields, a step has
the name of its kind before them, an expression is a flat list of operations and operands. A change
of a class is a change of the form and raises `VERSION`.
"""

from __future__ import annotations

import enum
import functools
import types
import typing
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Self, Union

from tilewright.dtypes import DTYPES, DType
from tilewright.errors import ArtefactError, Code
from tilewright.runtime.program import (
    Assign,
    Call,
    Enter,
    Host,
    Jump,
    Program,
    SizeExpr,
    SizeOp,
    Step,
)
from tilewright.runtime.verify import verify

__all__ = ["VERSION", "from_json", "to_json"]

A202 = Code("A202", "the program of a model cannot be read: {problem}")
A203 = Code("A203", "the program of a model has version {found}, and this runtime reads {expected}")

VERSION = 2
STEPS: dict[str, type] = {
    "call": Call,
    "jump": Jump,
    "assign": Assign,
    "enter": Enter,
    "host": Host,
}
HINT = "compile the model again: the file was damaged, or written by something else"

Json = Any
Reader = Callable[[Json], Any]


class _BadValueError(Exception):
    """Something else than `expected` was found; `path` is filled in on the way out."""

    def __init__(self, expected: str, found: object) -> None:
        super().__init__()
        self.expected, self.found, self.path = expected, found, ""

    def inside(self, where: str) -> Self:
        self.path = where + self.path
        return self


def to_json(program: Program) -> Json:
    """Numbers, strings, lists, None and one dictionary."""
    names = _names_of(Program)
    return {"version": VERSION, **{name: _write(getattr(program, name)) for name in names}}


def from_json(data: Json) -> Program:
    """The program, verified; raises `ArtefactError`."""
    try:
        program = _read_program(data)
    except _BadValueError as bad:
        shown = repr(bad.found)
        shown = shown if len(shown) < 60 else f"{shown[:60]}…"
        problem = f"{bad.path.lstrip('.') or 'it'} must be {bad.expected}"
        raise ArtefactError(A202, {"problem": problem, "found": shown}, hint=HINT) from None
    verify(program)
    return program


def _read_program(data: Json) -> Program:
    if not isinstance(data, dict):
        raise _BadValueError("a dictionary", data)
    found = data.get("version")
    if type(found) is not int or found != VERSION:
        facts = {"found": found, "expected": VERSION}
        raise ArtefactError(A203, facts, hint="compile the model again with this version")
    names = _names_of(Program)
    if data.keys() != {*names, "version"}:
        raise _BadValueError(f"a dictionary of {', '.join(names)}", ", ".join(map(str, data)))
    program: Program = _read_record(Program, [data[name] for name in names])
    return program


def _write(value: Any) -> Json:
    kind: Any = type(value)
    if kind is int or kind is str or kind is bool or value is None:
        return value
    if kind is tuple:
        return _write_expression(value) if _is_expression(value) else list(map(_write, value))
    if kind is DType:
        return value.name
    if isinstance(value, enum.Enum):
        return value.value
    head = [name for name, step in STEPS.items() if kind is step]
    return head + [_write(getattr(value, name)) for name in _names_of(kind)]


def _is_expression(value: Any) -> bool:
    return bool(value) and type(value[0]) is tuple and type(value[0][0]) is SizeOp


def _write_expression(value: Any) -> Json:
    return [int(number) for operation in value for number in operation]


@functools.cache
def _names_of(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@functools.cache
def _reader(kind: Any) -> Reader:
    """How to read a value of this type."""
    if kind == SizeExpr:
        return _read_expression
    if kind == SizeExpr | None:
        return lambda data: None if data is None else _read_expression(data)
    if kind == Step:
        return _read_step
    if kind is DType:
        return _read_dtype
    if kind in (int, str, bool):
        return functools.partial(_read_plain, (kind,))
    if typing.get_origin(kind) in (Union, types.UnionType):
        return functools.partial(_read_plain, typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        return _tuple_reader(typing.get_args(kind))
    if issubclass(kind, enum.Enum):
        return functools.partial(_read_member, kind)
    return functools.partial(_read_record, kind)


def _read_plain(kinds: tuple[type, ...], data: Json) -> Any:
    if type(data) not in kinds:  # a bool is an int for `isinstance`
        raise _BadValueError(" or ".join(kind.__name__ for kind in kinds), data)
    if type(data) is int and not _fits(data):
        raise _BadValueError("a number of 64 bits", data)
    return data


def _fits(number: int) -> bool:
    return -(1 << 63) <= number < 1 << 63


def _read_list(data: Json, count: int | None = None) -> list[Json]:
    if type(data) is not list:
        raise _BadValueError("a list", data)
    if count is not None and len(data) != count:
        raise _BadValueError(f"a list of {count}", f"a list of {len(data)}")
    return data


def _tuple_reader(items: tuple[Any, ...]) -> Reader:
    if items[-1] is Ellipsis:
        return functools.partial(_read_items, _reader(items[0]))
    readers = [_reader(item) for item in items]
    return lambda data: tuple(
        [read(item) for read, item in zip(readers, _read_list(data, len(readers)), strict=True)]
    )


def _read_items(read: Reader, data: Json) -> tuple[Any, ...]:
    items, found = _read_list(data), []
    try:
        for item in items:
            found.append(read(item))  # noqa: PERF401  (how far it came is wanted)
    except _BadValueError as bad:
        raise bad.inside(f"[{len(found)}]") from None
    return tuple(found)


def _read_record(kind: Any, data: Json) -> Any:
    names, readers = _names_of(kind), _readers_of(kind)
    items, found = _read_list(data, len(names)), []
    try:
        for read, item in zip(readers, items, strict=True):
            found.append(read(item))
    except _BadValueError as bad:
        raise bad.inside(f".{names[len(found)]}") from None
    return kind(*found)


@functools.cache
def _readers_of(kind: Any) -> tuple[Reader, ...]:
    types_of = typing.get_type_hints(kind)
    return tuple(_reader(types_of[name]) for name in _names_of(kind))


def _read_step(data: Json) -> Any:
    values = _read_list(data)
    kind = values[0] if values else None
    if type(kind) is not str or kind not in STEPS:
        raise _BadValueError("a list that begins with " + " or ".join(STEPS), kind)
    return _read_record(STEPS[kind], values[1:])


def _read_member(kind: type[enum.Enum], data: Json) -> enum.Enum:
    found = _members(kind).get(data) if type(data) is str else None
    if found is None:
        raise _BadValueError("one of " + ", ".join(_members(kind)), data)
    return found


@functools.cache
def _members(kind: type[enum.Enum]) -> dict[str, enum.Enum]:
    return {member.value: member for member in kind}


def _read_dtype(data: Json) -> DType:
    if type(data) is not str or data not in DTYPES:
        raise _BadValueError("an element type", data)
    return DTYPES[data]


def _read_expression(data: Json) -> SizeExpr:
    numbers = _read_list(data)
    if len(numbers) % 2 or any(type(number) is not int for number in numbers):
        raise _BadValueError("a list of operations and operands", data)
    if not all(map(_fits, numbers)):
        raise _BadValueError("made of numbers of 64 bits", data)
    if not _OPS.keys() >= set(numbers[::2]):
        raise _BadValueError("made of known operations", data)
    return tuple(zip([_OPS[op] for op in numbers[::2]], numbers[1::2], strict=True))


_OPS: dict[int, SizeOp] = {int(op): op for op in SizeOp}
