"""A program of the corpus: a name, how it is built, and which of its parameters are constants.

Names are made of what the tables say, so that they stay what they are when rows are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from tilewright.dtypes import DTYPES
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import size

__all__ = ["Options", "Program", "Sizes", "dims", "name_of", "named", "of_library"]

Sizes = tuple[int | str, ...]
"""A row of a table: numbers, or names of symbolic sizes."""

Options = Mapping[str, int]
"""Keywords of a function; True stands alone in a name."""


@dataclass(frozen=True)
class Program:
    """Building is left to `make`, so that one that another commit lacks does not stop the rest."""

    name: str
    make: Callable[[], tir.Func]
    constants: tuple[str, ...] = ()


def of_library(
    function: str,
    sizes: Sizes,
    dtype: str = "f32",
    constants: tuple[str, ...] = (),
    options: Options = MappingProxyType({}),
) -> Program:
    """A program of `tilewright.tensor.library`, named after what it is called with."""
    name = name_of(function, sizes, dtype, options, is_constant=bool(constants))
    return Program(name, partial(_call, function, sizes, dtype, options), constants)


def _call(function: str, sizes: Sizes, dtype: str, options: Options) -> tir.Func:
    typed = {} if dtype == "f32" else {"dtype": DTYPES[dtype]}  # some take no type
    made = getattr(library, function)(*dims(*sizes), **typed, **options)
    assert isinstance(made, tir.Func)
    return made


def name_of(
    kind: str,
    sizes: Sizes,
    dtype: str = "f32",
    options: Options = MappingProxyType({}),
    *,
    is_constant: bool = False,
) -> str:
    """`conv2d-1x64x56x56x64x3-stride2-constant`: what differs from the usual is said."""
    words = [kind, "x".join(map(str, sizes))]
    words += [dtype] if dtype != "f32" else []
    for option, value in options.items():
        words.append(option if value is True else f"{option}{value}")
    return "-".join([*words, *(["constant"] if is_constant else [])])


def dims(*sizes: int | str) -> tuple[int | tir.Var, ...]:
    """The sizes of a row; equal names are one size."""
    known: dict[str, tir.Var] = {}
    return tuple(s if isinstance(s, int) else known.setdefault(s, size(s)) for s in sizes)


def named(programs: Iterable[Program]) -> dict[str, Program]:
    """Programs by name; a name that two of them have would hide one."""
    found: dict[str, Program] = {}
    for program in programs:
        if program.name in found:
            raise ValueError(f"two programs are called {program.name}")
        found[program.name] = program
    return found
