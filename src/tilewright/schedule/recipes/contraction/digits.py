"""Dimensions in blocks: several iterators that are digits of one index become one again.

    Y[n, o_0, h, o_1] = f(Z[n, h, o_0 * 8 + o_1])    →    Y[n, o // 8, h, o % 8] = f(Z[n, h, o])

A product is computed as if its result were stored row by row: its columns are then as wide as
registers want them, whatever the blocks are. What follows it writes the blocks. A sum over channels
that come in blocks runs block by block; constants are stored in the same blocks.
"""

from __future__ import annotations

from math import gcd, prod

from tilewright.schedule.recipes.context import Context, iter_loop
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import loads_of
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.terms import terms
from tilewright.tensor.visit import free_vars, walk

__all__ = [
    "block_width",
    "column_loop",
    "digits_of",
    "join_digits",
    "offset_of",
    "result_block",
    "result_digits",
    "split_constants",
]


def digits_of(index: tir.Expr, extents: dict[tir.Var, tir.Expr]) -> tuple[tir.Var, ...] | None:
    """The iterators whose digits an index consists of, the slowest first; None if it does not."""
    if isinstance(index, tir.Var):
        return (index,) if index in extents else None
    found: dict[int, tir.Var] = {}
    for factor, part in terms(index):
        if not isinstance(part, tir.Var) or part not in extents or factor in found:
            return None
        found[factor] = part
    expected, order = 1, []
    for factor, var in sorted(found.items()):
        extent = tir.int_value(extents[var])
        if factor != expected:
            return None
        order.append(var)
        if extent is None:
            break
        expected *= extent
    return tuple(reversed(order)) if len(order) == len(found) else None


def result_digits(reader: tir.Block, buffer: tir.Buffer) -> list[tuple[tir.Var, ...]] | None:
    """For each dimension of a buffer, the iterators by which a block reads it; None if it does not
    read every element once. A single element may have lost its iterator.
    """
    extents = {it.var: it.extent for it in reader.iters}
    places = {load.indices for load in loads_of(reader) if load.buffer is buffer}
    if len(places) != 1:
        return None
    (indices,) = places
    single = [v for v, e in extents.items() if tir.int_value(e) == 1 and v not in indices]
    found: list[tuple[tir.Var, ...]] = []
    for index, size in zip(indices, buffer.shape, strict=True):
        digits = digits_of(index, extents)
        if tir.int_value(index) == 0 and tir.int_value(size) == 1 and single:
            digits = (single.pop(0),)
        if digits is None:
            return None
        found.append(digits)
    used = [var for digits in found for var in digits]
    return found if len(used) == len(set(used)) == len(extents) else None


def join_digits(context: Context, block: str, epilogue: str) -> None:
    """Let the epilogue run through the result of a product in its order, with one iterator each."""
    s = context.schedule
    node, buffer = s.block(epilogue), s.block(block).writes[0].buffer
    found = result_digits(node, buffer)
    order = [var for digits in found or () for var in digits]
    if found is None or order == [it.var for it in node.iters]:
        return
    positions = {it.var: p for p, it in enumerate(node.iters)}
    loops = [iter_loop(context, epilogue, positions[var]) for var in order]
    if list(s.loops(epilogue)) != loops:
        s.reorder(*loops)
    for digits in found:
        if len(digits) > 1:
            s.fuse_iters(epilogue, [var.name for var in digits])


def split_constants(context: Context, node: tir.Block) -> bool:
    """Store the dimensions of constants in the blocks in which a block runs; whether any is."""
    extents = {it.var: it.extent for it in node.iters}
    changed = False
    for load in loads_of(node):
        name, shift = load.buffer.name, 0
        for dimension, index in enumerate(load.indices if name in context.constants else ()):
            digits = digits_of(index, extents) or ()
            sizes = [tir.int_value(extents[var]) or 1 for var in digits]
            whole = tir.int_value(load.buffer.shape[dimension]) or 0
            for place in range(1, len(digits)):
                factor = prod(sizes[place:])
                if whole % factor:
                    break
                context.schedule.layout_split(name, dim=dimension + shift, factor=factor)
                shift, changed = shift + 1, True
    return changed


def block_width(node: tir.Block, column: tir.Expr) -> int:
    """How many elements along an iterator lie side by side everywhere; 0 for all of them.

    Digits of it that follow each other in memory are no blocks: together they are the iterator.
    """
    simplify = Analyzer({it.var: it.extent for it in node.iters}).simplify
    width = 0
    for access in walk(node.body):
        if isinstance(access, tir.Load | tir.Store):
            for part in walk(simplify(offset_of(access))):
                if isinstance(part, tir.FloorMod | tir.FloorDiv) and part.a is column:
                    width = gcd(width, tir.int_value(part.b) or 1)
    return width


def result_block(context: Context, block: str, epilogue: str | None) -> int:
    """The width of the blocks of columns in which what follows a product stores it; 0 for none."""
    if epilogue is None:
        return 0
    s = context.schedule
    node, buffer = s.block(epilogue), s.block(block).writes[0].buffer
    columns = {load.indices[-1] for load in loads_of(node) if load.buffer is buffer}
    return max((block_width(node, column) for column in columns), default=0)


def offset_of(access: tir.Load | tir.Store) -> tir.Expr:
    """Where in its buffer an element is, in memory."""
    place: tir.Expr = tir.Const(0)
    for index, size in zip(access.indices, access.buffer.shape, strict=True):
        place = place * size + index
    return place


def column_loop(
    context: Context, block: str, copy: str, loops: list[str]
) -> tuple[str, int] | None:
    """The loop of an epilogue along the columns of a product, and the width of its blocks."""
    s = context.schedule
    node, buffer = s.block(copy), s.block(block).writes[0].buffer
    column = next(load.indices[-1] for load in loads_of(node) if load.buffer is buffer)
    for it, binding in zip(node.iters, node.bindings, strict=True):
        if it.var is column:
            moving = {var.name for var in free_vars(binding)}
            found = [loop for loop in loops if loop in moving]
            return (found[-1], block_width(node, column)) if found else None
    return None
