"""A one-stage detector of objects in pictures as a torch module, with predictions at three scales.

The kind of network that is run on cameras: a backbone whose blocks gather what each of their
convolutions gives, pooling over several windows at its end, a way up and a way down again, and
heads for three boxes in every cell.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import nn

__all__ = ["Detector"]

BOXES: Final = 3
CLASSES: Final = 80


class _Conv(nn.Sequential):  # type: ignore[misc]
    """A convolution, its normalisation, its activation."""

    def __init__(self, given: int, made: int, kernel: int = 1, stride: int = 1) -> None:
        convolution = nn.Conv2d(given, made, kernel, stride, kernel // 2, bias=False)
        super().__init__(convolution, nn.BatchNorm2d(made), nn.SiLU())


class _Gather(nn.Module):  # type: ignore[misc]
    """Two narrow ways, one of them deep; all that is on it is put together."""

    def __init__(self, given: int, made: int, depth: int = 2) -> None:
        super().__init__()
        width = made // 2
        self.around, self.begin = _Conv(given, width), _Conv(given, width)
        self.steps = nn.ModuleList(
            nn.Sequential(_Conv(width, width, 3), _Conv(width, width, 3)) for _ in range(depth)
        )
        self.end = _Conv((2 + depth) * width, made)

    def forward(self, x: Any) -> Any:
        parts = [self.around(x), self.begin(x)]
        for step in self.steps:
            parts.append(step(parts[-1]))
        return self.end(torch.cat(parts, 1))


class _Pool(nn.Module):  # type: ignore[misc]
    """The largest values of windows of 5, 9 and 13, each made of the one before."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.begin, self.end = _Conv(width, width // 2), _Conv(2 * width, width)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Any) -> Any:
        parts = [self.begin(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.end(torch.cat(parts, 1))


class _Head(nn.Sequential):  # type: ignore[misc]
    """For each box of every cell: place, size, whether there is an object, and of which class."""

    def __init__(self, width: int) -> None:
        super().__init__(_Conv(width, width, 3), nn.Conv2d(width, BOXES * (5 + CLASSES), 1))


class Detector(nn.Module):  # type: ignore[misc]
    """A picture to three maps of predictions, at an eighth, a sixteenth, a thirty-second of it."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        w = [width << i for i in range(5)]
        self.stem = nn.Sequential(
            *(_Conv(3, w[0], 3, 2), _Conv(w[0], w[1], 3, 2), _Gather(w[1], w[1])),
        )
        self.eighth = nn.Sequential(_Conv(w[1], w[2], 3, 2), _Gather(w[2], w[2]))
        self.sixteenth = nn.Sequential(_Conv(w[2], w[3], 3, 2), _Gather(w[3], w[3]))
        self.last = nn.Sequential(_Conv(w[3], w[4], 3, 2), _Gather(w[4], w[4]), _Pool(w[4]))
        self.narrow = nn.ModuleList([_Conv(w[4], w[3]), _Conv(w[3], w[2])])
        self.up = nn.Upsample(scale_factor=2.0, mode="nearest")
        self.joined_up = nn.ModuleList([_Gather(2 * w[3], w[3], 1), _Gather(2 * w[2], w[2], 1)])
        self.down = nn.ModuleList([_Conv(w[2], w[2], 3, 2), _Conv(w[3], w[3], 3, 2)])
        self.joined_down = nn.ModuleList([_Gather(2 * w[2], w[3], 1), _Gather(2 * w[3], w[4], 1)])
        self.heads = nn.ModuleList([_Head(w[2]), _Head(w[3]), _Head(w[4])])

    def forward(self, picture: Any) -> Any:
        fine = self.eighth(self.stem(picture))
        middle = self.sixteenth(fine)
        coarse = self.narrow[0](self.last(middle))
        middle = self.narrow[1](self.joined_up[0](torch.cat([self.up(coarse), middle], 1)))
        fine = self.joined_up[1](torch.cat([self.up(middle), fine], 1))
        middle = self.joined_down[0](torch.cat([self.down[0](fine), middle], 1))
        coarse = self.joined_down[1](torch.cat([self.down[1](middle), coarse], 1))
        maps = zip(self.heads, (fine, middle, coarse), strict=True)
        return tuple(head(part) for head, part in maps)
