"""Tiles of minimal filters along the dimensions of a convolution.

Minimal filters want neighbouring results to see neighbouring data. Windows with steps or gaps do
not, but parts of them do:

    stride 2      y[i] = Σ x[2i + 2k]·w[2k] + Σ x[2i + 2k + 1]·w[2k + 1]
                  data of two phases, like two channels, with half a window each
    gaps of 2     y[2i + j] = Σ x[2i + j + 2k]·w[k]       results of two images, j = 0 and 1
    transposed,   y[2i + j] = Σ x[i + … - k]·w[2k + …]    results of two images, each with half a
    stride 2                                              window of its own

What stride and gaps have in common only takes elements out of the data. A long window without
strides is cut into shorter ones, the data of each of which are like channels, too: tiles of more
elements would round too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from typing import Final, TypeVar

from tilewright.tensor import ir as tir
from tilewright.tensor.library.minimal_filters import Filter, minimal_filter

__all__ = ["Line", "SpreadLine", "SpreadTiles", "Tiles"]


Size = TypeVar("Size", int, tir.Expr)

# Windows from so many elements on are cut into pieces of at most so many.
_CUT: Final = 7
_LONG: Final = 4


@dataclass(frozen=True)
class Line:
    """Tiles of so many `results` along one dimension.

    A window has `taps` elements in each of the `phases` of the data, or in each of its `pieces`;
    the results belong to `images` by turns; phases and images lie `apart` from each other.
    """

    results: int
    taps: int
    phases: int
    pieces: int
    images: int
    apart: int

    @classmethod
    def of(cls, results: int, taps: int, stride: int, dilation: int) -> Line:
        """Tiles for windows of `taps` elements."""
        apart = gcd(stride, dilation)
        if apart not in (stride, dilation):
            raise ValueError(f"no tiles for a stride of {stride} with gaps of {dilation}")
        phases, images = stride // apart, dilation // apart
        pieces = -(-taps // _LONG) if phases == 1 and taps >= _CUT else 1
        return cls(results, -(-taps // (phases * pieces)), phases, pieces, images, apart)

    @property
    def parts(self) -> int:
        """What is summed up like channels: phases or pieces."""
        return self.phases * self.pieces

    @property
    def filter(self) -> Filter:
        return minimal_filter(self.results, self.taps)

    @property
    def step(self) -> int:
        """The distance of neighbouring elements of a tile in the data."""
        return self.apart * self.phases * self.images

    def at(self, element: tir.Expr, phase: tir.Expr | int, image: tir.Expr | int) -> tir.Expr:
        """Where, in data with their border, an element of the tiles lies."""
        return element * self.step + (phase + image) * self.apart

    def tiles(self, size: Size) -> Size:
        """How many there are in each image, for so many results."""
        whole = self.results * self.images
        return (size + (whole - 1)) // whole

    def reach(self, tiles: int) -> int:
        """How many elements of the data with their border so many tiles see."""
        return self.elements(tiles) * self.step - self.apart + 1

    def elements(self, tiles: Size) -> Size:
        """How many elements there are in so many tiles."""
        return tiles * self.results + (self.taps * self.pieces - 1)


@dataclass(frozen=True)
class SpreadLine(Line):
    """The same for a transposed convolution, of which `before` results are cut off."""

    before: int

    @property
    def most(self) -> int:
        """How far the last image lies from the first."""
        return (self.images - 1 + self.before) // self.images

    def at(self, element: tir.Expr, phase: tir.Expr | int, image: tir.Expr | int) -> tir.Expr:
        return element + phase + (image + self.before) // self.images

    def reach(self, tiles: int) -> int:
        return self.elements(tiles) + self.most

    def window_of(self, image: int) -> list[int]:
        """Which elements of the window an image sees, from the first element of the data on."""
        first = (image + self.before) % self.images
        return [first + k * self.images for k in reversed(range(self.taps))]


@dataclass(frozen=True)
class Tiles:
    """Windows of `taps` elements; along one or two dimensions tiles of `results`, 0 elsewhere."""

    taps: tuple[int, ...]
    results: tuple[int, ...]
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        ones = (1,) * len(self.taps)
        object.__setattr__(self, "strides", self.strides or ones)
        object.__setattr__(self, "dilations", self.dilations or ones)
        lengths = {len(n) for n in (self.taps, self.results, self.strides, self.dilations)}
        if len(lengths) != 1 or len(self.lines) not in (1, 2):
            raise ValueError(f"tiles of {self.results} results do not fit windows of {self.taps}")

    @property
    def tiled(self) -> tuple[int, ...]:
        """The dimensions of space that have tiles."""
        return tuple(d for d, m in enumerate(self.results) if m)

    @property
    def plain(self) -> tuple[int, ...]:
        """The other ones."""
        return tuple(d for d, m in enumerate(self.results) if not m)

    @cached_property
    def lines(self) -> dict[int, Line]:
        """The tiled dimensions."""
        parts = zip(self.results, self.taps, self.strides, self.dilations, strict=True)
        return {d: Line.of(*part) for d, part in enumerate(parts) if part[0]}

    @cached_property
    def filters(self) -> tuple[Filter, ...]:
        """The minimal filters of the tiled dimensions."""
        return tuple(line.filter for line in self.lines.values())

    @cached_property
    def elements(self) -> int:
        """How many products a tile has for each channel (of each phase) and filter."""
        return prod(f.tile for f in self.filters)

    @property
    def parts(self) -> tuple[int, ...]:
        """Parts of the data along tiled dimensions, where there are several."""
        return tuple(line.parts for line in self.lines.values() if line.parts > 1)

    @property
    def images(self) -> tuple[int, ...]:
        """Images of the results along tiled dimensions, where there are several."""
        return tuple(line.images for line in self.lines.values() if line.images > 1)

    @property
    def own(self) -> int:
        """How many images have weights of their own."""
        return 1

    def counts(self, space: Sequence[int]) -> list[int]:
        """How many tiles each image has along the dimensions of a result; places of plain ones."""
        lines = self.lines
        return [lines[d].tiles(size) if d in lines else size for d, size in enumerate(space)]

    def rows(self, space: Sequence[int]) -> list[int]:
        """The same for all images together."""
        counts = self.counts(space)
        return [n * self.lines[d].images if d in self.lines else n for d, n in enumerate(counts)]


@dataclass(frozen=True)
class SpreadTiles(Tiles):
    """Tiles for a transposed convolution without gaps, of which `before` results are cut off."""

    before: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.before:
            object.__setattr__(self, "before", (0,) * len(self.taps))
        super().__post_init__()
        if self.plain or set(self.dilations) != {1}:
            raise ValueError("transposed convolutions have tiles along all dimensions, and no gaps")

    @cached_property
    def lines(self) -> dict[int, Line]:
        parts = enumerate(zip(self.results, self.taps, self.strides, self.before, strict=True))
        return {d: SpreadLine(m, -(-t // s), 1, 1, s, 1, b) for d, (m, t, s, b) in parts}

    @property
    def own(self) -> int:
        return prod(self.images)

    @property
    def of_one_image(self) -> Tiles:
        """An image is a convolution with windows of its own."""
        return Tiles(tuple(line.taps for line in self.lines.values()), self.results)
