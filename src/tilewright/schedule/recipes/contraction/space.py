"""The space of the contraction recipe: what it is about, and every way it can go.

A point says which register tile there is, how tiles make blocks for the caches, in which order
loops run, what is copied and fetched, and what threads share. `contraction_points` is the whole
space, by number, for a tuner. `contraction_space` is a table of its main columns, with each other
column at one value that can be followed; the draft (`cycles.py`) starts with it and varies the
others for the best of its rows only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.intrin.products import ProductInstruction
from tilewright.schedule.recipes.contraction.values import (
    BLOCK_COUNTS,
    lengths,
    some_of,
    steps_at_once,
    tiles_in_blocks,
)
from tilewright.schedule.recipes.table import Column, Space, Table
from tilewright.target import Target

__all__ = [
    "BLOCKS_FIRST",
    "LEFT_STAYS",
    "RIGHT_STAYS",
    "ContractionPoint",
    "ContractionShape",
    "contraction_points",
    "contraction_space",
    "rest_of_space",
]

LEFT_STAYS, RIGHT_STAYS, BLOCKS_FIRST = range(3)
"""Orders of the loops, with what a near cache keeps meanwhile:

* batch, blocks of rows, panels, tiles of rows: the rows of a block;
* batch, tiles of rows, panels: all panels of the right operand;
* blocks of rows, batch, panels, tiles of rows: the rows of a block, of all groups.
"""

_STREAMS = (1, 2, 4)
"""Places at which hardware follows a stream at once, without losing others."""

_DRAFTED_CUTS = 6
"""Lengths of cuts that a draft prices."""

_MOST_TAILS = 8
"""Kinds of tiles of rows in one kernel: their code grows with the square of this, and so do the
sizes of what is left over, each a remainder of the one before."""

_SHARES = (4, 2, 1)
"""Iterations for each thread that a shared loop has at least, if there are so many."""

_COLUMN_BLOCKS = (2, 4, 8, 16)
"""Numbers of spans of panels, beside as many as threads share."""

_AHEAD = (0, 1, 2)
"""Panels ahead that are fetched. A draft tries the first two: a further one takes room in a near
cache, and only a machine whose memory answers late gains by it."""


@dataclass(frozen=True)
class ContractionShape:
    """What costs need to know: extents, element size, and how the operands lie in memory.

    A size that is not known counts as a middling number.
    """

    batch: int
    rows: int
    columns: int
    reduce: int
    element_bytes: int
    right_is_constant: bool
    threads: int
    """That costs divide the work by."""
    density: float = 1.0
    """Elements of the left operand by rows and steps: windows that overlap share them."""
    reduce_step: int = 1
    """Cuts of the reduction are multiples of this: loops inside of the one that is cut."""
    pitch_bytes: int = 0
    """How far rows of the left operand are apart; 0 if that is not known, or not one number."""
    workers: int = 0
    """Threads that loops are cut for; 0 for as many as `threads`."""
    rows_are_known: bool = True
    reduce_is_known: bool = True
    walk: tuple[int, ...] = ()
    """Steps of the loops of the reduction, the innermost first, up to a 0 for one of unknown
    length; none for a single loop."""
    parts: tuple[int, ...] = ()
    """Numbers of equal parts that the reduction can be cut into, to be shared by threads."""
    may_keep_right: bool = False
    may_pack: bool = False
    """Whether the kernel can copy panels of the right operand; not of a constant, which has them.
    """
    line_columns: int = 0
    """Columns in one piece where the right operand is not copied; 0 for all."""
    right_pitch_bytes: int = 0
    """How far steps of the reduction are apart in the right operand; 0: side by side or unknown."""
    column_pitch_bytes: int = 0
    """How far columns of the right operand are apart; 0 if they lie side by side."""
    group_bytes: int = 0
    """Bytes of one group in a line of the left operand that holds others, too; 0 if none does."""
    may_copy_left: bool = False
    """Whether the kernel can copy blocks of rows: the left operand is a plain matrix in rows."""
    panel_density: float = 1.0
    """Elements of a panel of the right operand by columns and steps: windows that overlap."""
    left_bytes: int = 0
    """Of the whole operand, which several products may share; 0 if each has its own."""
    right_bytes: int = 0
    result_block: int = 0
    """Columns side by side in the result, where it is stored in blocks of columns; 0 if it is not.
    """
    biases: int = 0
    """Constants along the columns that the epilogue reads, and that could lie with the panels."""
    operand_bytes: tuple[int, int] = (0, 0)
    """Of an element of the left and of the right operand, where these are not `element_bytes`."""
    instructions: tuple[ProductInstruction, ...] = ()
    """Tensor instructions that compute the steps of the product."""

    @property
    def left_element_bytes(self) -> int:
        """Of an element of the left operand."""
        return self.operand_bytes[0] or self.element_bytes

    @property
    def right_element_bytes(self) -> int:
        """Of an element of the right operand."""
        return self.operand_bytes[1] or self.element_bytes

    @property
    def walks(self) -> tuple[int, ...]:
        """Steps of the loops of the reduction, the innermost first; none if that is not known."""
        if not self.walk:
            return (self.reduce,) if self.reduce_is_known else ()
        return self.walk if self.walk[0] else ()

    @property
    def sharers(self) -> int:
        """Threads that loops are cut for."""
        return max(self.threads, self.workers)


@dataclass(frozen=True)
class ContractionPoint:
    """Decisions of the recipe, for a tile of `tile_rows` by `tile_vectors` of `lanes` elements."""

    tile_rows: int
    tile_vectors: int
    lanes: int
    row_tiles_per_block: int
    reduce_per_block: int
    """Steps of the reduction in one cut, which adds a tile of partial sums to memory."""
    parallel: int
    order: int = LEFT_STAYS
    packs: int = 0
    """Whether the kernel copies panels of the right operand."""
    streams: int = 1
    """Places at which a tile of one row walks along the reduction at once."""
    unroll: int = 4
    """Steps of the reduction that one iteration takes, or short loops inside of it together."""
    prefetch: int = 1
    """How many panels (or rows of tiles) ahead one is fetched meanwhile; 0 for none."""
    spans: int = 0
    """Column blocks: so many spans of panels, each for all blocks of rows; 0 for a single one."""
    share_tiles: int = 0
    """Whether threads share single tiles of rows, beside blocks and panels."""
    shares: int = 1
    """Iterations of the shared loop at least, if loops have so many."""
    all_tails: int = 0
    """Whether rows of unknown number end with a tile of just the right size, for every size."""
    parts: int = 1
    """Parts of the reduction that threads share, to be summed up behind them (split-K)."""
    copies_left: int = 0
    """Whether blocks of rows are copied first, so that no two rows share sets of a cache."""
    bias_in_panels: int = 0
    """Whether what the epilogue adds to the columns of a panel lies right behind it in memory."""
    instruction: int = 0
    """The number of a tensor instruction in `ContractionShape.instructions`, from one; or none."""

    @property
    def tile_columns(self) -> int:
        """Width of the micro tile in elements."""
        return self.tile_vectors * self.lanes


def contraction_points(shape: ContractionShape, target: Target) -> Space[ContractionPoint]:
    """The whole space of a shape."""
    axes = [
        *_main_axes(shape, target, _cuts(shape), BLOCK_COUNTS, drafted=False),
        *_rest_axes(shape, _AHEAD),
        _sharing(shape, _COLUMN_BLOCKS),
        _axis(("bias_in_panels",), [(0,), (1,)] if shape.biases else [(0,)]),
    ]
    return Space(
        ContractionPoint,
        tuple(axes),
        lambda c: _can_follow(shape, c) & _can_gather(shape, target, c),
    )


def contraction_space(shape: ContractionShape, target: Target) -> Table[ContractionPoint]:
    """Tiles, blocks, cuts, orders and packing in full; what is left, at its first good value."""
    cuts = some_of(_cuts(shape), _DRAFTED_CUTS)
    axes = _main_axes(shape, target, cuts, BLOCK_COUNTS, drafted=True)
    sharing = _axis(("parallel", "shares", "parts"), _drafted_sharing(shape, target))
    table = Space(
        ContractionPoint,
        (*axes, sharing),
        lambda c: _can_follow_main(shape, c) & _can_gather(shape, target, c),
    ).table()
    steps = 4 if 4 in steps_at_once(shape.walks) else 1
    usual = {"streams": 1, "unroll": steps, "spans": 0, "share_tiles": 0, "all_tails": 0}
    usual["bias_in_panels"] = 0
    rest = {name: np.full(len(table), value, np.int64) for name, value in usual.items()}
    rest["prefetch"] = _fetches(shape, table.columns).astype(np.int64)
    return Table(ContractionPoint, table.columns | rest)


def _drafted_sharing(shape: ContractionShape, target: Target) -> list[tuple[int, int, int]]:
    """Whether threads share the work, with many iterations; both only where it could be either."""
    machine, serial, shares = target.machine, [(0, 1, 1)], _SHARES[0] * shape.sharers
    per_cycle = target.lanes(shape.element_bytes) * machine.fma_per_cycle
    least = shape.batch * shape.rows * shape.columns * shape.reduce / per_cycle
    if shape.sharers == 1 or least < machine.barrier_cycles / 2:
        return serial
    parallel = [(1, shares, parts) for parts in (1, *_drafted_parts(shape, target))]
    return parallel if least > 8 * machine.barrier_cycles else serial + parallel


def _drafted_parts(shape: ContractionShape, target: Target) -> tuple[int, ...]:
    """The parts that keep threads busiest, where there could be too few tiles for them."""
    tile = target.vector_registers * target.lanes(shape.element_bytes)
    threads = shape.sharers
    if not shape.parts or shape.batch * shape.rows * shape.columns >= 4 * threads * tile:
        return ()
    return (min(shape.parts, key=lambda n: (math.ceil(n / threads) / n, n)),)


def rest_of_space(
    shape: ContractionShape, table: Table[ContractionPoint], rows: Sequence[int]
) -> Table[ContractionPoint]:
    """Some rows of a table of the main columns, each with all values of the other columns."""
    tile = ("tile_rows", "tile_vectors", "lanes", "instruction")
    main = (*tile, "row_tiles_per_block", "reduce_per_block")
    picked = {name: table[name][list(rows)] for name in (*main, "order", "packs", "copies_left")}
    of_parts = table["parts"][list(rows)] > 1
    picked["reduce_per_block"] = np.where(of_parts, shape.reduce, picked["reduce_per_block"])
    apart = _axis(("bias_in_panels",), [(0,)])
    axes = (picked, *_rest_axes(shape, _AHEAD[:2]), _sharing(shape, ()), apart)
    return Space(ContractionPoint, axes, lambda c: _can_follow(shape, c)).table()


def _main_axes(
    shape: ContractionShape,
    target: Target,
    cuts: Sequence[int],
    counts: tuple[int, ...],
    *,
    drafted: bool,
) -> list[dict[str, Column]]:
    """Register tiles in blocks; cuts; the order of the loops together with what is copied."""
    known = counts if shape.rows_are_known else (1,)
    few = drafted and not shape.column_pitch_bytes  # columns far apart want narrow tiles
    widths = [max(1, target.lanes(shape.element_bytes)), *(i.columns for i in shape.instructions)]
    tiles = _joined(
        [
            _tiles_of(shape, target, number, lanes, known, few=few)
            for number, lanes in enumerate(widths)
        ]
    )
    packing = (0, 1) if shape.may_pack else (0,)
    ways = [(LEFT_STAYS, packs, 0) for packs in packing]
    if shape.may_copy_left and not (drafted and _rows_are_apart(shape, target)):
        ways += [(LEFT_STAYS, packs, 1) for packs in packing]
    if shape.may_keep_right:
        ways.append((RIGHT_STAYS, 0 if shape.right_is_constant else 1, 0))
    if shape.group_bytes and shape.rows_are_known:
        ways += [(BLOCKS_FIRST, packs, 0) for packs in packing]
    cut = {"reduce_per_block": np.array(cuts, np.int64)}
    return [tiles, cut, _axis(("order", "packs", "copies_left"), ways)]


def _tiles_of(
    shape: ContractionShape,
    target: Target,
    instruction: int,
    lanes: int,
    counts: tuple[int, ...],
    *,
    few: bool,
) -> dict[str, Column]:
    """Register tiles of one instruction, or of vector arithmetic."""
    widest = math.ceil(shape.columns / lanes)
    found = dict(tiles_in_blocks(target.vector_registers, shape.rows, widest, counts, few=few))
    same = {"lanes": lanes, "instruction": instruction}
    return found | {
        name: np.full(len(found["tile_rows"]), value, np.int64) for name, value in same.items()
    }


def _joined(tables: Sequence[dict[str, Column]]) -> dict[str, Column]:
    """The rows of several tables with the same columns."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _rows_are_apart(shape: ContractionShape, target: Target) -> bool:
    """Whether the rows of any tile have sets of the first cache to themselves as they are."""
    most = np.array([min(shape.rows, target.vector_registers)], np.int64)
    return not target.machine.conflicts(shape.pitch_bytes, most).any()


