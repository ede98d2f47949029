"""Convolutions by minimal filters: tiles of several sizes, known and symbolic images."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from replay.programs.channels_last import biased
from replay.programs.program import Program, Sizes, dims, name_of
from tilewright.tensor import ir as tir
from tilewright.tensor.build import func, placeholder

__all__ = ["programs"]

ROWS: Final[tuple[tuple[Sizes, int, tuple[int, ...]], ...]] = (
    ((1, 56, 56, 64), 64, (4, 4)),
    ((1, 28, 28, 32), 48, (4, 4)),
    ((1, 28, 28, 32), 48, (2, 2)),
    ((1, 14, 14, 128), 128, (4, 4)),
    ((1, 13, 15, 24), 40, (4, 4)),
    ((4, 14, 14, 64), 64, (2, 2)),
    (("n", 28, 28, 32), 32, (4, 4)),
    ((1, "h", "w", 32), 32, (4, 4)),
)
"""Data, filters, results of a tile along each dimension."""


def programs() -> Iterator[Program]:
    """Windows of three by three with a border of one."""
    for data, filters, results in ROWS:
        make = partial(_winograd, data, filters, results)
        name = name_of("winograd", (*data, filters), options={"tile": results[0]})
        yield Program(f"{name}-constant", make, ("U", "B"))


def _winograd(data: Sizes, filters: int, results: tuple[int, ...]) -> tir.Func:
    from tilewright.tensor.library.tiles import Tiles
    from tilewright.tensor.library.winograd import convolve_winograd

    tiles = Tiles((3, 3), results)
    edges = [tile + 2 for tile in results]
    x = placeholder("X", dims(*data))
    u = placeholder("U", (*edges, x.shape[-1], filters))
    b, z = biased(convolve_winograd(x, u, tiles, (1, 1, 1, 1)))
    return func("winograd", [x, u, b], [z])
