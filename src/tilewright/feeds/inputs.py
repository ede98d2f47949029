"""The arrays of a run: files, values, or made up with a seed.

What is made up has the right type and shape, and values that models of the kind usually see: floats
around zero, small whole numbers for indices, ones for masks, counting numbers for positions.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.dtypes import DType, u8
from tilewright.errors import Code, UserError
from tilewright.feeds.size_rules import SizeRules
from tilewright.model.info import TensorInfo
from tilewright.shown import listed, quoted, shown

__all__ = ["Wanted", "arrays_for", "values_of"]

K041 = Code("K041", "`{text}` is not of the form {form}")
K042 = Code("K042", "the model has no {kind} `{name}`")
K043 = Code("K043", "the array `{path}` cannot be read: {problem}")
K044 = Code("K044", "no values can be made up for `{name}`, which is {type}")

Array = NDArray[Any]

_TOO_MUCH: Final = (MemoryError, OverflowError, ValueError)
_UNREADABLE: Final = (*_TOO_MUCH, OSError, EOFError, RecursionError, SyntaxError, TokenError)
"""What NumPy raises for files that it did not write, and JSON for texts."""

INDEX_LIMIT: Final = 8
"""Made up indices are below: every table that a model looks into has as many rows."""
SAMPLE_RATE: Final = 16000
"""Hertz, of sound for models of speech."""


@dataclass(frozen=True)
class Wanted:
    """What a command line says of the inputs: arrays by name, and sizes of those to be made up."""

    infos: Sequence[TensorInfo]
    arrays: Mapping[str, Array]
    sizes: Mapping[str, int]

    @classmethod
    def of(
        cls,
        infos: Sequence[TensorInfo],
        given: Sequence[str],
        sizes: Sequence[str],
        settled: Sequence[str] = (),
        overridable: Sequence[TensorInfo] = (),
    ) -> Self:
        """Read the files, and refuse names that the model does not have.

        No values are made up for inputs that a model is compiled for, nor for `overridable` ones.
        """
        files = dict(_pair(text, "NAME=FILE", "--input x=x.npy") for text in given)
        infos = [*infos, *(info for info in overridable if info.name in files)]
        _require_known(files, [info.name for info in infos], "input")
        arrays = {info.name: _read(files[info.name], info) for info in infos if info.name in files}
        named = {d for info in infos for d in info.shape if isinstance(d, str)}
        wanted = sizes_of(sizes)
        _require_known(wanted, sorted(named), "size")
        for info in infos:
            if info.name in settled and info.name not in arrays:
                what = f"{info.type}, and decides what is compiled"
                hint = f"give a file, or values: `--input {shown(info.name)}=[1,2]`"
                raise UserError(K044, {"name": info.name, "type": what}, hint=hint)
        return cls(infos, arrays, wanted)

    def with_shapes(self, shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, Array]:
        """An array for each input: the given one, or one of this shape."""
        rng = np.random.default_rng(seed)
        return {
            info.name: self.arrays[info.name]
            if info.name in self.arrays
            else _made_up(info, shapes[info.name], rng)
            for info in self.infos
        }


def arrays_for(
    infos: Sequence[TensorInfo],
    given: Sequence[str],
    sizes: Sequence[str],
    seed: int = 0,
    settled: Sequence[str] = (),
    overridable: Sequence[TensorInfo] = (),
) -> dict[str, Array]:
    """An array for each input of which nothing but its type is known; options as on the shell."""
    wanted = Wanted.of(infos, given, sizes, settled, overridable)
    rules = SizeRules.of(wanted.infos)
    values = rules.chosen(rules.given(wanted.arrays) | rules.named(wanted.sizes))
    return wanted.with_shapes(rules.shapes(values), seed)


def values_of(given: Sequence[str]) -> dict[str, object]:
    """Values by the names of inputs, each from a file or as numbers."""
    pairs = (_pair(text, "NAME=VALUE", "--settle axes=[0,1]") for text in given)
    return {name: _read(text, None) for name, text in pairs}


def _pair(text: str, form: str, instance: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise UserError(K041, {"text": text, "form": form}, hint=f"for example `{instance}`")
    return name, value


def sizes_of(given: Sequence[str]) -> dict[str, int]:
    """Sizes by the names of dimensions."""
    pairs = [_pair(text, "NAME=N", "--size batch=2") for text in given]
    return {name: _number(name, text) for name, text in pairs}


def _require_known(names: Mapping[str, object], known: Sequence[str], kind: str) -> None:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            rest = f"known: {listed(known)}" if known else "there are none"
            hint = f"is {quoted(near[0])} meant?" if near else rest
            raise UserError(K042, {"kind": kind, "name": name}, hint=hint)


def _number(name: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,30}", text, flags=re.ASCII):
        raise UserError(K041, {"text": f"{name}={text}", "form": "NAME=N"}, hint="give a number")
    return int(text)


def _read(text: str, info: TensorInfo | None) -> Any:
    """A file, or numbers as they stand; an array if the input is known."""
    try:
        if (path := Path(text)).suffix == ".npy" or path.is_file():
            return _loaded(path)
        numbers = json.loads(text)
        if info is None:
            return numbers
        return np.asarray(numbers, info.dtype.numpy if info.dtype is not None else None)
    except _UNREADABLE as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        hint = "give a file that `numpy.save` wrote, or numbers such as [1, 2]"
        raise UserError(K043, {"path": text, "problem": reason}, hint=hint) from None


def _loaded(path: Path) -> Array:
    """The array in a plain file: of a pipe one could wait for ever."""
    if path.exists() and not path.is_file():
        raise OSError("it is not a plain file")
    array: Array = np.load(path, allow_pickle=False)
    return array


def _made_up(info: TensorInfo, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if info.dtype is None:
        hint = "run the model from Python"
        raise UserError(K044, {"name": info.name, "type": info.type}, hint=hint)
    try:
        return _values(info.dtype, info.name.lower(), shape, rng)
    except _TOO_MUCH:
        what = f"{info.type} and would be {shown(list(shape))}"
        hint = "give other sizes, for example `--size batch=2`"
        raise UserError(K044, {"name": info.name, "type": what}, hint=hint) from None


def _values(kind: DType, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """What models of the kind usually see under such a name."""
    if kind.is_float:
        return rng.standard_normal(shape, np.float32).astype(kind.numpy)
    if kind.is_bool or "mask" in name:
        return np.ones(shape, kind.numpy)
    if "position" in name and shape:
        return np.broadcast_to(np.arange(shape[-1], dtype=kind.numpy), shape).copy()
    if "token_type" in name or "segment" in name:
        return np.zeros(shape, kind.numpy)
    if re.fullmatch("sr|.*(sample|sampling)_?rate", name):
        return np.full(shape, SAMPLE_RATE).astype(kind.numpy)
    limit = 256 if kind == u8 else INDEX_LIMIT
    return rng.integers(0, limit, shape).astype(kind.numpy)
