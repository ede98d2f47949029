"""What a caller must know of a kernel besides its code, kept as a comment on top of the LLVM text.

With it, edited LLVM text can become a kernel again without the program that it came from.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from tilewright.abi import Guest, ParamSpec, Shape
from tilewright.dtypes import DTYPES
from tilewright.errors import Code, ParseError, ProgramError
from tilewright.llvm.emit import scratch_symbol, symbol
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import parse_step
from tilewright.tensor.packing import Packing, guest_packing, packing_of
from tilewright.tensor.printer import print_node
from tilewright.tensor.regions import outputs, sizes

if TYPE_CHECKING:
    from tilewright.lower import Lowered

__all__ = ["Interface"]

V301 = Code("V301", "a dimension of `{param}` is neither a number nor a size: `{dimension}`")
P201 = Code("P201", "the LLVM text does not say what kernel it is: {problem}")

MARK = "; interface: "
ROLES: Final = {"in": (False, False), "out": (True, False), "inout": (True, True)}
"""How parameters are used: (is_output, is_updated)."""


@dataclass(frozen=True, slots=True)
class Interface:
    """Name, parameters, sizes and scratch of a kernel.

    Scratch sizes that depend on symbolic sizes are None: the function `scratch_symbol` tells them.
    `layouts` holds the layout steps of each parameter as text.
    """

    name: str
    symbol: str
    scratch_symbol: str
    params: tuple[ParamSpec, ...]
    layouts: tuple[tuple[str, ...], ...]
    size_names: tuple[str, ...]
    shared_bytes: int | None
    local_bytes: int | None
    parallel: bool

    @classmethod
    def of(cls, scheduled: tir.Func, lowered: Lowered, updated: Collection[str] = ()) -> Interface:
        """The interface of a program; its lowered form knows flat buffers only.

        `updated` names the outputs whose content before the call matters.
        """
        written = {p: p.name in updated for p in outputs(scheduled)}
        return cls(
            scheduled.name,
            symbol(scheduled),
            scratch_symbol(scheduled),
            tuple(
                _spec(param, is_output=param in written, is_updated=written.get(param, False))
                for param in scheduled.params
            ),
            tuple(tuple(str(step) for step in param.layout) for param in scheduled.params),
            _size_names(scheduled, lowered),
            tir.int_value(lowered.shared_bytes),
            tir.int_value(lowered.local_bytes),
            lowered.parallel,
        )

    @property
    def has_known_scratch(self) -> bool:
        return self.shared_bytes is not None and self.local_bytes is not None

    def as_comment(self) -> str:
        """One line of LLVM text."""
        params = [
            [spec.name, spec.dtype.name, list(spec.shape), _role_of(spec), list(layout)]
            for spec, layout in zip(self.params, self.layouts, strict=True)
        ]
        data = {
            "name": self.name,
            "symbol": self.symbol,
            "scratch": self.scratch_symbol,
            "params": params,
            "sizes": list(self.size_names),
            "shared_bytes": self.shared_bytes,
            "local_bytes": self.local_bytes,
            "parallel": self.parallel,
        }
        return MARK + json.dumps(data) + "\n"

    @classmethod
    def of_text(cls, text: str) -> Interface:
        """The interface that LLVM text declares in its first line; P201 if it does not."""
        line = text.partition("\n")[0]
        if not line.startswith(MARK):
            raise _refused(f"the first line does not start with `{MARK.strip()}`")
        try:
            data = json.loads(line.removeprefix(MARK))
            params = [_spec_of(entry) for entry in data["params"]]
            return cls(
                data["name"],
                data["symbol"],
                data["scratch"],
                tuple(params),
                tuple(tuple(entry[4]) for entry in data["params"]),
                tuple(data["sizes"]),
                data["shared_bytes"],
                data["local_bytes"],
                data["parallel"],
            )
        except (ValueError, KeyError, TypeError, IndexError) as problem:
            raise _refused(repr(problem)) from None


def _role_of(spec: ParamSpec) -> str:
    return next(r for r, flags in ROLES.items() if flags == (spec.is_output, spec.is_updated))


def _size_names(scheduled: tir.Func, lowered: Lowered) -> tuple[str, ...]:
    """Sizes in the order of the kernel's arguments, then those that its code does not need."""
    every = (*lowered.sizes, *sizes(scheduled))
    return tuple(dict.fromkeys(size.name for size in every))


def _refused(problem: str) -> ParseError:
    hint = "keep the first line of the dumped text as it is"
    return ParseError(P201, {"problem": problem}, hint=hint)


@dataclass(frozen=True, slots=True)
class Stored:
    """The layout of a parameter in the words of callers, who know sizes by name."""

    packing: Packing
    shape: Shape
    logical_shape: Shape
    guests: tuple[Guest, ...]

    def pack(self, array: NDArray[Any], /, *guests: NDArray[Any]) -> NDArray[np.generic]:
        """Plain arrays in the order in which the kernel reads them."""
        return self.packing.pack(array, *guests)

    def unpack(self, array: NDArray[Any], /) -> NDArray[np.generic]:
        """The plain array of one that the kernel has written."""
        sizes = dict(zip(self.shape, array.shape, strict=True))
        return self.packing.unpack(
            array, tuple(d if isinstance(d, int) else sizes[d] for d in self.logical_shape)
        )

    def __str__(self) -> str:
        return ", ".join(map(str, self.packing.steps))


def _spec(param: tir.Buffer, *, is_output: bool, is_updated: bool) -> ParamSpec:
    shape = _shape(param, param.shape)
    packing = packing_of(param)
    stored = None
    if packing is not None:
        guests = tuple(
            Guest(guest.name, _shape(param, guest_packing(guest).logical_shape), guest.place)
            for guest in packing.guests
        )
        stored = Stored(packing, shape, _shape(param, packing.logical_shape), guests)
    return ParamSpec(param.name, param.dtype, shape, is_output, stored, is_updated)


def _shape(param: tir.Buffer, sizes: Iterable[int | tir.Expr]) -> Shape:
    return tuple(_dimension(param, size) for size in sizes)


def _dimension(param: tir.Buffer, size: int | tir.Expr) -> int | str:
    match size:
        case int():
            return size
        case tir.Const(value=number):
            return int(number)
        case tir.Var(name=name):
            return name
    facts = {"param": param.name, "dimension": print_node(size)}
    hint = "let every dimension be a number or a `size` of its own, also after layout steps"
    raise ProgramError(V301, facts, hint=hint)


def _spec_of(entry: list[Any]) -> ParamSpec:
    name, dtype, shape, role, layout = entry
    extents: Shape = tuple(shape)
    known = {size: tir.Var(size) for size in extents if isinstance(size, str)}
    dims = tuple(known[d] if isinstance(d, str) else tir.Const(d) for d in extents)
    steps = tuple(parse_step(text, known.__getitem__) for text in layout)
    is_output, is_updated = ROLES[role]
    buffer = tir.Buffer(name, dims, DTYPES[dtype], layout=steps)
    return _spec(buffer, is_output=is_output, is_updated=is_updated)
