"""Parts of the machine model that belong to one kind of kernel, with nominal figures.

Cycles are of one core and a full vector unless a name says otherwise; factors are how much longer
something takes than the plain product or stream that it is priced by. The nominal figures were
measured by turns on a core with two 256-bit multiply-adds per cycle (Zen 3).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AttentionCosts", "ConvolutionCosts", "CopyCosts", "TransformCosts", "WindowCosts"]


@dataclass(frozen=True, slots=True)
class AttentionCosts:
    """Attention as one kernel, by tiles of queries and blocks of keys."""

    power_cycles: float = 6.5
    """A vector on its way from logit to power and sum."""
    copy_cycles: float = 1.2
    """An element of the queries that is copied across."""
    tile_cycles: float = 600.0
    """Starting the loops of a tile of queries."""
    block_cycles: float = 250.0
    """Starting the loops of a block of keys."""
    loop_cycles: float = 16.0
    """Starting and leaving the loop of a register tile."""
    far_cycles: float = 0.2
    """A vector from the second cache."""
    fold_cycles: float = 1.5
    """Folding one half of the lanes of a vector onto the other, among other such."""
    scattered_cycles: float = 0.75
    """A line of keys or values that lies apart from the one before it, beside what a stream of
    lines costs."""
    two_sizes: float = 1.06
    """Register tiles of two sizes are two copies of the code."""
    latency_factor: float = 1.2
    """No chain of sums is ever followed by the next at once."""
    load_share: float = 0.08
    """Part of the loads that arithmetic does not hide."""


@dataclass(frozen=True, slots=True)
class TransformCosts:
    """Winograd: transforms of data and of products."""

    serial: float = 1.3
    """How much longer a transform takes than its loads, stores and additions by turns: each ends
    in scattered places, one for every element of a tile."""


@dataclass(frozen=True, slots=True)
class ConvolutionCosts:
    """Factors on the product that a convolution is."""

    sliding: float = 1.08
    """Rows are windows that overlap."""
    window_density: float = 1.3
    """Elements of the data for each place of a window: those of neighbours are shared."""
    other_order: float = 1.005
    """Data in another order than channels last."""
    groups_cut: float = 1.15
    """Blocks of channels cut groups."""
    pages_apart: float = 1.08
    """Blocks of channels lie whole pages apart, and so share lines of the first cache."""
    along_image: float = 1.02
    """The product runs along whole images."""
    along_lines: float = 1.12
    """The product runs along lines of an image."""
    blocked_tiles: float = 1.1
    """Results in blocks of channels come out of tiles: how much longer their transform takes."""
    image_panels: int = 8
    """Vectors of an image that each thread must have, to run along it."""
    long_line: int = 28
    """Places of a line that is long enough to run along."""


@dataclass(frozen=True, slots=True)
class WindowCosts:
    """Windows of single channels (depthwise, pooling)."""

    tap_cycles: float = 1.0
    """An element of a window and a vector of channels."""
    tap_blocked_cycles: float = 0.75
    """The same in blocks of channels, where lines of an image lie side by side."""
    tap_along_cycles: float = 0.62
    """An element of a window and a vector of places."""
    strided: float = 1.55
    """Windows move by several places."""
    copied_cycles: float = 0.6
    """Copying a vector of places."""
    sorted_cycles: float = 1.6
    """The same, sorted by phases."""
    line_cycles: float = 3.5
    """Beginning and ending a line."""


@dataclass(frozen=True, slots=True)
class CopyCosts:
    """Conversions from one order of dimensions to another."""

    near_bytes: float = 14.0
    """Bytes per cycle at best in the second cache, reading and writing counted."""
    far_bytes: float = 11.0
    """The same beyond it."""
    on_the_way: float = 0.7
    """Part of a conversion that is left if it happens while a result is written."""