def _rest_axes(shape: ContractionShape, ahead: Sequence[int]) -> list[dict[str, Column]]:
    """Columns that hardly depend on tiles and blocks."""
    walks = [(1, steps) for steps in steps_at_once(shape.walks)]
    walks += [(streams, 1) for streams in _STREAMS[1:] if shape.walks]
    tails = [(0,)] if shape.rows_are_known else [(0,), (1,)]
    return [
        _axis(("streams", "unroll"), walks),
        _axis(("prefetch",), [(parts,) for parts in ahead]),
        _axis(("all_tails",), tails),
    ]


def _sharing(shape: ContractionShape, spans: Sequence[int]) -> dict[str, Column]:
    """What threads share, all columns together; `spans` are numbers of column blocks."""
    ways = [(0, 1, count, 0, 1) for count in (0, *spans)]
    if shape.sharers > 1:
        for shares in (turns * shape.sharers for turns in _SHARES):
            ways += [(1, shares, 0, 0, parts) for parts in (1, *shape.parts)]
            ways += [(1, shares, count, 0, 1) for count in dict.fromkeys((*spans, shares))]
            ways.append((1, shares, 0, 1, 1))
    return _axis(("parallel", "shares", "spans", "share_tiles", "parts"), ways)


def _axis(names: Sequence[str], values: Sequence[tuple[int, ...]]) -> dict[str, Column]:
    """Columns that are decided together."""
    rows = np.array(values, np.int64)
    return {name: rows[:, place] for place, name in enumerate(names)}


