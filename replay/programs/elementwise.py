"""Maps, movements, borders, conversions and stencils: programs that sum up nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from replay.programs.program import Program, Sizes, dims, name_of, of_library
from tilewright.dtypes import DTYPES
from tilewright.tensor import ir as tir
from tilewright.tensor import library

__all__ = ["programs"]

SHAPES: Final[tuple[Sizes, ...]] = ((256, 512), (3, 1001), ("m", 512), ("m", "n"))

TRANSPOSED: Final[tuple[Sizes, ...]] = ((256, 256), (100, 3), (1000, 77), ("m", 64), ("m", "n"))

FUNCTIONS: Final = ("exp", "tanh", "erf", "sigmoid", "log", "sin", "sqrt")

CONVERSIONS: Final = (
    ("f32", "f16"), ("f16", "f32"), ("f32", "bf16"), ("bf16", "f32"), ("f32", "i8"),
    ("i8", "f32"), ("f32", "i32"), ("u8", "f32"), ("f64", "f32"), ("i64", "i32"),
    ("f32", "f8e4m3fn"),
)  # fmt: skip


def programs() -> Iterator[Program]:
    """Every kind in f32, then types and functions."""
    for kind in ("add", "broadcast_add", "gelu", "elementwise_chain"):
        for sizes in SHAPES:
            yield of_library(kind, sizes)
    for dtype in ("f16", "bf16", "f64", "i8", "i64"):
        yield of_library("add", (64, 1000), dtype)
    for sizes in TRANSPOSED:
        yield of_library("transpose", sizes)
    for dtype in ("i8", "f16", "f64"):
        yield of_library("transpose", (128, 96), dtype)
    for function in FUNCTIONS:
        yield Program(name_of(function, (64, 1000)), partial(_unary, function, "f32"))
        yield Program(name_of(function, (64, 1000), "f16"), partial(_unary, function, "f16"))
    for source, result in CONVERSIONS:
        make = partial(_convert, (64, 1000), source, result)
        yield Program(name_of(f"convert-{source}-{result}", (64, 1000)), make)
    for sizes in ((62, 62, 1), (100, 30, 3), ("m", "n", 2)):
        yield of_library("pad2d", sizes)
    for sizes in ((64, 64), (130, 1030)):
        yield of_library("stencil", sizes)


def _unary(function: str, dtype: str) -> tir.Func:
    return library.unary(function, 64, 1000, DTYPES[dtype])


def _convert(sizes: Sizes, source: str, result: str) -> tir.Func:
    rows, columns = dims(*sizes)
    return library.convert(rows, columns, DTYPES[source], DTYPES[result])
