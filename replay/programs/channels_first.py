"""Convolutions and pooling over channels-first data, as `tilewright.tensor.library` states them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from replay.programs.program import Options, Program, Sizes, of_library

__all__ = ["programs"]

Rows = tuple[tuple[Sizes, Options], ...]

CONV1D: Final[Rows] = (
    ((1, 16, 400, 32, 3), {}),
    ((1, 80, 300, 64, 5), {"stride": 2, "padding": 2}),
    ((1, 32, "l", 32, 3), {"dilation": 4, "padding": 4}),
)

CONV2D: Final[Rows] = (
    ((1, 3, 64, 64, 32, 3), {"stride": 2, "padding": 1}),
    ((1, 3, 112, 112, 16, 7), {"stride": 2, "padding": 3}),
    ((1, 64, 28, 28, 64, 3), {"padding": 1}),
    ((1, 64, 28, 28, 64, 1), {}),
    ((2, 32, 14, 14, 48, 3), {"padding": 1, "stride": 2}),
    ((1, 16, 15, 17, 24, 5), {"padding": 2}),
    ((1, 32, 20, 20, 32, 3), {"dilation": 2, "padding": 2}),
    ((1, 32, 14, 14, 64, 3), {"groups": 4, "padding": 1}),
    (("n", 16, 14, 14, 32, 3), {"padding": 1}),
    ((1, 16, "h", "w", 32, 3), {"padding": 1}),
)

CONV3D: Final[Rows] = (
    ((1, 8, 8, 14, 14, 16, 3), {"padding": 1}),
    ((1, 3, 8, 16, 16, 8, 3), {"stride": 2}),
)

DEPTHWISE: Final[Rows] = (
    ((1, 32, 28, 28, 3), {"padding": 1}),
    ((1, 32, 28, 28, 5), {"padding": 2, "stride": 2}),
    ((1, 24, "h", "w", 3), {"padding": 1}),
)

TRANSPOSED: Final[Rows] = (
    ((1, 16, 8, 8, 8, 3), {"stride": 2, "padding": 1}),
    ((1, 16, 8, 8, 8, 4), {"stride": 2, "padding": 1}),
)

POOLING: Final[Rows] = (
    ((1, 32, 28, 28, 2), {"stride": 2}),
    ((1, 32, 28, 28, 3), {"stride": 2, "padding": 1}),
    (("n", 32, "h", "w", 3), {"padding": 1}),
)

CONSTANT: Final = ("W",)


def programs() -> Iterator[Program]:
    """Convolutions with weights that are passed and with constant ones, and pooling."""
    kinds = {"conv1d": CONV1D, "conv2d": CONV2D, "conv3d": CONV3D}
    kinds |= {"depthwise_conv2d": DEPTHWISE, "transposed_conv2d": TRANSPOSED}
    for kind, rows in kinds.items():
        for sizes, options in rows:
            yield of_library(kind, sizes, options=options)
            yield of_library(kind, sizes, constants=CONSTANT, options=options)
    for dtype in ("i8", "f16", "f64"):
        yield of_library("conv2d", (1, 16, 14, 14, 32, 3), dtype, CONSTANT, {"padding": 1})
    for kind in ("max_pool2d", "average_pool2d"):
        for sizes, options in POOLING:
            yield of_library(kind, sizes, options=options)
