"""Which products and windows keep their rows, whatever layout their result has.

*Products* are computed row by row: their columns are then as wide as registers want them, and only
what follows them knows of the layout. They read their data in any order, best along the sum. If
both data and result lie along the rows, vectors may run there instead.

*Windows* walk over their data as over their result, so that both should be stored alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, contraction, kind_of, loads_of
from tilewright.tensor.relaid.flow import Flow, Layouts
from tilewright.tensor.stored import innermost, is_bijective, is_long, is_turned

__all__ = ["keeps_rows", "runs_along_rows"]

# Rows shorter than this fill few vectors: what lies along them is turned instead.
_LONG_ROWS = 24

# The same for lines that windows slide along, which need not fill a vector to be better.
_LONG_LINES = 5


def keeps_rows(flow: Flow, buffer: tir.Buffer, layouts: Layouts) -> bool:
    """Whether a buffer is what a block computes that had better not follow the layout."""
    layout, rank = layouts.get(buffer, ()), len(buffer.shape)
    for block in flow.writers(buffer):
        kind = kind_of(block)
        if kind is Kind.CONTRACTION and not runs_along_rows(block, layouts):
            return True
        if kind is Kind.WINDOWED and is_turned(rank, layout):
            data = _data_of(flow, block)
            alike = any(is_turned(len(d.shape), layouts.get(d, ())) for d in data)
            return not alike or not is_long(buffer.shape, layout, _LONG_LINES)
    return False


def _data_of(flow: Flow, window: tir.Block) -> Iterator[tir.Buffer]:
    """What a window slides over, and what that is made of: a block may put a border around it."""
    source = loads_of(window)[0].buffer
    yield source
    for maker in flow.writers(source):
        yield from (read.buffer for read in maker.reads)


def runs_along_rows(block: tir.Block, layouts: Layouts) -> bool:
    """Whether neighbours in the stored result are neighbours among the stored data of a product."""
    roles, store = contraction(block), block.body
    assert isinstance(store, tir.Store)
    layout, rank = layouts.get(store.buffer, ()), len(store.indices)
    if roles is None or not is_turned(rank, layout):
        return False
    own = layouts.get(roles.left.buffer, ())
    if not is_bijective(own) or not is_long(store.buffer.shape, layout, _LONG_ROWS):
        return False
    there = roles.left.indices[innermost(len(roles.left.indices), own)]
    return store.indices[innermost(rank, layout)] is there
