"""The arrays of an inference, made ready for the program: the slow, explaining side of a call.

Every array is looked at, converted if that is harmless (copied into plain order, the other byte
order, lists of numbers, one element for a scalar), or refused. All that is wrong is said at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.abi import ParamSpec, Shape
from tilewright.errors import CallError, Code, Lines, MissingInputError
from tilewright.runtime.arguments import C009
from tilewright.runtime.checks import C006, Checker, Sizes, is_plain
from tilewright.runtime.meetings import GuardError, Meetings, Wanted
from tilewright.runtime.program import Port, Program
from tilewright.runtime.sizes import evaluate
from tilewright.shown import listed, quoted

__all__ = [
    "FeedReader",
    "Feeds",
    "by_name",
    "joined",
    "missing_input",
    "read_array",
    "unknown_port",
]

Array = NDArray[Any]
Feeds: TypeAlias = "Mapping[str, object] | Sequence[object] | Array"
"""What callers give: arrays by name, all of them in order, or the only one."""

C021 = Code("C021", "input `{param}` of `{model}` is missing")
C022 = Code("C022", "`{model}` has no {kind} called `{param}`")
C023 = Code("C023", "{count} things are wrong with the arrays for `{model}`")
C024 = Code("C024", "`{param}` of `{model}` has a size that does not follow from the others")
C027 = Code("C027", "`{model}` cannot take its inputs from {found}")


class FeedReader:
    """Checks and converts the feeds of one program.

    Sizes of one that meet others are told before anything else: outputs may be for that.
    """

    def __init__(self, program: Program, meetings: Meetings) -> None:
        self.program = program
        self.meetings = meetings
        self.labels = dict(_labels(program))

    def read(self, feeds: Feeds) -> dict[str, Array]:
        """Arrays that the native side takes as they are; raises `CallError`."""
        return self._read(feeds, Sizes())

    def read_both(
        self, feeds: Feeds, outputs: Mapping[str, object]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """The same, with arrays to write to."""
        sizes = Sizes()
        arrays = self._read(feeds, sizes)
        known = self._known(sizes)
        problems = [self._unknown(name, "output") for name in outputs if not self._is_output(name)]
        found: dict[str, Array] = {}
        for port in self.program.outputs:
            if port.name in outputs:
                try:
                    found[port.name] = self._output(port, outputs[port.name], known, found)
                except CallError as problem:
                    problems.append(problem)
        self._raise(problems)
        return arrays, found

    def _is_output(self, name: str) -> bool:
        return any(port.name == name for port in self.program.outputs)

    def _read(self, given: Feeds, sizes: Sizes) -> dict[str, Array]:
        arrays: dict[str, Array] = {}
        names = [port.name for port in self.program.inputs]
        feeds = by_name(self.program.name, names, given)
        problems = [self._unknown(name, "input") for name in feeds if name not in names]
        for port in self.program.inputs:
            try:
                if port.name not in feeds:
                    raise self._missing(port)
                arrays[port.name] = self._input(port, feeds[port.name], sizes)
            except CallError as problem:
                problems.append(problem)
        self._require_one_size_each(problems, feeds)
        self._raise(problems or list(self._wrong_sizes(sizes)))
        return arrays

    def _require_one_size_each(
        self, problems: Sequence[CallError], feeds: Mapping[str, object]
    ) -> None:
        """Raise `GuardError` if nothing is wrong but that arrays disagree about sizes of a name."""
        if not problems or not all(problem.code is C006 for problem in problems):
            return
        extents: dict[int, set[int]] = {}
        for port in self.program.inputs:
            shape = np.shape(feeds[port.name])  # type: ignore[call-overload]
            for dim, extent in zip(port.dims, shape, strict=False):  # a scalar may have one
                extents.setdefault(dim, set()).add(extent)
        numbers = (-1 - dim for dim, found in extents.items() if dim < 0 and len(found) > 1)
        names = frozenset(self.program.sizes[number].name for number in numbers)
        raise GuardError.of(problems[0], Wanted(apart=names))

    def _input(self, port: Port, value: object, sizes: Sizes) -> Array:
        spec = ParamSpec(port.name, port.dtype, self._shape(port))
        array = read_array(self.program.name, spec, value, sizes)
        return array if array.dtype is port.dtype.numpy else array.view(port.dtype.numpy)

    def _output(
        self, port: Port, value: object, known: Sizes, others: Mapping[str, Array]
    ) -> Array:
        spec = ParamSpec(port.name, port.dtype, self._shape(port), is_output=True)
        checker = Checker(self.program.name, spec)
        array = checker.as_array(value)
        checker.require_fit(array, spec.shape, known)
        checker.require_usable_output(array)
        for other, memory in others.items():
            if np.may_share_memory(array, memory):
                facts = {"kernel": self.program.name, "param": port.name, "other": other}
                raise CallError(C009, facts, hint="give each output memory of its own")
        return array if array.dtype is port.dtype.numpy else array.view(port.dtype.numpy)

    def _shape(self, port: Port) -> Shape:
        return tuple(d if d >= 0 else self.labels[-1 - d] for d in port.dims)

    def _known(self, told: Sizes) -> Sizes:
        """All sizes that are known before anything runs, whoever tells them."""
        known = Sizes(dict(told.values), dict(told.told_by))
        for number, value in self._computed(told):
            label = self.labels.get(number)
            if label is not None:
                known.values[label] = value
                known.told_by.setdefault(label, "the inputs")
        return known

    def _computed(self, told: Sizes) -> Iterator[tuple[int, int]]:
        values: list[int] = []
        for number, size in enumerate(self.program.sizes):
            value = told.values.get(self.labels.get(number, ""), 0)
            if size.segment == 0 and size.value is not None:
                try:
                    value = evaluate(size.value, values)
                except ZeroDivisionError:  # the native side refuses it by name
                    rest = [0] * (len(self.program.sizes) - number)
                    self.meetings.require_made_for(number, (*values, *rest))
                    return
                yield number, value
            values.append(value)

    def _wrong_sizes(self, told: Sizes) -> Iterator[CallError]:
        for number, value in self._computed(told):
            label = self.labels.get(number)
            if label in told.values and told.values[label] != value:
                facts = {
                    "model": self.program.name,
                    "param": told.told_by[label],
                    "size": label,
                    "expected": value,
                    "found": told.values[label],
                }
                hint = f"the other inputs make {quoted(label)} {value}: change them or this array"
                yield CallError(C024, facts, hint=hint)

    def _missing(self, port: Port) -> CallError:
        spec = ParamSpec(port.name, port.dtype, self._shape(port))
        return missing_input(self.program.name, port.name, spec)

    def _unknown(self, name: object, kind: str) -> CallError:
        ports = self.program.inputs if kind == "input" else self.program.outputs
        return unknown_port(self.program.name, kind, name, [port.name for port in ports])

    def _raise(self, problems: list[CallError]) -> None:
        if len(problems) == 1:
            raise problems[0]
        if problems:
            facts: dict[str, object] = {"model": self.program.name, "count": len(problems)}
            for number, problem in enumerate(problems, 1):
                facts[str(number)] = Lines(str(problem).replace("\n", "\n  "))
            is_missing = any(isinstance(problem, MissingInputError) for problem in problems)
            kind = MissingInputError if is_missing else CallError
            raise kind(C023, facts, hint="mend each as it says")


def by_name(model: str, names: Sequence[str], feeds: Feeds) -> Mapping[str, object]:
    """Arrays by the names of a model's inputs, in whatever form they are given (C027)."""
    if type(feeds) is dict or isinstance(feeds, Mapping):  # asking for any mapping takes longer
        return feeds
    is_list = isinstance(feeds, list | tuple)
    arrays = feeds if is_list else [feeds]
    if len(arrays) == len(names):
        return dict(zip(names, arrays, strict=True))
    found = f"a list of {len(arrays)}" if is_list else f"one value of type `{type(feeds).__name__}`"
    facts = {"model": model, "found": found, "inputs": listed(names)}
    hint = "pass a dictionary by name, or a list with an array for each input, in this order"
    raise CallError(C027, facts, hint=hint)


