"""Convolutions as workloads: what a row of numbers means, the inputs, the float64 result.

Every workload is a convolution with a bias and a ReLU, batch 1. Arrays are channels-last; engines
that want channels first get copies made before the clock runs, and their results are turned back.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["CONVOLUTIONS", "OPS", "Convolution", "channels_first", "channels_last"]

OPS: Final = ("conv1d", "conv2d", "conv3d", "depthwise", "transposed")

CONVOLUTIONS: Final[tuple[tuple[str, tuple[int, ...]], ...]] = (
    ("conv2d", (224, 3, 64, 7, 2, 3)),  # ResNet-18, from its stem to its last layer
    ("conv2d", (56, 64, 64, 3, 1, 1)),
    ("conv2d", (56, 64, 64, 1, 1, 0)),
    ("conv2d", (56, 64, 128, 3, 2, 1)),
    ("conv2d", (56, 64, 128, 1, 2, 0)),
    ("conv2d", (28, 128, 128, 3, 1, 1)),
    ("conv2d", (28, 128, 256, 3, 2, 1)),
    ("conv2d", (28, 128, 256, 1, 2, 0)),
    ("conv2d", (14, 256, 256, 3, 1, 1)),
    ("conv2d", (14, 256, 512, 3, 2, 1)),
    ("conv2d", (14, 256, 512, 1, 2, 0)),
    ("conv2d", (7, 512, 512, 3, 1, 1)),
    ("conv2d", (56, 64, 256, 1, 1, 0)),  # ResNet-50
    ("conv2d", (28, 512, 128, 1, 1, 0)),
    ("conv2d", (14, 1024, 256, 1, 1, 0)),
    ("conv2d", (7, 512, 2048, 1, 1, 0)),
    ("depthwise", (112, 32, 3, 1, 1)),  # MobileNet
    ("depthwise", (112, 64, 3, 2, 1)),
    ("depthwise", (56, 128, 3, 1, 1)),
    ("depthwise", (28, 256, 3, 1, 1)),
    ("depthwise", (14, 512, 3, 1, 1)),
    ("depthwise", (7, 1024, 3, 1, 1)),
    ("conv3d", (8, 56, 64, 64, 3, 1, 1)),  # R3D-18
    ("conv3d", (2, 14, 256, 256, 3, 1, 1)),
    ("conv1d", (256, 64, 128, 3, 2, 1)),
    ("transposed", (4, 512, 256, 4, 2, 1)),  # DCGAN
    ("transposed", (8, 256, 128, 4, 2, 1)),
    ("transposed", (16, 128, 64, 4, 2, 1)),
)


@dataclass(frozen=True, slots=True)
class Convolution:
    """(space…, channels, filters, kernel, stride, padding), without filters for `depthwise`.

    `conv3d` has a depth and one size for height and width.
    """

    op: str
    space: tuple[int, ...]
    channels: int
    filters: int
    kernel: int
    stride: int
    padding: int

    @classmethod
    def of(cls, op: str, shape: tuple[int, ...]) -> Self:
        if op == "depthwise":
            size, channels, *window = shape
            return cls(op, (size, size), channels, channels, *window)
        if op == "conv3d":
            depth, size, *rest = shape
            return cls(op, (depth, size, size), *rest)
        size, *rest = shape
        return cls(op, (size,) if op == "conv1d" else (size, size), *rest)

    @property
    def rank(self) -> int:
        return len(self.space)

    @property
    def groups(self) -> int:
        return self.channels if self.op == "depthwise" else 1

    @property
    def window(self) -> tuple[int, ...]:
        return (self.kernel,) * self.rank

    @property
    def strides(self) -> tuple[int, ...]:
        return (self.stride,) * self.rank

    @property
    def pads(self) -> tuple[int, ...]:
        return (self.padding,) * (2 * self.rank)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the inputs by name; weights as models store them."""
        weights = (self.filters, self.channels // self.groups)
        if self.op == "transposed":
            weights = (self.channels, self.filters)
        return {
            "x": (1, *self.space, self.channels),
            "w": (*weights, *self.window),
            "b": (self.filters,),
        }

    @property
    def result_shape(self) -> tuple[int, ...]:
        if self.op == "transposed":
            space = [(n - 1) * self.stride + self.kernel - 2 * self.padding for n in self.space]
        else:
            space = [(n + 2 * self.padding - self.kernel) // self.stride + 1 for n in self.space]
        return (1, *space, self.filters)

    @property
    def flops(self) -> int:
        """Multiply-adds count twice; a transposed one has as many as the inverse convolution."""
        windows = self.space if self.op == "transposed" else self.result_shape[1:-1]
        return 2 * prod(windows) * prod(self.shapes["w"])

    @property
    def bytes(self) -> int:
        return 4 * (sum(map(prod, self.shapes.values())) + prod(self.result_shape))

    def reference(self, arrays: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        """The result in float64, one element of the window after the other."""
        x, w, b = (arrays[name].astype(np.float64) for name in "xwb")
        y = self._spread(x, w) if self.op == "transposed" else self._gathered(x, w)
        result: NDArray[np.float64] = np.maximum(y + b, 0)
        return result

    def _gathered(self, x: Any, w: Any) -> Any:
        y = np.zeros(self.result_shape)
        x = np.pad(x, [(0, 0), *[(self.padding,) * 2] * self.rank, (0, 0)])
        for at in np.ndindex(*self.window):
            parts = zip(at, self.result_shape[1:-1], strict=True)
            steps = [slice(r, r + (n - 1) * self.stride + 1, self.stride) for r, n in parts]
            seen, own = x[(slice(None), *steps)], w[(..., *at)]
            y += seen * own[:, 0] if self.groups > 1 else seen @ own.T
        return y

    def _spread(self, x: Any, w: Any) -> Any:
        whole = [(n - 1) * self.stride + self.kernel for n in self.space]
        y = np.zeros((1, *whole, self.filters))
        for at in np.ndindex(*self.window):
            parts = zip(at, self.space, strict=True)
            steps = [slice(r, r + (n - 1) * self.stride + 1, self.stride) for r, n in parts]
            y[(slice(None), *steps)] += x @ w[(..., *at)]
        inside = slice(self.padding, -self.padding or None)
        return y[(slice(None), *[inside] * self.rank)]


def channels_first(x: Any) -> Any:
    """A contiguous copy, channels behind the batch."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def channels_last(y: Any) -> Any:
    """A view, channels last."""
    return np.moveaxis(y, 1, -1)
