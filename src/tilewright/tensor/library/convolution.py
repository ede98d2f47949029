"""Convolutions over channels-first data, padded by an explicit block so that they test nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from tilewright.dtypes import DType, f32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    Axis,
    Tensor,
    compute,
    func,
    placeholder,
    reduce_axis,
    select,
    sum_over,
)
from tilewright.tensor.library.dims import Dim, accumulator, with_names
from tilewright.tensor.library.windows import WindowOptions, Windows, output_shape, with_border

__all__ = ["conv1d", "conv2d", "conv3d", "depthwise_conv2d", "transposed_conv2d"]

SPATIAL = {1: ("x",), 2: ("h", "w"), 3: ("d", "h", "w")}
WINDOW = {1: ("rx",), 2: ("rh", "rw"), 3: ("rd", "rh", "rw")}


class ConvOptions(WindowOptions, total=False):
    """Also how far apart the elements of a window are (1), and groups of channels (1)."""

    dilation: int
    groups: int


def conv1d(
    batch: Dim,
    channels: int,
    length: Dim,
    filters: int,
    kernel: int,
    **options: Unpack[ConvOptions],
) -> tir.Func:
    """Y[n, o, x] = Σ X[n, c, x·stride + r·dilation - padding]·W[o, c, r]."""
    return _convolution("conv1d", (batch, channels, length), filters, (kernel,), **options)


def conv2d(
    batch: Dim,
    channels: int,
    height: Dim,
    width: Dim,
    filters: int,
    kernel: int | tuple[int, int],
    **options: Unpack[ConvOptions],
) -> tir.Func:
    """The same over height and width."""
    window = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    return _convolution("conv2d", (batch, channels, height, width), filters, window, **options)


def conv3d(
    batch: Dim,
    channels: int,
    depth: Dim,
    height: Dim,
    width: Dim,
    filters: int,
    kernel: int,
    **options: Unpack[ConvOptions],
) -> tir.Func:
    """The same over depth, height and width."""
    shape = (batch, channels, depth, height, width)
    return _convolution("conv3d", shape, filters, (kernel,) * 3, **options)


def depthwise_conv2d(
    batch: Dim,
    channels: int,
    height: Dim,
    width: Dim,
    kernel: int,
    **options: Unpack[WindowOptions],
) -> tir.Func:
    """Y[n, c, h, w] = Σ X[n, c, …]·W[c, rh, rw]: every channel by itself."""
    windows = Windows.over((batch, channels, height, width), kernel, **options)
    dtype, axes = windows.x.dtype, windows.axes
    acc = accumulator(dtype)
    weights = placeholder("W", (channels, kernel, kernel), dtype)
    y = compute(
        "Y",
        windows.shape,
        lambda n, c, h, w: sum_over(
            windows.at(n, c, h, w).to(acc) * weights[(c, *axes)].to(acc), *axes
        ),
    )
    return func("depthwise_conv2d", [windows.x, weights], [y])


def transposed_conv2d(
    batch: Dim,
    channels: int,
    height: int,
    width: int,
    filters: int,
    kernel: int,
    *,
    stride: int = 1,
    padding: int = 0,
    dtype: DType = f32,
) -> tir.Func:
    """The gradient of a convolution by its input: zeros between the elements, then a convolution.

    Y has (height - 1)·stride - 2·padding + kernel rows; W is indexed [c, o, rh, rw].
    """
    acc = accumulator(dtype)
    x = placeholder("X", (batch, channels, height, width), dtype)
    weights = placeholder("W", (channels, filters, kernel, kernel), dtype)
    border = kernel - 1 - padding
    if border < 0:
        raise ValueError(f"padding {padding} is larger than kernel - 1 = {kernel - 1}")
    spread = compute(
        "Z",
        (batch, channels, *((s - 1) * stride + 1 + 2 * border for s in (height, width))),
        lambda n, c, h, w: _between_zeros(x, (n, c), (h, w), (height, width), stride, border),
    )
    c, rh, rw = (
        reduce_axis(e, name) for e, name in ((channels, "c"), (kernel, "rh"), (kernel, "rw"))
    )
    space = output_shape(spread.shape[2:], (kernel, kernel), 1, 1)
    last = kernel - 1
    y = compute(
        "Y",
        (batch, filters, *space),
        lambda n, o, h, w: sum_over(
            spread[n, c, h + rh, w + rw].to(acc) * weights[c, o, last - rh, last - rw].to(acc),
            c,
            rh,
            rw,
        ),
    )
    return func("transposed_conv2d", [x, weights], [y])


def _between_zeros(
    x: Tensor,
    outer: tuple[tir.Expr, ...],
    where: tuple[tir.Expr, ...],
    sizes: tuple[int, ...],
    stride: int,
    border: int,
) -> tir.Expr:
    """X where `where - border` is a multiple of `stride` within X, else zero."""
    inside: tir.Expr | None = None
    index: list[tir.Expr] = []
    for at, size in zip(where, sizes, strict=True):
        moved = at - border
        here = (moved >= 0) & (moved <= (size - 1) * stride) & (moved % stride).eq(0)
        inside = here if inside is None else inside & here
        index.append(tir.minimum(tir.maximum(moved // stride, 0), size - 1))
    assert inside is not None
    read = x[(*outer, *index)]
    return select(inside, read, tir.const(0, read.dtype)).to(x.dtype)


def _convolution(
    name: str,
    shape: Sequence[Dim],
    filters: int,
    kernel: tuple[int, ...],
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    dtype: DType = f32,
) -> tir.Func:
    channels = shape[1]
    if not isinstance(channels, int) or channels % groups or filters % groups:
        raise ValueError(f"{groups} groups do not divide {channels} channels and {filters} filters")
    acc, rank = accumulator(dtype), len(kernel)
    per_group, filters_per_group = channels // groups, filters // groups
    x = placeholder("X", shape, dtype)
    weights = placeholder("W", (filters, per_group, *kernel), dtype)
    source = with_border(x, padding, ("n", "c", *SPATIAL[rank]))
    c = reduce_axis(per_group, "c")
    window: list[Axis] = [reduce_axis(k, n) for k, n in zip(kernel, WINDOW[rank], strict=True)]

    def value(n: tir.Expr, o: tir.Expr, *where: tir.Expr) -> object:
        channel: tir.Expr = c if groups == 1 else o // filters_per_group * per_group + c
        at = [s * stride + r * dilation for s, r in zip(where, window, strict=True)]
        product = source[(n, channel, *at)].to(acc) * weights[(o, c, *window)].to(acc)
        return sum_over(product, c, *window)

    space = output_shape(source.shape[2:], kernel, stride, dilation)
    names = ("n", "o", *SPATIAL[rank])
    y = compute("Y", (shape[0], filters, *space), with_names(names, value))  # type: ignore[arg-type]
    return func(name, [x, weights], [y])
