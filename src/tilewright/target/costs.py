"""Parts of the machine model that belong to one kind of kernel, with nominal figures.

Cycles are of one core and a full vector unless a name says otherwise; factors are how much longer
something takes than the plain product or stream that it is priced by. The nominal figures were
measured by turns on a core with two 256-bit multiply-adds per cycle (Zen 3).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "AttentionCosts",
    "ArithmeticCosts",
    "ContractionCosts",
    "ConvolutionCosts",
    "CopyCosts",
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
class ContractionCosts:
    """Products in register tiles, beside what the ports and the levels of memory say."""

    load_share: float = 0.1
    """Part of the loads of a step that arithmetic does not hide: they meet lines on their way."""
    iteration_cycles: float = 0.15
    """Counting and branching of one iteration of the walk along the reduction."""
    cold_cycles: float = 5.0
    """An instruction that was not run lately: its line comes from a further cache."""
    first_share: float = 0.75
    """Part of the first cache that operands may fill."""
    one_stream: float = 0.95
    """Part of its rate that a level delivers to a single stream."""
    followed_lines: int = 16
    """Lines side by side, in each step of a stream, that hardware goes on fetching."""
    share_cycles: float = 60.0
    """One iteration of a loop that threads share: addresses, divisions by the fused extents."""
    page_cycles: float = 0.5
    """A step into a page whose address is not at hand, as far as it is not hidden."""
    near_pages: int = 64
    """Pages whose addresses are at hand: entries of the first translation buffer."""


@dataclass(frozen=True, slots=True)
class TransformCosts:
    """Winograd: transforms of data and of products."""

    serial: float = 1.3
    """How much longer a transform takes than its loads, stores and additions by turns: each ends
    in scattered places, one for every element of a tile. Less than one where ports work at once."""


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
    """Windows of single channels (depthwise, pooling): tiles of sums, and loops around them."""

    reorder_entries: float = 256.0
    """Instructions that a core works on at a time: short tiles run into each other."""
    turn_cycles: float = 1.0
    """An iteration of a loop over a window: its counter and its addresses."""
    tile_cycles: float = 2.0
    """Beginning a tile of sums: addresses, start values."""
    line_cycles: float = 4.0
    """Beginning and ending a line, or a part of it up to a border."""
    copied_cycles: float = 0.5
    """Copying a vector, beside its store."""
    sorted_cycles: float = 1.0
    """Sorting a vector by phases, for each of these: shuffles."""
    partial_cycles: float = 2.0
    """A vector of which only a part exists: masks, or pieces."""
    short_runs: float = 1.0
    """How much longer the first line of a run takes than the others, beyond the second cache: a
    part of each place is read, which nothing announces."""
    instruction_bytes: float = 8.0
    """Of a vector instruction with an address."""
    load_share: float = 0.1
    """Part of the time of loads that arithmetic does not hide, and the other way round."""


@dataclass(frozen=True, slots=True)
class CopyCosts:
    """Conversions from one order of dimensions to another."""

    on_the_way: float = 0.7
    """Part of a conversion that is left if it happens while a result is written."""


@dataclass(frozen=True, slots=True)
class ArithmeticCosts:
    """Instructions on full vectors beside multiply-adds, and how far a core looks ahead."""

    simple: float = 1.5
    """Simple ones that start while one multiply-add could: adders have ports of their own."""
    divide_cycles: float = 5.0
    """Until another division of f32 starts."""
    divide_latency: float = 12.0
    root_cycles: float = 6.0
    """Until another square root of f32 starts."""
    root_latency: float = 18.0
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
