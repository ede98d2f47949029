"""Products that read each of their windows inside of one tile of the data, without a copy.

    B[i] = select(0 <= i - 1 < 56, X[i - 1], 0)                    i in range(58)
    Y[i] += B[i + r] * W[r]                                        X in tiles of 10 every 8
 →  Y[i] += X[i // 8, i % 8 + r] * W[r]

The border of a convolution is a stage of its own, which reads one element at a time, and so across
tiles. Where the border is stored with the data and tiles overlap as windows do, the stage is left
out: every window then lies in the tile that it begins in (`tensor/unfolded.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from tilewright.errors import ScheduleError
from tilewright.model.borders import padded
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, kind_of, loads_of
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.layout import LayoutStep, Pad, Reorder, Split, Unfold
from tilewright.tensor.stored import Layout, settled, stored_index, stored_shape
from tilewright.tensor.unfolded import window_in_tile
from tilewright.tensor.visit import walk_stmts

__all__ = ["with_windows_in_tiles"]


def with_windows_in_tiles(
    program: tir.Func, layouts: Mapping[str, Layout]
) -> tuple[tir.Func, dict[str, Layout]]:
    """The program without the borders that lie in tiles already, and the layouts that are left."""
    left = dict(layouts)
    written = {stmt.buffer.name for stmt in walk_stmts(program) if isinstance(stmt, tir.Store)}
    for name, layout in layouts.items():
        borders, rest = _leading(layout)
        if name not in written and borders and _is_inside(program, name, layout):
            made = padded(program, [(name, border) for border in borders], _without_copies(name))
            if _reads_in_tiles(made, name, rest, {border.dim for border in borders}):
                program, left[name] = made, rest
    return program, left


def _is_inside(program: tir.Func, name: str, layout: Layout) -> bool:
    """Whether a border is cut into tiles with what it is around, and cannot be put on last."""
    param = next(p for p in program.params if p.name == name)
    steps, _ = settled(param.shape, layout)
    return any(isinstance(step, Pad) for step in steps)


def _leading(layout: Layout) -> tuple[list[Pad], Layout]:
    """The borders that a layout begins with, as far as they have zeros; and the other steps."""
    found: list[Pad] = []
    for k, step in enumerate(layout):
        if not isinstance(step, Pad):
            return found, layout[k:]
        if step.lead or step.tail:
            found.append(step)
    return found, ()


def _without_copies(name: str) -> Callable[[Schedule], None]:
    """Steps by which blocks that only copy a parameter are computed where they are read.

    A copy that cannot be, like one into a result, stays.
    """

    def change(schedule: Schedule) -> None:
        for block in [b for b in schedule.blocks() if _is_copy_of(name, schedule.block(b).body)]:
            with suppress(ScheduleError):
                schedule.compute_inline(block)

    return change


def _is_copy_of(name: str, body: tir.Stmt) -> bool:
    value = body.value if isinstance(body, tir.Store) else None
    return isinstance(value, tir.Load) and value.buffer.name == name


def _reads_in_tiles(
    program: tir.Func, name: str, layout: Layout, bordered: Collection[int]
) -> bool:
    """Whether products alone read a parameter, and whole windows of it in tiles."""
    blocks = [stmt for stmt in walk_stmts(program) if isinstance(stmt, tir.Block)]
    readers = [b for b in blocks if any(read.buffer.name == name for read in b.reads)]
    return all(
        kind_of(block) is Kind.CONTRACTION and _is_in_tiles(block, load, layout, bordered)
        for block in readers
        for load in loads_of(block)
        if load.buffer.name == name
    )


def _is_in_tiles(
    block: tir.Block, load: tir.Load, layout: Layout, bordered: Collection[int]
) -> bool:
    """Whether the dimensions with borders, and all in tiles that overlap, are read tile by tile."""
    analyzer, at, shape = _ranges(block), load.indices, load.buffer.shape
    origins = list(range(len(at)))
    for step in layout:
        cut = _as_tiles(step, shape)
        if cut is not None:
            has_to = isinstance(step, Unfold) or origins[cut.dim] in bordered
            if has_to and window_in_tile(at[cut.dim], cut, analyzer) is None:
                return False
            origins.insert(cut.dim, origins[cut.dim])
        elif isinstance(step, Reorder):
            origins = [origins[d] for d in step.order]
        else:  # dimensions that become one are no tiles
            return False
        at, shape = stored_index(at, (step,), analyzer), stored_shape(shape, (step,))
    return True


def _ranges(block: tir.Block) -> Analyzer:
    return Analyzer({it.var: it.extent for it in block.iters})


def _as_tiles(step: LayoutStep, shape: Sequence[tir.Expr]) -> Unfold | None:
    """A step that cuts a dimension, as tiles; parts of one whose size is unknown are none."""
    if isinstance(step, Split) and (extent := tir.int_value(shape[step.dim])) is not None:
        return Unfold(step.dim, step.factor, step.factor, extent)
    return step if isinstance(step, Unfold) else None
