"""Pooling over windows of height and width."""

from __future__ import annotations

from typing import Unpack

from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, max_over, sum_over
from tilewright.tensor.library.dims import Dim
from tilewright.tensor.library.windows import WindowOptions, Windows

__all__ = ["average_pool2d", "max_pool2d"]


def max_pool2d(
    batch: Dim,
    channels: Dim,
    height: Dim,
    width: Dim,
    kernel: int,
    **options: Unpack[WindowOptions],
) -> tir.Func:
    """The greatest element of each window; the border never wins."""
    shape = (batch, channels, height, width)
    windows = Windows.over(shape, kernel, **options, fill=lambda dtype: dtype.min_value)
    y = compute(
        "Y", windows.shape, lambda n, c, h, w: max_over(windows.at(n, c, h, w), *windows.axes)
    )
    return func("max_pool2d", [windows.x], [y])


def average_pool2d(
    batch: Dim,
    channels: Dim,
    height: Dim,
    width: Dim,
    kernel: int,
    **options: Unpack[WindowOptions],
) -> tir.Func:
    """The mean of each window; the border counts as zeros."""
    windows = Windows.over((batch, channels, height, width), kernel, **options)
    total = compute(
        "S", windows.shape, lambda n, c, h, w: sum_over(windows.at(n, c, h, w), *windows.axes)
    )
    y = compute("Y", windows.shape, lambda n, c, h, w: total[n, c, h, w] * (1.0 / kernel**2))
    return func("average_pool2d", [windows.x], [y])
