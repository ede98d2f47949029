"""Parts of the machine model that belong to one kind of kernel, with nominal figures.

Cycles are of one core and a full vector unless a name says otherwise; factors are how much longer
something takes than the plain product or stream that it is priced by. The nominal figures were
measured by turns on a core with two 256-bit multiply-adds per cycle (Zen 3).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "AttentionCosts",
    "ConvolutionCosts",
    "CopyCosts",
    "InstructionCosts",
    "LoopCosts",
    "TransformCosts",
    "WindowCosts",
]


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
    near_bytes: float = 240.0
    """Keys and values that arrive in each cycle that a tile waits for the second cache."""
    far_bytes: float = 60.0
    """The same from further away."""
    block_share: float = 0.8
    """Part of the first cache that logits and powers of a block may take, one after the other."""
    whole_share: float = 1.5
    """The same where there is but one block."""
    near_share: float = 0.7
    """Part of the second cache within which keys and values are near."""
    two_sizes: float = 1.06
    """Register tiles of two sizes are two copies of the code."""
    latency_factor: float = 1.2
    """No chain of sums is ever followed by the next at once."""
    load_share: float = 0.08
    """Part of the loads that arithmetic does not hide."""
    store_vectors: float = 3.0
    """Passes over the result for each block of keys."""


@dataclass(frozen=True, slots=True)
class TransformCosts:
    """Winograd: transforms of data and of products, by the elements of a tile along a dimension."""

    tile4_cycles: float = 5.0
    tile6_cycles: float = 6.5
    tile8_cycles: float = 7.5
    near_share: float = 0.5
    """Part of the second cache that a block of tiles takes."""
    weights_exposed: float = 0.25
    """Part of the time of reading the weights again that arithmetic does not hide."""
    blocks_worth: float = 0.85
    """Blocks must be faster by so much in theory: without them rows of tiles are merged."""

    def cycles(self, tile: int) -> float:
        """Of a vector of the elements of a tile, loads and stores in the first cache included."""
        if tile <= 4:
            return self.tile4_cycles
        return self.tile6_cycles if tile <= 6 else self.tile8_cycles


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
    scattered_near: float = 1.08
    """Every channel has a line of its own, and these lines stay in the first cache."""
    scattered_far: float = 1.45
    """The same where they do not."""
    along_image: float = 1.02
    """The product runs along whole images."""
    along_lines: float = 1.12
    """The product runs along lines of an image."""
    blocked_tiles: float = 1.1
    """Results in blocks of channels come out of tiles."""
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

    on_the_way: float = 0.7
    """Part of a conversion that is left if it happens while a result is written."""


@dataclass(frozen=True, slots=True)
class InstructionCosts:
    """Instructions on full vectors beside multiply-adds, and how far a core looks ahead."""

    simple: float = 1.5
    """Simple ones that start while one multiply-add could: adders have ports of their own."""
    divide_cycles: float = 5.0
    """Until another division of f32 starts."""
    divide_latency: float = 12.0
    root_cycles: float = 6.0
    """Until another square root of f32 starts."""
    root_latency: float = 18.0
    shuffle_cycles: float = 1.0
    """Until another shuffle of two vectors starts."""
    shuffle_half: float = 1.0
    """Part of that which vectors of half the width take, or of less."""
    fold_cycles: float = 7.0
    """Halving the lanes that a fold joins: a shuffle, and an operation that waits for it."""
    window: float = 160.0
    """Instructions in flight: so many are looked at for one whose operands are there."""
    code_bytes: float = 7.0
    """Of an instruction on vectors, which comes from the second cache when a kernel begins."""


@dataclass(frozen=True, slots=True)
class LoopCosts:
    """Loops around vectors, and where their data lie."""

    iteration_cycles: float = 1.0
    """Counting and jumping back."""
    entering_cycles: float = 4.0
    """Beginning and leaving a loop whose length is always the same."""
    digit_cycles: float = 12.0
    """Telling a row and a place from the number of an iteration of fused loops: a division."""
    element_cycles: float = 1.0
    """An element that is put into a vector, or taken out of it, by itself."""
    near_pages: float = 64.0
    """Pages whose addresses are translated at once."""
    page_cycles: float = 8.0
    """Translating the address of another page."""
    run_cycles: float = 4.0
    """A run of lines that begins somewhere else beyond the second cache: prefetching by hardware
    has to find it."""
    streams: float = 8.0
    """Streams side by side that prefetching by hardware follows."""
    store_share: float = 0.5
    """Part of what loads wait for that stores wait for: they do so in a queue."""
