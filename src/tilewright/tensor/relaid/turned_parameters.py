"""Which parameters had better be turned as a whole, by a stage in front of a reader or at the end.

    X → copy → products over the copy            data that a block would read across (`copied_for`)
    products → plain result → Y                  a result that is computed in rows (`needs_packing`)

A block that follows its result's layout needs no such stage; `rows` knows those that do not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, contraction, kind_of, loads_of
from tilewright.tensor.layout import Fuse, Split
from tilewright.tensor.relaid.flow import Flow, Layouts
from tilewright.tensor.relaid.rows import keeps_rows, runs_along_rows
from tilewright.tensor.stored import innermost, is_bijective, is_turned

__all__ = ["copied_for", "needs_packing"]

# Columns that use what is turned for them, at least.
_MANY_COLUMNS = 128


def needs_packing(func: tir.Func, buffer: tir.Buffer, layouts: Layouts) -> bool:
    """Whether a result is computed as it is, and then stored by a stage of its own."""
    layout = layouts[buffer]
    if not is_bijective(layout):
        return True
    flow = Flow.of(func)
    source = flow.source(buffer)
    if source is buffer:
        return keeps_rows(flow, buffer, layouts)
    turned = is_turned(len(buffer.shape), layout)
    return turned and keeps_rows(flow, source, {**layouts, source: layout})


def copied_for(
    func: tir.Func, layouts: Layouts, bordered: Collection[tir.Buffer] = ()
) -> Iterator[tuple[tir.Block, tir.Load]]:
    """What blocks read of parameters and had better read of a copy, stored as they want it."""
    flow = Flow.of(func)
    for block in flow.blocks:
        if not isinstance(block.body, tir.Store):
            continue
        for number, load in enumerate(dict.fromkeys(loads_of(block))):
            if load.buffer not in func.params or not is_bijective(layouts.get(load.buffer, ())):
                continue
            first = number == 0 and len(load.indices) == len(block.body.indices)
            match kind_of(block):
                case Kind.WINDOWED:
                    wanted = first and _walks_otherwise(flow, block.body, load, layouts)
                case Kind.CONTRACTION:
                    wanted = _wants_turned(flow, block, load, layouts)
                case Kind.ELEMENTWISE:
                    around = load.buffer not in bordered
                    wanted = around and _turns_with_border(flow, block.body, load, layouts)
                case _:
                    wanted = False
            if wanted:
                yield block, load


def _turns_with_border(flow: Flow, store: tir.Store, load: tir.Load, layouts: Layouts) -> bool:
    """Whether a block puts a border around data for a fold that wants them turned.

    To turn them and to ask where they end is slower at once than one after the other.
    """
    made = store.buffer
    if made in flow.params or not isinstance(store.value, tir.Select):
        return False
    rank, own = len(made.shape), layouts.get(load.buffer, ())
    if len(load.indices) != rank:
        return False
    for reader in flow.readers(made):
        if isinstance(reader.body, tir.Store):
            kind = kind_of(reader)
            wanted = flow.result_layout(reader.body.buffer, layouts)
            if kind is Kind.CONTRACTION and is_turned(rank, own):
                return True
            if kind is Kind.WINDOWED and innermost(rank, own) != innermost(rank, wanted):
                return True
    return False


def _walks_otherwise(flow: Flow, store: tir.Store, load: tir.Load, layouts: Layouts) -> bool:
    """Whether vectors along the result of a window would find their data scattered."""
    rank, own = len(load.indices), layouts.get(load.buffer, ())
    wanted = flow.result_layout(store.buffer, layouts)
    if innermost(rank, own) != innermost(rank, wanted):
        return True
    return own != wanted and any(isinstance(step, Split | Fuse) for step in own)


def _wants_turned(flow: Flow, block: tir.Block, load: tir.Load, layouts: Layouts) -> bool:
    """Whether the data of a product are better turned than read across."""
    roles, store = contraction(block), block.body
    assert isinstance(store, tir.Store)
    if roles is None or load != roles.left:
        return False
    if not is_turned(len(load.indices), layouts.get(load.buffer, ())):
        return False
    layout = flow.result_layout(store.buffer, layouts)
    if runs_along_rows(block, {**layouts, store.buffer: layout}):
        return False
    return (tir.int_value(block.iters[roles.columns[-1]].extent) or 0) >= _MANY_COLUMNS
