"""How buffers inside of a program had better be stored, and what had better be turned as a whole.

*Products* are computed row by row: their columns are then as wide as registers want them, and only
what follows them knows of the layout. They read their data in any order, best along the sum. If
both data and result lie along the rows, vectors may run there instead.

*Windows* walk over their data as over their result, so that both should be stored alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, contraction, kind_of, loads_of
from tilewright.tensor.layout import Fuse, Reorder, Split, Unfold
from tilewright.tensor.stored import Layout, is_bijective, misfit
from tilewright.tensor.visit import walk, walk_stmts

__all__ = ["copied_for", "is_plain", "needs_packing", "spread"]

Layouts = Mapping[tir.Buffer, Layout]

# Rows shorter than this fill few vectors: what lies along them is turned instead.
_LONG_ROWS = 24

# The same for lines that windows slide along, which need not fill a vector to be better.
_LONG_LINES = 5

# Columns that use what is turned for them, at least.
_MANY_COLUMNS = 128


def needs_packing(func: tir.Func, buffer: tir.Buffer, layouts: Layouts) -> bool:
    """Whether a result is computed as it is, and then stored by a stage of its own."""
    layout = layouts[buffer]
    if not is_bijective(layout):
        return True
    source = _leads_to(func, buffer)
    if source is buffer:
        return _keeps_rows(func, buffer, layouts)
    return _is_turned(buffer, layout) and _keeps_rows(func, source, {**layouts, source: layout})


def copied_for(
    func: tir.Func, layouts: Layouts, bordered: Collection[tir.Buffer] = ()
) -> Iterator[tuple[tir.Block, tir.Load]]:
    """What blocks read of parameters and had better read of a copy, stored as they want it."""
    for block in _blocks(func):
        if not isinstance(block.body, tir.Store):
            continue
        for number, load in enumerate(dict.fromkeys(loads_of(block))):
            if load.buffer not in func.params or not is_bijective(layouts.get(load.buffer, ())):
                continue
            first = number == 0 and len(load.indices) == len(block.body.indices)
            match kind_of(block):
                case Kind.WINDOWED:
                    wanted = first and _walks_otherwise(func, block, load, layouts)
                case Kind.CONTRACTION:
                    wanted = _wants_turned(func, block, load, layouts)
                case Kind.ELEMENTWISE:
                    around = load.buffer not in bordered
                    wanted = around and _turns_with_border(func, block, load, layouts)
                case _:
                    wanted = False
            if wanted:
                yield block, load


def _turns_with_border(func: tir.Func, block: tir.Block, load: tir.Load, layouts: Layouts) -> bool:
    """Whether a block puts a border around data for a fold that wants them turned.

    To turn them and to ask where they end is slower at once than one after the other.
    """
    assert isinstance(block.body, tir.Store)
    made = block.body.buffer
    if made in func.params or not isinstance(block.body.value, tir.Select):
        return False
    rank, own = len(made.shape), layouts.get(load.buffer, ())
    if len(load.indices) != rank:
        return False
    for reader in _blocks(func):
        if any(r.buffer is made for r in reader.reads) and isinstance(reader.body, tir.Store):
            kind = kind_of(reader)
            wanted = _result_layout(func, reader.body.buffer, layouts)
            if kind is Kind.CONTRACTION and _is_turned(load.buffer, own):
                return True
            if kind is Kind.WINDOWED and _innermost(rank, own) != _innermost(rank, wanted):
                return True
    return False


def _walks_otherwise(func: tir.Func, block: tir.Block, load: tir.Load, layouts: Layouts) -> bool:
    """Whether vectors along the result of a window would find their data scattered."""
    assert isinstance(block.body, tir.Store)
    rank, own = len(load.indices), layouts.get(load.buffer, ())
    wanted = _result_layout(func, block.body.buffer, layouts)
    if _innermost(rank, own) != _innermost(rank, wanted):
        return True
    return own != wanted and any(isinstance(step, Split | Fuse) for step in own)


def _wants_turned(func: tir.Func, block: tir.Block, load: tir.Load, layouts: Layouts) -> bool:
    """Whether the data of a product are better turned than read across."""
    roles, store = contraction(block), block.body
    assert isinstance(store, tir.Store)
    if roles is None or load != roles.left:
        return False
    if not _is_turned(load.buffer, layouts.get(load.buffer, ())):
        return False
    layout = _result_layout(func, store.buffer, layouts)
    if _runs_along_rows(block, {**layouts, store.buffer: layout}):
        return False
    return (tir.int_value(block.iters[roles.columns[-1]].extent) or 0) >= _MANY_COLUMNS


def _result_layout(func: tir.Func, buffer: tir.Buffer, layouts: Layouts) -> Layout:
    """The layout of the parameter that a buffer becomes element by element."""
    found = [p for p in layouts if _leads_to(func, p) is buffer]
    return layouts[found[0]] if found else ()


def spread(
    func: tir.Func, layouts: Layouts, bordered: Collection[tir.Buffer] = ()
) -> dict[tir.Buffer, Layout]:
    """The layouts of parameters, and those that buffers in between had better have."""
    found = dict(layouts)
    blocks = _blocks(func)
    for block in reversed(blocks):
        if not isinstance(block.body, tir.Store) or block.body.buffer in func.params:
            continue
        buffer = block.body.buffer
        readers = [b for b in blocks if b is not block and any(r.buffer is buffer for r in b.reads)]
        wishes = (_wish(reader, block, buffer, found, bordered) for reader in readers)
        chosen = next((layout for layout in wishes if layout), ())
        if chosen and not _keeps_rows(func, buffer, {**found, buffer: chosen}):
            found[buffer] = chosen
    return found


def _wish(
    reader: tir.Block,
    maker: tir.Block,
    buffer: tir.Buffer,
    layouts: Layouts,
    bordered: Collection[tir.Buffer],
) -> Layout:
    """How a reader would like a buffer to be stored.

    Element by element, as its result is; so does what puts a border around it. Data that have their
    border already are not copied for a product: they stay as they are.
    """
    if not isinstance(reader.body, tir.Store):
        return ()
    own = layouts.get(reader.body.buffer, ())
    kind = kind_of(reader)
    if kind is Kind.ELEMENTWISE:
        order = tuple(it.var for it in reader.iters)
        loads = [part for part in walk(reader.body) if isinstance(part, tir.Load)]
        plain = all(is_plain(n.indices, reader.iters) for n in loads if n.buffer is buffer)
        if reader.body.indices != order:
            return ()
        if plain and reader.body.buffer.shape == buffer.shape:
            return own
        if not isinstance(reader.body.value, tir.Select):
            return ()
    if kind is Kind.CONTRACTION:
        sources = [r.buffer for r in maker.reads if r.buffer in layouts and r.buffer in bordered]
        own = layouts[sources[0]] if len(sources) == 1 else ()
        own = () if _is_turned(buffer, own) else own
    elif kind not in (Kind.WINDOWED, Kind.ELEMENTWISE):
        own = ()
    fits = all(isinstance(step, Reorder | Split) for step in own)
    return own if fits and own and misfit(buffer.shape, own) is None else ()


def _keeps_rows(func: tir.Func, buffer: tir.Buffer, layouts: Layouts) -> bool:
    """Whether a buffer is what a block computes that had better not follow the layout."""
    for block in _blocks(func):
        if not any(w.buffer is buffer for w in block.writes):
            continue
        kind = kind_of(block)
        if kind is Kind.CONTRACTION and not _runs_along_rows(block, layouts):
            return True
        layout = layouts.get(buffer, ())
        if kind is Kind.WINDOWED and _is_turned(buffer, layout):
            alike = any(_is_turned(data, layouts.get(data, ())) for data in _data_of(func, block))
            return not alike or not _is_long(buffer, layout, _LONG_LINES)
    return False


def _data_of(func: tir.Func, window: tir.Block) -> list[tir.Buffer]:
    """The parameters that a window slides over, perhaps with a border that a block puts on."""
    source = loads_of(window)[0].buffer
    makers = [b for b in _blocks(func) if any(w.buffer is source for w in b.writes)]
    return [source, *(read.buffer for maker in makers for read in maker.reads)]


def _runs_along_rows(block: tir.Block, layouts: Layouts) -> bool:
    """Whether neighbours in the stored result are neighbours among the stored data of a product."""
    roles, store = contraction(block), block.body
    assert isinstance(store, tir.Store)
    layout = layouts.get(store.buffer, ())
    if roles is None or not _is_turned(store.buffer, layout) or not _is_long(store.buffer, layout):
        return False
    own = layouts.get(roles.left.buffer, ())
    here = store.indices[_innermost(len(store.indices), layout)]
    there = roles.left.indices[_innermost(len(roles.left.indices), own)]
    return is_bijective(own) and here is there


def _leads_to(func: tir.Func, buffer: tir.Buffer) -> tir.Buffer:
    """What a buffer is made of element by element, over all stages; itself if there is nothing."""
    for block in _blocks(func):
        if isinstance(block.body, tir.Store) and block.body.buffer is buffer:
            loads = {n.buffer: n for n in walk(block.body) if isinstance(n, tir.Load)}
            for source, load in loads.items():
                same = source.shape == buffer.shape and is_plain(load.indices, block.iters)
                if same and source not in func.params:
                    return _leads_to(func, source)
    return buffer


def _is_turned(buffer: tir.Buffer, layout: Layout) -> bool:
    """Whether the last dimension does not stay innermost."""
    return _innermost(len(buffer.shape), layout) != len(buffer.shape) - 1


def _is_long(buffer: tir.Buffer, layout: Layout, least: int = _LONG_ROWS) -> bool:
    extent = tir.int_value(buffer.shape[_innermost(len(buffer.shape), layout)])
    return extent is None or extent >= least


def _innermost(rank: int, layout: Layout) -> int:
    """The dimension whose neighbours are neighbours in memory."""
    origins = list(range(rank))
    for step in layout:
        match step:
            case Reorder(order=order):
                origins = [origins[d] for d in order]
            case Split(dim=d) | Unfold(dim=d):
                origins.insert(d, origins[d])
            case Fuse(dim=d, sizes=sizes):
                origins[d : d + len(sizes)] = [origins[d + len(sizes) - 1]]
    return origins[-1] if origins else -1


def is_plain(indices: Sequence[tir.Expr], iters: Sequence[tir.Iter]) -> bool:
    """Whether an access is by the iterators in order; a single element may be counted by none."""
    return len(indices) == len(iters) and all(
        at is it.var or (tir.int_value(it.extent) == 1 and tir.int_value(at) == 0)
        for at, it in zip(indices, iters, strict=True)
    )


def _blocks(func: tir.Func) -> list[tir.Block]:
    return [stmt for stmt in walk_stmts(func) if isinstance(stmt, tir.Block)]
