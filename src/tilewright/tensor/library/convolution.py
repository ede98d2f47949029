"""Convolutions over channels-first data, padded by an explicit block so that they test nothing."""

from __future__ import annotations

from collections.abc import Sequence

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
from tilewright.tensor.library.dims import Dim, accumulator, padded, with_names

__all__ = ["conv1d", "conv2d", "conv3d", "depthwise_conv2d", "transposed_conv2d"]

SPATIAL = {1: ("x",), 2: ("h", "w"), 3: ("d", "h", "w")}
WINDOW = {1: ("rx",), 2: ("rh", "rw"), 3: ("rd", "rh", "rw")}


def conv1d(
    batch: Dim,
    channels: int,
    length: Dim,
    filters: int,
    kernel: int,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    dtype: DType = f32,
) -> tir.Func:
    """Y[n, o, x] = Σ X[n, c, x·stride + r·dilation - padding]·W[o, c, r]."""
    shape = (batch, channels, length)
    return _convolution(
        "conv1d", shape, filters, (kernel,), stride, padding, dilation, groups, dtype
    )


def conv2d(
    batch: Dim,
    channels: int,
    height: Dim,
    width: Dim,
    filters: int,
    kernel: int | tuple[int, int],
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    dtype: DType = f32,
) -> tir.Func:
    """The same over height and width."""
    window = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    shape = (batch, channels, height, width)
    return _convolution("conv2d", shape, filters, window, stride, padding, dilation, groups, dtype)


def conv3d(
    batch: Dim,
    channels: int,
    depth: Dim,
    height: Dim,
    width: Dim,
    filters: int,
    kernel: int,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    dtype: DType = f32,
) -> tir.Func:
    """The same over depth, height and width."""
    shape = (batch, channels, depth, height, width)
    return _convolution(
        "conv3d", shape, filters, (kernel,) * 3, stride, padding, dilation, groups, dtype
    )


def depthwise_conv2d(
    batch: Dim,
    channels: int,
    height: Dim,
    width: Dim,
    kernel: int,
    *,
    stride: int = 1,
    padding: int = 0,
    dtype: DType = f32,
) -> tir.Func:
    """Y[n, c, h, w] = Σ X[n, c, …]·W[c, rh, rw]: every channel by itself."""
    acc = accumulator(dtype)
    x = placeholder("X", (batch, channels, height, width), dtype)
    weights = placeholder("W", (channels, kernel, kernel), dtype)
    source = _padded(x, padding, "nchw")
    rh, rw = reduce_axis(kernel, "rh"), reduce_axis(kernel, "rw")
    space = _output_shape(source.shape[2:], (kernel, kernel), stride, 1)
    y = compute(
        "Y",
        (batch, channels, *space),
        lambda n, c, h, w: sum_over(
            source[n, c, h * stride + rh, w * stride + rw].to(acc) * weights[c, rh, rw].to(acc),
            rh,
            rw,
        ),
    )
    return func("depthwise_conv2d", [x, weights], [y])


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
    space = _output_shape(spread.shape[2:], (kernel, kernel), 1, 1)
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


def _padded(x: Tensor, padding: int, names: str) -> Tensor:
    rank = len(x.shape) - 2
    border = (0, 0, *([padding] * rank))
    return padded("P", x, border, border, names)


def _output_shape(
    sizes: Sequence[tir.Expr], kernel: Sequence[int], stride: int, dilation: int
) -> tuple[tir.Expr, ...]:
    reach = [(k - 1) * dilation + 1 for k in kernel]
    return tuple((s - r) // stride + 1 for s, r in zip(sizes, reach, strict=True))


def _convolution(
    name: str,
    shape: Sequence[Dim],
    filters: int,
    kernel: tuple[int, ...],
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    dtype: DType,
) -> tir.Func:
    channels = shape[1]
    if not isinstance(channels, int) or channels % groups or filters % groups:
        raise ValueError(f"{groups} groups do not divide {channels} channels and {filters} filters")
    acc, rank = accumulator(dtype), len(kernel)
    per_group, filters_per_group = channels // groups, filters // groups
    x = placeholder("X", shape, dtype)
    weights = placeholder("W", (filters, per_group, *kernel), dtype)
    source = _padded(x, padding, "".join(("n", "c", *SPATIAL[rank])))
    c = reduce_axis(per_group, "c")
    window: list[Axis] = [reduce_axis(k, n) for k, n in zip(kernel, WINDOW[rank], strict=True)]

    def value(n: tir.Expr, o: tir.Expr, *where: tir.Expr) -> object:
        channel: tir.Expr = c if groups == 1 else o // filters_per_group * per_group + c
        at = [s * stride + r * dilation for s, r in zip(where, window, strict=True)]
        product = source[(n, channel, *at)].to(acc) * weights[(o, c, *window)].to(acc)
        return sum_over(product, c, *window)

    space = _output_shape(source.shape[2:], kernel, stride, dilation)
    names = ("n", "o", *SPATIAL[rank])
    y = compute("Y", (shape[0], filters, *space), with_names(names, value))  # type: ignore[arg-type]
    return func(name, [x, weights], [y])
