"""Convolutions and pooling over channels-last data, with what usually follows them in a model.

These are the programs of a model's kernels: data (batch, space…, channels), constant weights, a
bias and an activation behind the sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from replay.programs.program import Program, Sizes, dims, name_of
from tilewright.dtypes import DTYPES, DType
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute, func, placeholder

__all__ = ["biased", "programs"]

Geometry = Mapping[str, Any]

SAME: Final[Geometry] = {"pads": (1, 1, 1, 1)}
HALVED: Final[Geometry] = {"pads": (1, 1, 1, 1), "strides": (2, 2)}

CONVOLUTIONS: Final[tuple[tuple[str, Sizes, Sizes, int, Geometry], ...]] = (
    ("pointwise", (1, 28, 28, 64), (128, 64, 1, 1), 1, {}),
    ("pointwise", (1, 7, 7, 320), (160, 320, 1, 1), 1, {}),
    ("pointwise", (1, 56, 56, 24), (24, 24, 1, 1), 1, {"strides": (2, 2)}),
    ("same", (1, 56, 56, 64), (64, 64, 3, 3), 1, SAME),
    ("same", (1, 14, 14, 96), (96, 96, 3, 3), 1, SAME),
    ("same", (2, 13, 17, 20), (28, 20, 3, 3), 1, SAME),
    ("halved", (1, 56, 56, 32), (64, 32, 3, 3), 1, HALVED),
    ("first", (1, 112, 112, 3), (32, 3, 7, 7), 1, {"pads": (3,) * 4, "strides": (2, 2)}),
    ("few_filters", (1, 64, 64, 32), (3, 32, 3, 3), 1, SAME),
    ("dilated", (1, 28, 28, 32), (32, 32, 3, 3), 1, {"pads": (2,) * 4, "dilations": (2, 2)}),
    ("grouped", (1, 28, 28, 64), (64, 8, 3, 3), 8, SAME),
    ("depthwise", (1, 28, 28, 96), (96, 1, 3, 3), 96, SAME),
    ("depthwise", (1, 56, 56, 32), (32, 1, 5, 5), 32, {"pads": (2,) * 4, "strides": (2, 2)}),
    ("line", (1, 300, 64), (64, 64, 5), 1, {"pads": (2, 2)}),
    ("volume", (1, 8, 14, 14, 16), (32, 16, 3, 3, 3), 1, {"pads": (1,) * 6}),
    ("same", ("n", 28, 28, 32), (32, 32, 3, 3), 1, SAME),
    ("same", (1, "h", "w", 32), (32, 32, 3, 3), 1, SAME),
    ("pointwise", ("n", "h", "w", 64), (64, 64, 1, 1), 1, {}),
    ("depthwise", (1, "h", "w", 32), (32, 1, 3, 3), 32, SAME),
)
"""Name, data, weights, groups, geometry."""

TRANSPOSED: Final[tuple[tuple[Sizes, Sizes, Geometry], ...]] = (
    ((1, 8, 8, 32), (32, 16, 4, 4), {"strides": (2, 2), "pads": (1,) * 4}),
    ((1, 8, 8, 32), (32, 16, 3, 3), {"strides": (2, 2), "pads": (1,) * 4, "extra": (1, 1)}),
    ((1, 16, 16, 24), (24, 24, 2, 2), {"strides": (2, 2)}),
    ((1, "h", "w", 16), (16, 16, 4, 4), {"strides": (2, 2), "pads": (1,) * 4}),
)

POOLS: Final[tuple[tuple[Sizes, tuple[int, int], Geometry], ...]] = (
    ((1, 56, 56, 64), (2, 2), {"strides": (2, 2)}),
    ((1, 55, 55, 48), (3, 3), HALVED),
    ((1, "h", "w", 32), (3, 3), SAME),
)


def programs() -> Iterator[Program]:
    """Convolutions, transposed ones, and pooling."""
    for kind, data, weights, groups, geometry in CONVOLUTIONS:
        make = partial(_convolution, data, weights, groups, geometry)
        yield _program(f"nhwc_{kind}", (*data, *weights[:1], *weights[2:]), make)
    for dtype in ("i8", "f16"):
        make = partial(_convolution, (1, 14, 14, 32), (32, 32, 3, 3), 1, SAME, dtype)
        yield _program("nhwc_same", (1, 14, 14, 32, 32, 3, 3), make, dtype)
    for data, weights, geometry in TRANSPOSED:
        make = partial(_transposed, data, weights, geometry)
        yield _program("nhwc_transposed", (*data, *weights[1:]), make)
    for data, kernel, geometry in POOLS:
        for kind in ("max", "average"):
            make = partial(_pool, kind, data, kernel, geometry)
            yield Program(name_of(f"nhwc_{kind}_pool", (*data, *kernel)), make)
    for data in ((1, 7, 7, 512), ("n", 14, 14, 96), (1, "h", "w", 64)):
        name = name_of("nhwc_global_average_pool", data)
        yield Program(name, partial(_global_average_pool, data))


def _program(kind: str, sizes: Sizes, make: partial[tir.Func], dtype: str = "f32") -> Program:
    return Program(name_of(kind, sizes, dtype, is_constant=True), make, ("W", "B"))


def biased(y: Tensor) -> tuple[Tensor, Tensor]:
    """A bias, and `y` with it and an activation."""
    b = placeholder("B", y.shape[-1:], y.dtype)
    zero = tir.const(0, y.dtype)
    return b, compute("Z", y.shape, lambda *at: tir.maximum(y[at] + b[at[-1]], zero))


def _tensors(data: Sizes, weights: Sizes, dtype: DType) -> tuple[Tensor, Tensor]:
    return placeholder("X", dims(*data), dtype), placeholder("W", dims(*weights), dtype)


def _convolution(
    data: Sizes, weights: Sizes, groups: int, geometry: Geometry, dtype: str = "f32"
) -> tir.Func:
    from tilewright.tensor.library.convolve import convolve

    x, w = _tensors(data, weights, DTYPES[dtype])
    b, z = biased(convolve(x, w, groups=groups, **geometry))
    return func("convolution", [x, w, b], [z])


def _transposed(data: Sizes, weights: Sizes, geometry: Geometry) -> tir.Func:
    from tilewright.tensor.library.transposed import convolve_transposed

    x, w = _tensors(data, weights, DTYPES["f32"])
    b, z = biased(convolve_transposed(x, w, **geometry))
    return func("transposed", [x, w, b], [z])


def _pool(kind: str, data: Sizes, kernel: Sequence[int], geometry: Geometry) -> tir.Func:
    from tilewright.tensor.library.pool import average_pool, pool

    x = placeholder("X", dims(*data))
    if kind == "max":
        return func("max_pool", [x], [pool(x, tir.Fold.MAX, kernel, **geometry)])
    return func("average_pool", [x], [average_pool(x, kernel, **geometry)])


def _global_average_pool(data: Sizes) -> tir.Func:
    from tilewright.tensor.library.pool import global_average_pool

    x = placeholder("X", dims(*data))
    return func("global_average_pool", [x], [global_average_pool(x)])
