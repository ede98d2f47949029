"""How buffers inside of a program are stored, so that they suit what reads them.

Layouts spread from the results backwards: a buffer gets the one that its first reader with a wish
would like, unless the block that computes it keeps its rows (`rows`). A product that does goes
through them tile by tile where its result is stored in tiles.
"""

from __future__ import annotations

from collections.abc import Collection

from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, is_in_order, kind_of
from tilewright.tensor.layout import LayoutStep, Reorder, Split
from tilewright.tensor.relaid.flow import Flow, Layouts
from tilewright.tensor.relaid.rows import keeps_rows
from tilewright.tensor.stored import Layout, is_turned, misfit
from tilewright.tensor.visit import walk

__all__ = ["spread"]


def spread(
    func: tir.Func, layouts: Layouts, bordered: Collection[tir.Buffer] = ()
) -> dict[tir.Buffer, Layout]:
    """The layouts of parameters, and those that buffers in between had better have."""
    found = dict(layouts)
    flow = Flow.of(func)
    for block in reversed(flow.blocks):
        if not isinstance(block.body, tir.Store) or block.body.buffer in func.params:
            continue
        buffer = block.body.buffer
        readers = [reader for reader in flow.readers(buffer) if reader is not block]
        wishes = (_wish(reader, block, buffer, found, bordered) for reader in readers)
        chosen = next((layout for layout in wishes if layout), ())
        if chosen and keeps_rows(flow, buffer, {**found, buffer: chosen}):
            chosen = _tiles_of_rows(block, chosen)
        if chosen:
            found[buffer] = chosen
    return found


def _tiles_of_rows(product: tir.Block, layout: Layout) -> Layout:
    """The tiles of a layout in their order, with columns whole and innermost; () if it has none."""
    plain = all(isinstance(step, Split | Reorder) for step in layout)
    if not plain or kind_of(product) is not Kind.CONTRACTION:
        return ()
    assert isinstance(product.body, tir.Store)
    own = [str(d) for d in range(len(product.body.indices))]
    column, dims, found = own[-1], list(own), list[LayoutStep]()
    for step in layout:
        match step:
            case Reorder(order=order):
                dims = [dims[d] for d in order]
            case Split(dim=dim, factor=factor):
                name = dims[dim]
                parts = [name, name] if name == column else [f"{name}_0", f"{name}_1"]
                dims[dim : dim + 1] = parts
                if name != column:
                    place = own.index(name)
                    own[place : place + 1] = parts
                    found.append(Split(place, factor))
    order = tuple(own.index(name) for name in (*(n for n in dims if n != column), column))
    return (*found, Reorder(order)) if found else ()


def _wish(
    reader: tir.Block,
    maker: tir.Block,
    buffer: tir.Buffer,
    layouts: Layouts,
    bordered: Collection[tir.Buffer],
) -> Layout:
    """How a reader would like a buffer to be stored; () if it does not mind.

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
        plain = all(is_in_order(n.indices, reader.iters) for n in loads if n.buffer is buffer)
        if reader.body.indices != order:
            return ()
        if plain and reader.body.buffer.shape == buffer.shape:
            return own
        if not isinstance(reader.body.value, tir.Select):
            return ()
    if kind is Kind.CONTRACTION:
        sources = [r.buffer for r in maker.reads if r.buffer in layouts and r.buffer in bordered]
        own = layouts[sources[0]] if len(sources) == 1 else ()
        own = () if is_turned(len(buffer.shape), own) else own
    elif kind not in (Kind.WINDOWED, Kind.ELEMENTWISE):
        own = ()
    fits = all(isinstance(step, Reorder | Split) for step in own)
    return own if fits and own and misfit(buffer.shape, own) is None else ()
