"""What a caller must know of a kernel besides its code, kept as a comment on top of the LLVM text.

With it, edited LLVM text can become a kernel again without the program that it came from.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.abi import ParamSpec, Shape
from tilewright.dtypes import DTYPES
from tilewright.errors import Code, ParseError, ProgramError
from tilewright.llvm.emit import scratch_symbol, symbol
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import packing_of, parse_step
from tilewright.tensor.regions import outputs, sizes

if TYPE_CHECKING:
    from tilewright.lower import Lowered

__all__ = ["Interface"]

V301 = Code("V301", "a dimension of `{param}` is neither a number nor a size: `{dimension}`")
P201 = Code("P201", "the LLVM text does not say what kernel it is: {problem}")

MARK = "; interface: "


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
    def of(cls, scheduled: tir.Func, lowered: Lowered) -> Interface:
        """The interface of a program; its lowered form knows flat buffers only."""
        written = outputs(scheduled)
        return cls(
            scheduled.name,
            symbol(scheduled),
            scratch_symbol(scheduled),
            tuple(_spec(param, is_output=param in written) for param in scheduled.params),
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
            [spec.name, spec.dtype.name, list(spec.shape), spec.is_output, list(layout)]
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


def _size_names(scheduled: tir.Func, lowered: Lowered) -> tuple[str, ...]:
    """Sizes in the order of the kernel's arguments, then those that its code does not need."""
    every = (*lowered.sizes, *sizes(scheduled))
    return tuple(dict.fromkeys(size.name for size in every))


def _refused(problem: str) -> ParseError:
    hint = "keep the first line of the dumped text as it is"
    return ParseError(P201, {"problem": problem}, hint=hint)


def _spec(param: tir.Buffer, *, is_output: bool) -> ParamSpec:
    shape = tuple(_dimension(param, size) for size in param.shape)
    # What a kernel writes appears as it is stored; only what it reads is packed for it.
    packing = None if is_output else packing_of(param)
    return ParamSpec(param.name, param.dtype, shape, is_output, packing)


def _dimension(param: tir.Buffer, size: tir.Expr) -> int | str:
    match size:
        case tir.Const(value=number):
            return int(number)
        case tir.Var(name=name):
            return name
    facts = {"param": param.name, "dimension": size}
    hint = "let every dimension of a parameter be a number or a `size` of its own"
    raise ProgramError(V301, facts, hint=hint)


def _spec_of(entry: list[Any]) -> ParamSpec:
    name, dtype, shape, is_output, layout = entry
    extents: Shape = tuple(shape)
    if not layout or is_output:
        return ParamSpec(name, DTYPES[dtype], extents, is_output)
    dims = tuple(tir.Var(d) if isinstance(d, str) else tir.Const(d) for d in extents)
    steps = tuple(parse_step(text) for text in layout)
    buffer = tir.Buffer(name, dims, DTYPES[dtype], layout=steps)
    return ParamSpec(name, DTYPES[dtype], extents, is_output, packing_of(buffer))