def joined(
    model: str, given: Mapping[str, object], named: Mapping[str, object]
) -> Mapping[str, object]:
    """Arrays that came in order, and others by name; none of them twice (C027)."""
    twice = [name for name in given if name in named]
    if twice:
        facts = {"model": model, "found": f"{listed(twice)} in order and by name"}
        raise CallError(C027, facts, hint="give each input once")
    return {**given, **named}


def missing_input(model: str, name: str, expected: object) -> MissingInputError:
    """The error for an input that nobody gives."""
    facts = {"model": model, "param": name, "expected": expected}
    return MissingInputError(C021, facts, hint="pass all inputs by name")


def unknown_port(model: str, kind: str, name: object, names: Sequence[str]) -> CallError:
    """The error for a name that no input or output of a model has, with those that they have."""
    alike = [known for known in names if known.lower() == str(name).lower()]
    near = alike or difflib.get_close_matches(str(name), names, n=1)
    hint = f"is {quoted(near[0])} meant?" if near else "leave it out"
    facts = {"model": model, "kind": kind, "param": name, f"{kind}s": listed(names)}
    return CallError(C022, facts, hint=hint)


def read_array(model: str, spec: ParamSpec, value: object, sizes: Sizes) -> Array:
    """An array in plain order that fits an input of a model; raises `CallError`."""
    checker = Checker(model, spec)
    array = _from_numbers(value, spec) if _is_plain_python(value) else None
    if array is None:
        array = checker.as_array(value)
    if array.dtype != array.dtype.newbyteorder("="):
        array = array.astype(array.dtype.newbyteorder("="))
    if not spec.shape and array.shape == (1,):
        array = array.reshape(())  # many callers have no other scalars
    checker.require_fit(array, spec.shape, sizes)
    return array if is_plain(array) else np.require(array, requirements=["C", "A"])


def _labels(program: Program) -> Iterator[tuple[int, str]]:
    """A word for each size that ports mention: as a port shows it, unless another size has it."""
    taken: dict[str, int] = {}
    seen: set[int] = set()
    for port in (*program.inputs, *program.outputs):
        for dim, shown in zip(port.dims, port.shown, strict=True):
            number = -1 - dim
            if dim >= 0 or number in seen:
                continue
            seen.add(number)
            label = shown if isinstance(shown, str) else program.sizes[number].name
            if taken.setdefault(label, number) != number:
                label = f"{label} (size {number})"
            yield number, label


def _is_plain_python(value: object) -> bool:
    return isinstance(value, bool | int | float | list | tuple)


def _from_numbers(value: object, spec: ParamSpec) -> Array | None:
    """Python numbers have no element type, so they take that of the input if it can hold them."""
    try:
        guess = np.asarray(value)
        if not np.can_cast(guess.dtype, spec.dtype.numpy, "same_kind"):
            return guess if guess.dtype.kind in "biuf" else None
        return np.asarray(value, spec.dtype.numpy)
    except (TypeError, ValueError, OverflowError):
        return None
