"""What a schedule primitive is, and the registry of all of them.

A primitive is a pure function from a program and handles to a program:

    @primitive
    def unroll(func: tir.Func, loop: tir.For) -> Edit: ...

The annotations of its parameters say how plain values (names, numbers, lists: what a trace stores)
become nodes of the program at hand. Its docstring has fixed parts: a summary, `Before`/`After`, and
`Requires` with one line per error code; the documentation and the `Schedule` methods come from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.handles import Names
from tilewright.tensor import ir as tir

__all__ = ["PRIMITIVES", "Edit", "Parameter", "Plain", "Primitive", "primitive"]

Plain = str | int | float | bool | None | tuple["Plain", ...]
"""What a trace stores for an argument."""

S002 = Code("S002", "`{primitive}` got a wrong argument for `{parameter}`")


@dataclass(frozen=True, slots=True)
class Edit:
    """A new program, and the names of what the primitive made, in the order it documents.

    `harmless`: nothing that validation looks at has changed, and the nests are those of before.
    """

    func: tir.Func
    made: tuple[str, ...] = ()
    harmless: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a primitive; `kind` is its annotation's text."""

    name: str
    kind: str
    variadic: bool
    default: object

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty and not self.variadic


@dataclass(frozen=True, slots=True)
class Primitive:
    """A registered primitive."""

    name: str
    function: Callable[..., Edit]
    parameters: tuple[Parameter, ...]
    doc: str = field(repr=False)

    def resolve(self, names: Names, args: dict[str, Plain]) -> tuple[list[Any], dict[str, Any]]:
        """Turn the plain arguments of a step into nodes of this program."""
        positional: list[Any] = [names.func]
        keywords: dict[str, Any] = {}
        for parameter in self.parameters:
            if parameter.name not in args:
                if parameter.required:
                    raise self._wrong_argument(parameter, "nothing")
                continue
            value = args[parameter.name]
            if parameter.variadic:
                if not isinstance(value, tuple):
                    raise self._wrong_argument(parameter, repr(value))
                positional += [self._convert(names, parameter, v) for v in value]
            else:
                keywords[parameter.name] = self._convert(names, parameter, value)
        return positional, keywords

    def _convert(self, names: Names, parameter: Parameter, value: Plain) -> Any:
        kind = KINDS.get(parameter.kind)
        if kind is None:
            raise TypeError(f"no converter for `{parameter.kind}` in primitive `{self.name}`")
        if not kind.check(value):
            raise self._wrong_argument(parameter, repr(value))
        return value if kind.convert is None else kind.convert(names, value)

    def _wrong_argument(self, parameter: Parameter, found: str) -> ScheduleError:
        """The error for an argument that is missing or of the wrong kind."""
        kind = KINDS.get(parameter.kind)
        facts = {
            "primitive": self.name,
            "parameter": parameter.name,
            "expected": kind.expected if kind is not None else parameter.kind,
            "found": found,
        }
        return ScheduleError(S002, facts, hint=f"`help(s.{self.name})` explains the arguments")


PRIMITIVES: dict[str, Primitive] = {}
"""All primitives by name, in order of definition."""


def primitive(function: Callable[..., Edit]) -> Callable[..., Edit]:
    """Register a primitive; the function itself stays callable with nodes."""
    parameters = []
    for p in list(inspect.signature(function).parameters.values())[1:]:
        variadic = p.kind is inspect.Parameter.VAR_POSITIONAL
        parameters.append(Parameter(p.name, str(p.annotation), variadic, p.default))
    name = function.__name__
    doc = inspect.cleandoc(function.__doc__ or "")
    PRIMITIVES[name] = Primitive(name, function, tuple(parameters), doc)
    return function


def _is_int(value: Plain) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_ints(value: Plain) -> bool:
    return isinstance(value, tuple) and all(map(_is_int, value))


def _is_names(value: Plain) -> bool:
    return isinstance(value, tuple) and all(isinstance(v, str) for v in value)


def _is_tiles(value: Plain) -> bool:
    if not isinstance(value, tuple) or _is_ints(value):
        return isinstance(value, tuple) or _is_int(value)
    return all(isinstance(v, tuple) and len(v) == 2 and _is_ints(v) for v in value)


def _is_name(value: Plain) -> bool:
    return isinstance(value, str)


def _is_anything(value: Plain) -> bool:
    del value
    return True


class ArgumentKind(NamedTuple):
    """What an annotation means: how to describe it, to check it, and to turn it into nodes."""

    expected: str
    check: Callable[[Plain], bool]
    convert: Callable[[Names, Any], Any] | None = None


KINDS: dict[str, ArgumentKind] = {
    "tir.For": ArgumentKind("the name of a loop", _is_name, Names.loop),
    "tir.Block": ArgumentKind("the name of a block", _is_name, Names.block),
    "tir.Buffer": ArgumentKind("the name of a buffer", _is_name, Names.buffer),
    "tir.For | tir.Block": ArgumentKind(
        "the name of a loop or a block", _is_name, Names.loop_or_block
    ),
    "tuple[tir.For, ...]": ArgumentKind(
        "a list of loop names", _is_names, lambda names, v: tuple(names.loop(n) for n in v)
    ),
    "tuple[int, ...]": ArgumentKind("a list of whole numbers", _is_ints),
    "tuple[str, ...]": ArgumentKind("a list of names", _is_names),
    "Tiles": ArgumentKind(
        "a tile size, a list of them, or a list of (tile size, number of tiles)", _is_tiles
    ),
    "int": ArgumentKind("a whole number", _is_int),
    "str": ArgumentKind("a text", _is_name),
    "bool": ArgumentKind("True or False", lambda v: isinstance(v, bool)),
    "Plain": ArgumentKind("a plain value", _is_anything),
}
"""Argument kinds by the text of the annotation."""
