"""Weights that are made when a model is loaded, by kernels of its file.

Winograd weights are up to ten times as many as those they are made of. A small file stores the
latter, and a second program: it takes them as inputs, and its results are the weights of the model
as compiling would have stored them, to the last bit. Whatever is stored as it is used is copied.

    stored    as it is used | what others are made of
    expanded  as it is used | made | as it is used | made …

A file may come damaged or made up: places are checked before anything is written, and how much is
made is bounded by what there is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.abi import ALIGNMENT
from tilewright.dtypes import u8
from tilewright.errors import CallError
from tilewright.runtime.arrays import empty
from tilewright.runtime.codec import from_json, to_json
from tilewright.runtime.executable import Executable, Image
from tilewright.runtime.program import Port, Program

__all__ = ["MAX_GROWTH", "Expansion"]

MAX_GROWTH: Final = 64
"""How many times as many bytes may be made as are stored: F(6, 3) has seven times as many."""

Array = NDArray[Any]
Piece = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Expansion:
    """How `size_bytes` of weights come from those that are stored.

    `copied` are pieces (from, to, bytes). `sources` say where the inputs of the program begin in
    what is stored, `results` where its outputs begin in what is made.
    """

    program: Program
    size_bytes: int
    copied: tuple[Piece, ...]
    sources: tuple[int, ...]
    results: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Data of JSON."""
        return {
            "program": to_json(self.program),
            "bytes": self.size_bytes,
            "copied": [list(piece) for piece in self.copied],
            "sources": list(self.sources),
            "results": list(self.results),
        }

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The expansion; ValueError or ArtefactError if it is none."""
        match data:
            case {
                "program": program,
                "bytes": int() as size,
                "copied": [*copied],
                "sources": [*sources],
                "results": [*results],
            }:
                pieces = tuple(_piece(piece) for piece in copied)
                places = tuple(tuple(map(_number, side)) for side in (sources, results))
                return cls(from_json(program), _number(size), pieces, *places)
        raise ValueError("an expansion of weights that does not say what it should")

    def expand(self, stored: object, image: Image, threads: int | None) -> Array:
        """The weights of the model; ValueError if they cannot be had of what is stored."""
        source = np.frombuffer(stored, np.uint8)  # type: ignore[call-overload]
        self._require_fits(source.nbytes)
        made = empty((self.size_bytes,), u8)
        made[:] = 0  # also between two constants
        for begin, to, size in self.copied:
            made[to : to + size] = source[begin : begin + size]
        feeds = _arrays(self.program.inputs, source, self.sources)
        results = _arrays(self.program.outputs, made, self.results)
        executable = Executable(self.program, image, threads=threads, is_verified=True)
        try:
            executable.run_into(feeds, results)
        except CallError as problem:
            raise ValueError(f"weights cannot be made: {problem}") from problem
        return made

    def _require_fits(self, stored: int) -> None:
        """All places are inside, results do not overlap, and nothing is left open."""
        ports = self.program
        if len(ports.inputs) != len(self.sources) or len(ports.outputs) != len(self.results):
            raise ValueError("an expansion with places for other arrays than it has")
        if self.size_bytes > MAX_GROWTH * stored:
            raise ValueError(f"{self.size_bytes} bytes of weights, made of {stored}")
        read = [(at, _bytes(p)) for p, at in zip(ports.inputs, self.sources, strict=True)]
        read += [(begin, size) for begin, _, size in self.copied]
        for at, size in read:
            if at < 0 or at % ALIGNMENT or at + size > stored:
                raise ValueError("weights are made of others that are not stored")
        written = [(at, _bytes(p)) for p, at in zip(ports.outputs, self.results, strict=True)]
        written += [(to, size) for _, to, size in self.copied]
        end = 0
        for at, size in sorted(written):
            if at != end:
                raise ValueError("weights that are made do not follow each other")
            end = -(-(at + size) // ALIGNMENT) * ALIGNMENT
        if end != self.size_bytes:
            raise ValueError("weights that are made do not end where they should")


def _arrays(ports: Sequence[Port], memory: Array, places: Sequence[int]) -> dict[str, Array]:
    """The arrays of ports inside of weights."""
    return {
        port.name: np.ndarray(port.dims, port.dtype.numpy, memory, at)
        for port, at in zip(ports, places, strict=True)
    }


def _bytes(port: Port) -> int:
    if min(port.dims, default=0) < 0:
        raise ValueError("weights of a size that nobody knows")
    return math.prod(port.dims) * int(port.dtype.numpy.itemsize)


def _piece(data: object) -> Piece:
    match data:
        case [begin, to, size]:
            return _number(begin), _number(to), _number(size)
    raise ValueError("a piece of weights is three numbers")


def _number(data: object) -> int:
    if type(data) is not int or not 0 <= data < 1 << 62:
        raise ValueError("a place among weights is a number")
    return data
