"""Windows that slide over height and width, for pooling and depthwise convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from tilewright.dtypes import DType, f32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Axis, Tensor, placeholder, reduce_axis
from tilewright.tensor.library.dims import Dim, padded

__all__ = ["WindowOptions", "Windows", "output_shape", "with_border"]


class WindowOptions(TypedDict, total=False):
    """How windows move (by 1), how wide a border there is around the data (0), and its type."""

    stride: int
    padding: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class Windows:
    """Channels-first data, the axes of a square window over it, and one window for each output."""

    x: Tensor
    source: Tensor
    axes: tuple[Axis, Axis]
    shape: tuple[Dim, ...]
    stride: int

    @classmethod
    def over(
        cls,
        shape: tuple[Dim, Dim, Dim, Dim],
        kernel: int,
        stride: int = 1,
        padding: int = 0,
        dtype: DType = f32,
        *,
        fill: Callable[[DType], float] = lambda _: 0,
    ) -> Windows:
        """Windows over X of this shape, with a border that is filled."""
        x = placeholder("X", shape, dtype)
        source = with_border(x, padding, "nchw", fill(dtype))
        axes = reduce_axis(kernel, "rh"), reduce_axis(kernel, "rw")
        space = output_shape(source.shape[2:], (kernel, kernel), stride, 1)
        return cls(x, source, axes, (*shape[:2], *space), stride)

    def at(self, n: tir.Expr, c: tir.Expr, h: tir.Expr, w: tir.Expr) -> tir.Expr:
        """An element of the window for output [n, c, h, w]."""
        rh, rw = self.axes
        return self.source[n, c, h * self.stride + rh, w * self.stride + rw]


def with_border(x: Tensor, padding: int, names: Sequence[str], fill: float = 0) -> Tensor:
    """X with a border around its spatial dimensions."""
    border = (0, 0, *([padding] * (len(x.shape) - 2)))
    return padded("P", x, border, border, names, fill)


def output_shape(
    sizes: Sequence[tir.Expr], kernel: Sequence[int], stride: int, dilation: int
) -> tuple[tir.Expr, ...]:
    """How many windows fit, along each dimension."""
    reach = [(k - 1) * dilation + 1 for k in kernel]
    return tuple((s - r) // stride + 1 for s, r in zip(sizes, reach, strict=True))
