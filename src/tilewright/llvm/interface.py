"""What a caller must know of a kernel besides its code.

Kept as a comment on top of the LLVM text: with it, edited text can become a kernel again without
the program that it came from. Kept beside object code (`model/kernel_store.py`), it is all that a
model knows of a kernel.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
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
    """Name, parameters, sizes and scratch of a kernel: its only descriptor, for whoever calls it.

    Scratch sizes that depend on symbolic sizes are None: the function `scratch_symbol` tells them.
    `layouts` holds the layout steps of each parameter that is packed, as text. A dimension that is
    neither a number nor a size is the text of its expression: models call such kernels, arrays do
    not tell their sizes (`require_callable`). `size_names` begins with the sizes that the code
    takes, in its order; `size_order` says which of the program's sizes these are. `in_place` are
    pairs (input, result) of parameters that may be the same memory.
    """

    name: str
    symbol: str
    scratch_symbol: str
    params: tuple[ParamSpec, ...]
    layouts: tuple[tuple[str, ...], ...]
    size_names: tuple[str, ...]
    size_order: tuple[int, ...]
    shared_bytes: int | None
    local_bytes: int | None
    parallel: bool
    in_place: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(
        cls,
        program: tir.Func,
        scheduled: tir.Func,
        lowered: Lowered,
        updated: Collection[str] = (),
        packed: Collection[str] | None = None,
        in_place: tuple[tuple[int, int], ...] = (),
    ) -> Interface:
        """The interface of a program; its lowered form knows flat buffers only.

        `updated` names the outputs whose content before the call matters, `packed` the parameters
        that callers have as plain arrays (None: all); others are passed as the kernel sees them.
        """
        written = {p: p.name in updated for p in outputs(scheduled)}
        params = [p if packed is None or p.name in packed else _bare(p) for p in scheduled.params]
        known = list(dict.fromkeys((*sizes(program), *lowered.sizes)))
        return cls(
            scheduled.name,
            symbol(scheduled),
            scratch_symbol(scheduled),
            tuple(
                _spec(param, is_output=own in written, is_updated=written.get(own, False))
                for param, own in zip(params, scheduled.params, strict=True)
            ),
            tuple(tuple(str(step) for step in param.layout) for param in params),
            _size_names(scheduled, lowered),
            tuple(map(known.index, lowered.sizes)),
            tir.int_value(lowered.shared_bytes),
            tir.int_value(lowered.local_bytes),
            lowered.parallel,
            in_place,
        )

    @property
    def has_known_scratch(self) -> bool:
        return self.shared_bytes is not None and self.local_bytes is not None

    @property
    def packings(self) -> dict[int, Packing]:
        """How arrays are packed, by the numbers of their parameters."""
        stored = {k: spec.packing for k, spec in enumerate(self.params)}
        return {k: found.packing for k, found in stored.items() if isinstance(found, Stored)}

    @property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        """For each parameter, by number, those of the program that lie in it: its own and guests'.

        A program has the parameters that callers pass; those stored in others are none of its code.
        """
        guests = [g for param in self.params for g in _guests(param)]
        places = {guest.place for guest in guests}
        own = (n for n in range(len(self.params) + len(guests)) if n not in places)
        return tuple(
            (number, *(guest.place for guest in _guests(param)))
            for number, param in zip(own, self.params, strict=True)
        )

    @property
    def outputs(self) -> tuple[int, ...]:
        """The numbers of the program's parameters that are results."""
        pairs = zip(self.sources, self.params, strict=True)
        return tuple(number for (number, *_), spec in pairs if spec.is_output)

    def require_callable(self) -> None:
        """V301 unless arrays tell all sizes: every dimension is a number or a size by itself."""
        for spec in self.params:
            shapes = [spec.shape]
            if spec.packing is not None:
                shapes += [spec.packing.logical_shape, *(g.shape for g in spec.packing.guests)]
            for dim in (d for shape in shapes for d in shape):
                if isinstance(dim, str) and dim not in self.size_names:
                    facts = {"param": spec.name, "dimension": dim}
                    hint = "let every dimension be a number or a `size` of its own"
                    raise ProgramError(V301, facts, hint=f"{hint}, also after layout steps")

    def to_dict(self) -> dict[str, Any]:
        """Data of JSON."""
        params = [
            [spec.name, spec.dtype.name, list(spec.shape), _role_of(spec), list(layout)]
            for spec, layout in zip(self.params, self.layouts, strict=True)
        ]
        return {
            "name": self.name,
            "symbol": self.symbol,
            "scratch": self.scratch_symbol,
            "params": params,
            "sizes": list(self.size_names),
            "order": list(self.size_order),
            "shared_bytes": self.shared_bytes,
            "local_bytes": self.local_bytes,
            "parallel": self.parallel,
            "in_place": [list(pair) for pair in self.in_place],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Interface:
        """The inverse of `to_dict`; a ValueError, LookupError or TypeError for anything else."""
        return cls(
            _text(data["name"]),
            _text(data["symbol"]),
            _text(data["scratch"]),
            tuple(_spec_of(entry, data["sizes"]) for entry in data["params"]),
            tuple(tuple(map(_text, entry[4])) for entry in data["params"]),
            tuple(map(_text, data["sizes"])),
            tuple(map(_number, data["order"])),
            None if data["shared_bytes"] is None else _number(data["shared_bytes"]),
            None if data["local_bytes"] is None else _number(data["local_bytes"]),
            bool(data["parallel"]),
            tuple((_number(x), _number(y)) for x, y in data["in_place"]),
        )

    def as_comment(self) -> str:
        """One line of LLVM text."""
        return MARK + json.dumps(self.to_dict()) + "\n"

    @classmethod
    def of_text(cls, text: str) -> Interface:
        """The interface that LLVM text declares in its first comments; P201 if it does not."""
        comments = takewhile(lambda line: line.startswith(";"), text.splitlines())
        line = next((c for c in comments if c.startswith(MARK)), None)
        if line is None:
            raise _refused(f"no comment at its top starts with `{MARK.strip()}`")
        try:
            return cls.from_dict(json.loads(line.removeprefix(MARK)))
        except (ValueError, LookupError, TypeError) as problem:
            raise _refused(repr(problem)) from None


def _role_of(spec: ParamSpec) -> str:
    return next(r for r, flags in ROLES.items() if flags == (spec.is_output, spec.is_updated))


def _size_names(scheduled: tir.Func, lowered: Lowered) -> tuple[str, ...]:
    """Sizes in the order of the kernel's arguments, then those that its code does not need."""
    every = (*lowered.sizes, *sizes(scheduled))
    return tuple(dict.fromkeys(size.name for size in every))


def _refused(problem: str) -> ParseError:
    hint = "keep the comments at the top of the dumped text as they are"
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


def _guests(param: ParamSpec) -> tuple[Guest, ...]:
    return () if param.packing is None else param.packing.guests


def _bare(param: tir.Buffer) -> tir.Buffer:
    """A parameter whose arrays callers have as they are stored."""
    return param.with_fields(layout=()) if param.layout else param


def _spec(param: tir.Buffer, *, is_output: bool, is_updated: bool) -> ParamSpec:
    shape = _shape(param.shape)
    packing = packing_of(param)
    stored = None
    if packing is not None:
        guests = tuple(
            Guest(guest.name, _shape(guest_packing(guest).logical_shape), guest.place)
            for guest in packing.guests
        )
        stored = Stored(packing, shape, _shape(packing.logical_shape), guests)
    return ParamSpec(param.name, param.dtype, shape, is_output, stored, is_updated)


def _shape(sizes: Iterable[int | tir.Expr]) -> Shape:
    return tuple(_dimension(size) for size in sizes)


def _dimension(size: int | tir.Expr) -> int | str:
    match size:
        case int():
            return size
        case tir.Const(value=number):
            return int(number)
        case tir.Var(name=name):
            return name
    return print_node(size)


def _spec_of(entry: list[Any], sizes: Iterable[str]) -> ParamSpec:
    """A parameter from its data; layout steps may name sizes that are no dimensions by now."""
    name, dtype, shape, role, layout = entry
    extents: Shape = tuple(shape)
    known = {size: tir.Var(size) for size in (*sizes, *extents) if isinstance(size, str)}
    dims = tuple(known[d] if isinstance(d, str) else tir.Const(d) for d in extents)
    steps = tuple(parse_step(text, known.__getitem__) for text in layout)
    is_output, is_updated = ROLES[role]
    buffer = tir.Buffer(_text(name), dims, DTYPES[dtype], layout=steps)
    return _spec(buffer, is_output=is_output, is_updated=is_updated)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no number")
    return value