def _can_follow_main(shape: ContractionShape, columns: dict[str, Column]) -> NDArray[np.bool_]:
    """Whether the recipe has steps for a combination of tiles, blocks, cuts and orders."""
    rows, order = columns["tile_rows"], columns["order"]
    cut, parts = columns["reduce_per_block"], columns["parts"]
    is_cut = cut < shape.reduce
    copies = columns["copies_left"] != 0
    keep: NDArray[np.bool_] = ~is_cut | (
        (rows > 1) & (order == LEFT_STAYS) & (columns["packs"] == 0) & (parts == 1) & ~copies
    )
    # The rows of a block are one box in memory if all tiles, and all blocks, are alike.
    alike = (shape.rows % rows == 0) & (shape.rows // rows % columns["row_tiles_per_block"] == 0)
    keep &= ~copies | ((rows > 1) & (parts == 1) & alike)
    if shape.may_keep_right:
        one_block = columns["row_tiles_per_block"] >= -(-shape.rows // rows)
        keep &= (order != RIGHT_STAYS) | (one_block & (rows > 1) & (parts == 1))
    if shape.result_block:  # a tile is copied block by block, and all tiles alike
        vectors = -(-shape.columns // columns["lanes"])
        keep &= (vectors % columns["tile_vectors"] == 0) | (parts > 1)
    # Panels of an instruction are packed ahead, and nothing else lies with them.
    plain = ~is_cut & ~copies & (columns["packs"] == 0)
    keep &= (columns["instruction"] == 0) | plain
    # A part is walked as a whole.
    columns["reduce_per_block"] = np.where(parts > 1, shape.reduce // parts, cut)
    return keep


_GATHERING = 8
"""Registers in which a vector of elements that lie far apart is put together."""


def _can_gather(
    shape: ContractionShape, target: Target, columns: dict[str, Column]
) -> NDArray[np.bool_]:
    """Whether registers are left for the columns of an operand that is not packed and lies across.

    Without them, single rows remain, or narrow tiles that are small anyway.
    """
    rows, vectors = columns["tile_rows"], columns["tile_vectors"]
    room = rows * vectors + (_GATHERING + 1) * vectors <= target.vector_registers
    room |= vectors * rows <= np.minimum(2, shape.rows)
    apart = (columns["packs"] == 0) & (shape.column_pitch_bytes > 0)
    keep: NDArray[np.bool_] = ~apart | room
    return keep


def _can_follow(shape: ContractionShape, columns: dict[str, Column]) -> NDArray[np.bool_]:
    """Whether the recipe has steps for a combination.

    Combinations are left out, too, of which a column would change nothing.
    """
    rows, order = columns["tile_rows"], columns["order"]
    parts, streams = columns["parts"], columns["streams"]
    is_cut = columns["reduce_per_block"] < shape.reduce
    tiles = -(-shape.rows // rows)
    blocks = -(-tiles // columns["row_tiles_per_block"])
    keep = _can_follow_main(shape, columns)
    plain = (order == LEFT_STAYS) & ~is_cut
    panels = -(-shape.columns // (columns["tile_vectors"] * columns["lanes"]))
    several_blocks = (blocks > 1) & (columns["spans"] <= panels)
    keep &= (columns["spans"] == 0) | (plain & several_blocks & (shape.batch == 1))
    keep &= (columns["all_tails"] == 0) | (rows <= _MOST_TAILS)
    several = tiles > 1 if shape.rows_are_known else np.False_
    keep &= (columns["share_tiles"] == 0) | (plain & several & (columns["packs"] == 0))
    fetches = _fetches(shape, columns) & (columns["share_tiles"] == 0)
    keep &= (columns["prefetch"] == 0) | fetches
    for number, instruction in enumerate(shape.instructions, 1):
        own = columns["instruction"] == number
        whole = (shape.walks[0] // parts) % instruction.steps == 0
        keep &= ~own | (whole & (streams == 1) & (columns["bias_in_panels"] == 0))
    # Parts are added up, with whatever follows, where no panel is at hand.
    keep &= (columns["bias_in_panels"] == 0) | (parts == 1)
    if shape.walks:
        length = shape.walks[0] // np.where(len(shape.walks) == 1, parts, 1)
        keep &= (streams == 1) | ((rows == 1) & (length % streams == 0) & (length > streams))
        if len(shape.walks) > 1:
            keep &= (streams == 1) | (parts == 1)
    return keep


def _fetches(shape: ContractionShape, columns: dict[str, Column]) -> NDArray[np.bool_]:
    """Whether something is used several times while what comes next can be fetched."""
    several = columns["tile_rows"] < shape.rows
    fetches: NDArray[np.bool_] = (columns["order"] == RIGHT_STAYS) | several
    return fetches if shape.right_is_constant else fetches & (columns["packs"] == 1)


def _cuts(shape: ContractionShape) -> tuple[int, ...]:
    """Lengths of a cut, all of the reduction first."""
    # A column alone, unless it is padded, has no loop of its own in tiles of partial sums.
    is_single = not shape.right_is_constant and (shape.line_columns or shape.columns) == 1
    if not shape.reduce_is_known or is_single:
        return (shape.reduce,)
    return lengths(shape.reduce, shape.reduce_step)
