"""Sizes that have several names in a model, or none, and meet all the same.

`x[n] + z[k]` is defined in every run in which n and k are equal, or one of them is one. In a graph
with aliases an input may declare a size by any name that is as large in all runs, or by none; where
an operator broadcasts, by a name that is one in some runs. Sizes that follow from others (`x[1:]`)
get names of their own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = ["Dim", "Sizes", "declared", "drawn", "meeting", "named"]

Dim = int | str
"""A number, or the name of a size that differs between runs."""

Sizes = dict[str, list[int]]
"""What a name stands for in each run."""

EXTENTS: Final = (1, 2, 3, 4, 5, 8, 9, 17)
FEW: Final = (1, 2, 3, 5)
"""Small ones: sizes that are one or equal by chance are frequent among them."""


def drawn(draw: random.Random, runs: int, *, aliases: bool) -> list[int]:
    """The extents of a size; those of a graph with aliases are one, or equal, more often."""
    if not aliases:
        sizes = draw.sample(EXTENTS, runs)
        return [*sizes[:-1], 0] if draw.random() < 0.08 else sizes
    sizes = draw.choices(draw.choice((EXTENTS, FEW)), k=runs)
    for extent, chance in ((1, 0.3), (0, 0.15)):
        if draw.random() < chance:
            sizes[draw.randrange(runs)] = extent
    return sizes


def named(sizes: Sizes, extents: Iterable[int]) -> str:
    """A new name."""
    name = f"s{len(sizes)}"
    sizes[name] = list(extents)
    return name


def declared(
    draw: random.Random, sizes: Sizes, dims: Sequence[Dim], runs: int, numbers: float
) -> list[Dim | None]:
    """The shape that an input has in a model, where its sizes have one name of several, or none.

    So have numbers, with this probability.
    """
    chances = (0.5 if isinstance(dim, str) else numbers for dim in dims)
    return [
        _declared(draw, sizes, dim, runs) if draw.random() < chance else dim
        for dim, chance in zip(dims, chances, strict=True)
    ]


def _declared(draw: random.Random, sizes: Sizes, dim: Dim, runs: int) -> Dim | None:
    extents = _extents(sizes, dim, runs)
    known = [name for name, others in sizes.items() if others == extents and name != dim]
    choice = draw.choice((*known, "new", None))
    return named(sizes, extents) if choice == "new" else choice


def meeting(draw: random.Random, sizes: Sizes, dim: Dim, runs: int, *, one_way: bool) -> str:
    """The name of a size that is broadcast together with another one in every run.

    One way, it is equal or one; otherwise the other one may be one as well.
    """
    extents = _extents(sizes, dim, runs)

    def fits(others: list[int]) -> bool:
        pairs = zip(extents, others, strict=True)
        return all(b in {1, a} or (a == 1 and not one_way) for a, b in pairs)

    fitting = [name for name, others in sizes.items() if name != dim and fits(others)]
    if fitting and draw.random() < 0.6:
        return draw.choice(fitting)
    larger = (1, 1) if one_way else (1, 2, 3)
    return named(sizes, [draw.choice((a, 1) if a != 1 else larger) for a in extents])


def _extents(sizes: Sizes, dim: Dim, runs: int) -> list[int]:
    return sizes[dim] if isinstance(dim, str) else [dim] * runs
