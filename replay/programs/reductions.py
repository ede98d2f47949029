"""Sums along rows and columns, normalisations, cumulative sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from replay.programs.program import Program, Sizes, of_library

__all__ = ["programs"]

SHAPES: Final[tuple[Sizes, ...]] = (
    (128, 128), (1, 4096), (1000, 7), (197, 768), ("m", 768), ("m", "n"),
)  # fmt: skip

LENGTHS: Final[tuple[Sizes, ...]] = ((256,), (1001,), ("n",))


def programs() -> Iterator[Program]:
    """Every kind for every shape; the most used ones in narrow types as well."""
    for kind in ("row_sum", "column_sum", "row_max", "total", "softmax", "layernorm"):
        for sizes in SHAPES:
            yield of_library(kind, sizes)
    yield of_library("layernorm", (197, 768), constants=("G", "B"))
    for kind in ("row_sum", "column_sum", "softmax", "layernorm"):
        for dtype in ("f16", "bf16"):
            yield of_library(kind, (64, 384), dtype)
    for dtype in ("i8", "i32", "f64"):
        yield of_library("row_sum", (64, 384), dtype)
        yield of_library("row_max", (64, 384), dtype)
    for sizes in LENGTHS:
        yield of_library("cumulative_sum", sizes)
