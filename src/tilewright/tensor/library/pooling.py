"""Pooling over windows of height and width."""

from __future__ import annotations

from tilewright.dtypes import DType, f32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, max_over, placeholder, reduce_axis, sum_over
from tilewright.tensor.library.dims import Dim, padded

__all__ = ["average_pool2d", "max_pool2d"]


def max_pool2d(
    batch: Dim,
    channels: Dim,
    height: Dim,
    width: Dim,
    kernel: int,
    *,
    stride: int = 1,
    padding: int = 0,
    dtype: DType = f32,
) -> tir.Func:
    """The greatest element of each window; the border never wins."""
    x = placeholder("X", (batch, channels, height, width), dtype)
    border = (0, 0, padding, padding)
    source = padded("P", x, border, border, "nchw", fill=dtype.min_value)
    rh, rw = reduce_axis(kernel, "rh"), reduce_axis(kernel, "rw")
    y = compute(
        "Y",
        (batch, channels, *((s - kernel) // stride + 1 for s in source.shape[2:])),
        lambda n, c, h, w: max_over(source[n, c, h * stride + rh, w * stride + rw], rh, rw),
    )
    return func("max_pool2d", [x], [y])


def average_pool2d(
    batch: Dim,
    channels: Dim,
    height: Dim,
    width: Dim,
    kernel: int,
    *,
    stride: int = 1,
    padding: int = 0,
    dtype: DType = f32,
) -> tir.Func:
    """The mean of each window; the border counts as zeros."""
    x = placeholder("X", (batch, channels, height, width), dtype)
    border = (0, 0, padding, padding)
    source = padded("P", x, border, border, "nchw")
    rh, rw = reduce_axis(kernel, "rh"), reduce_axis(kernel, "rw")
    shape = (batch, channels, *((s - kernel) // stride + 1 for s in source.shape[2:]))
    window = compute(
        "S",
        shape,
        lambda n, c, h, w: sum_over(source[n, c, h * stride + rh, w * stride + rw], rh, rw),
    )
    y = compute("Y", shape, lambda n, c, h, w: window[n, c, h, w] * (1.0 / kernel**2))
    return func("average_pool2d", [x], [y])
