"""Convolutions as workloads: what a row of numbers means, the layers by family, the float64 result.

Every workload is a convolution with a bias and a ReLU, batch 1. Arrays are channels-first on both
sides, as models have them: what an engine rearranges at its borders is part of its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

__all__ = ["CONVOLUTIONS", "FAMILIES", "OPS", "TAGS", "Convolution", "Layer"]

Layer = tuple[str, tuple[int, ...]]
"""An op and its shape, see `Convolution`."""

OPS: Final = ("conv1d", "conv2d", "conv3d", "dilated", "grouped", "depthwise", "transposed")
DILATION: Final = 2
GROUPS: Final = 4


def _layers(op: str, *shapes: tuple[int, ...]) -> tuple[Layer, ...]:
    return tuple((op, shape) for shape in shapes)


RESNET18: Final = _layers(
    "conv2d",
    (224, 3, 64, 7, 2, 3),
    (56, 64, 64, 3, 1, 1),
    (56, 64, 64, 1, 1, 0),
    (56, 64, 128, 3, 2, 1),
    (56, 64, 128, 1, 2, 0),
    (28, 128, 128, 3, 1, 1),
    (28, 128, 256, 3, 2, 1),
    (28, 128, 256, 1, 2, 0),
    (14, 256, 256, 3, 1, 1),
    (14, 256, 512, 3, 2, 1),
    (14, 256, 512, 1, 2, 0),
    (7, 512, 512, 3, 1, 1),
)
RESNET50_POINTWISE: Final = _layers(
    "conv2d",
    (56, 64, 64, 1, 1, 0),
    (56, 64, 256, 1, 1, 0),
    (56, 256, 64, 1, 1, 0),
    (56, 256, 128, 1, 1, 0),
    (56, 256, 512, 1, 2, 0),
    (28, 128, 512, 1, 1, 0),
    (28, 512, 128, 1, 1, 0),
    (28, 512, 256, 1, 1, 0),
    (28, 512, 1024, 1, 2, 0),
    (14, 256, 1024, 1, 1, 0),
    (14, 1024, 256, 1, 1, 0),
    (14, 1024, 512, 1, 1, 0),
    (14, 1024, 2048, 1, 2, 0),
    (7, 512, 2048, 1, 1, 0),
    (7, 2048, 512, 1, 1, 0),
)
MOBILENET_DEPTHWISE: Final = _layers(
    "depthwise",
    (112, 32, 3, 1, 1),
    (112, 64, 3, 2, 1),
    (56, 128, 3, 1, 1),
    (56, 128, 3, 2, 1),
    (28, 256, 3, 1, 1),
    (28, 256, 3, 2, 1),
    (14, 512, 3, 1, 1),
    (14, 512, 3, 2, 1),
    (7, 1024, 3, 1, 1),
)

TAGS: Final[dict[Layer, str]] = {
    **{layer: f"C{i}" for i, layer in enumerate(RESNET18, 1)},
    **{layer: f"D{i}" for i, layer in enumerate(MOBILENET_DEPTHWISE, 1)},
}
"""What the literature calls a layer."""

FAMILIES: Final[dict[str, tuple[Layer, ...]]] = {
    "resnet18": RESNET18,
    "resnet50-1x1": RESNET50_POINTWISE,
    "mobilenet-dw": MOBILENET_DEPTHWISE,
    "C1D": _layers(
        "conv1d",
        (256, 64, 128, 3, 2, 1),
        (128, 128, 256, 1, 2, 0),
        (64, 256, 256, 5, 1, 2),
        (32, 512, 512, 3, 1, 1),
    ),
    "C2D": tuple(RESNET18[i] for i in (0, 2, 8, 11)),
    "C3D": _layers(
        "conv3d",
        (16, 224, 3, 64, 7, 2, 3),
        (16, 56, 64, 64, 1, 1, 0),
        (16, 14, 256, 256, 3, 1, 1),
        (16, 7, 512, 512, 3, 1, 1),
    ),
    "DIL": (
        ("dilated", (224, 3, 64, 7, 2, 3)),
        ("conv2d", (56, 64, 64, 1, 1, 0)),  # a window of one element has no gaps
        ("dilated", (14, 256, 256, 3, 1, 1)),
        ("dilated", (7, 512, 512, 3, 1, 1)),
    ),
    "GRP": _layers(
        "grouped",
        (56, 64, 128, 3, 2, 1),
        (56, 64, 64, 1, 1, 0),
        (14, 256, 256, 3, 1, 1),
        (7, 512, 512, 3, 1, 1),
    ),
    "DEP": tuple(MOBILENET_DEPTHWISE[i] for i in (0, 1, 7, 8)),
    "T2D": _layers(
        "transposed",
        (4, 512, 256, 4, 2, 1),
        (8, 256, 128, 4, 2, 1),
        (16, 128, 64, 4, 2, 1),
        (32, 64, 3, 4, 2, 1),
    ),
}
"""Of networks, and four of each kind that search-based compilers report. A layer may be in several
families; it is measured once."""

CONVOLUTIONS: Final = tuple(
    dict.fromkeys(layer for layers in FAMILIES.values() for layer in layers)
)


@dataclass(frozen=True, slots=True)
class Convolution:
    """(space…, channels, filters, kernel, stride, padding), without filters for `depthwise`.

    `conv3d` has a depth and one size for height and width. `dilated` is a conv2d with gaps of one
    in its window, `grouped` one whose channels are in four groups.
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
        return {"depthwise": self.channels, "grouped": GROUPS}.get(self.op, 1)

    @property
    def dilation(self) -> int:
        return DILATION if self.op == "dilated" else 1

    @property
    def reach(self) -> int:
        """Elements from the first to the last of a window."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def window(self) -> tuple[int, ...]:
        return (self.kernel,) * self.rank

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the inputs by name; weights as models store them."""
        weights = (self.filters, self.channels // self.groups)
        if self.op == "transposed":
            weights = (self.channels, self.filters)
        return {
            "x": (1, self.channels, *self.space),
            "w": (*weights, *self.window),
            "b": (self.filters,),
        }

    @property
    def result_shape(self) -> tuple[int, ...]:
        if self.op == "transposed":
            space = [(n - 1) * self.stride + self.kernel - 2 * self.padding for n in self.space]
        else:
            space = [(n + 2 * self.padding - self.reach) // self.stride + 1 for n in self.space]
        return (1, self.filters, *space)

    @property
    def flops(self) -> int:
        """Multiply-adds count twice; a transposed one has as many as the inverse convolution."""
        windows = self.space if self.op == "transposed" else self.result_shape[2:]
        return 2 * prod(windows) * prod(self.shapes["w"])

    @property
    def bytes(self) -> int:
        return 4 * (sum(map(prod, self.shapes.values())) + prod(self.result_shape))

    def reference(self, arrays: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        """The result in float64."""
        x, w, b = (arrays[name].astype(np.float64) for name in "xwb")
        y = self._spread(x[0], w) if self.op == "transposed" else self._gathered(x[0], w)
        result: NDArray[np.float64] = np.maximum(y + b.reshape(-1, *[1] * self.rank), 0)[None]
        return result

    def _gathered(self, x: Any, w: Any) -> Any:
        """One slice of the result after the other: all windows at once may not fit into memory."""
        y = np.zeros(self.result_shape[1:])
        x = np.pad(x, [(0, 0), *[(self.padding,) * 2] * self.rank])
        space = tuple(range(1, self.rank + 1))
        steps = (slice(None, None, self.stride),) * self.rank
        gaps = (slice(None, None, self.dilation),) * self.rank
        seen = sliding_window_view(x, (self.reach,) * self.rank, axis=space)
        seen = seen[(slice(None), *steps, *gaps)]
        w = w.reshape(self.groups, self.filters // self.groups, -1)
        for i in range(y.shape[1]):
            part = np.moveaxis(seen[:, i], space[:-1], range(1 - self.rank, 0))
            sums = w @ part.reshape(self.groups, w.shape[2], -1)
            y[:, i] = sums.reshape(y[:, i].shape)
        return y

    def _spread(self, x: Any, w: Any) -> Any:
        """One element of the window after the other."""
        y = np.zeros((self.filters, *[(n - 1) * self.stride + self.kernel for n in self.space]))
        for at in np.ndindex(*self.window):
            parts = zip(at, self.space, strict=True)
            steps = [slice(r, r + (n - 1) * self.stride + 1, self.stride) for r, n in parts]
            y[(slice(None), *steps)] += np.tensordot(w[(..., *at)], x, (0, 0))
        inside = slice(self.padding, -self.padding or None)
        return y[(slice(None), *[inside] * self.rank)]
