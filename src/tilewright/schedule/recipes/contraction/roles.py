"""Who is who in a contraction: its operands, its loops by role, and how they lie in memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.schedule.recipes.context import Context, iter_loop
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Contraction, contraction
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.visit import free_vars, substitute

__all__ = [
    "Loops",
    "Operands",
    "bytes_of",
    "column_dimension",
    "density_of",
    "loops_of",
    "names_of",
    "panel_density_of",
    "pitch_of",
    "reduce_step_of",
    "rows_of",
    "vector_iterator",
    "walk_of",
]


_ANALYZER = Analyzer()


@dataclass(frozen=True)
class Loops:
    """Names of the loops by role, before tiling."""

    batch: tuple[str, ...]
    outer_rows: tuple[str, ...]
    row: str | None
    outer_columns: tuple[str, ...]
    column: str
    reduce: tuple[str, ...]


@dataclass(frozen=True)
class Operands:
    """Names of the operands' buffers, and of the block that copies the right one into panels.

    `is_sized`: all dimensions of the right operand are known, and so where its next panel is.
    """

    left: str
    right: str
    packed_by: str | None
    is_constant: bool
    is_sized: bool

    def to_fetch(self, *, right_stays: bool) -> tuple[str, ...]:
        """Which of them are worth fetching ahead: streams whose next part is known and dense."""
        if self.is_constant:
            return (self.left,) if right_stays else (self.right,)
        if right_stays:
            return (self.left, self.right)
        return (self.right,) if self.packed_by is not None and self.is_sized else ()


def vector_iterator(roles: Contraction) -> int:
    """The column iterator along which the result is contiguous."""
    last = roles.block.writes[0].ranges[-1].start
    for position in roles.columns:
        if roles.block.iters[position].var == last:
            return position
    return roles.columns[-1]


def column_dimension(roles: Contraction) -> int | None:
    """Which dimension of the right operand is the vector iterator by itself."""
    var = roles.block.iters[vector_iterator(roles)].var
    found = [d for d, index in enumerate(roles.right.indices) if index == var]
    return found[0] if len(found) == 1 else None


def rows_of(roles: Contraction) -> int:
    """Rows that use one panel of the right operand; a symbolic number counts as many."""
    extents = [tir.int_value(roles.block.iters[p].extent) for p in roles.rows]
    return prod(128 if e is None else e for e in extents)


def reduce_step_of(context: Context, roles: Contraction) -> int:
    """Steps of the loops inside of the outermost one of the reduction, which alone is cut."""
    loops = [iter_loop(context, roles.block.name, p) for p in roles.reduce]
    order = context.schedule.loops(roles.block.name)
    _, *inner = sorted(loops, key=order.index) or [""]
    sizes = [tir.int_value(context.schedule.loop(name).extent) for name in inner]
    return prod(size or 1 for size in sizes)


def pitch_of(roles: Contraction) -> int:
    """Bytes from one row of the left operand to the next, at its beginning; 0 if not known."""
    sizes = [tir.int_value(size) for size in roles.left.buffer.shape]
    if not roles.rows or None in sizes:
        return 0
    row = roles.block.iters[roles.rows[-1]].var
    places = []
    for number in (0, 1):
        place = 0
        for index, size in zip(roles.left.indices, sizes, strict=True):
            others = dict.fromkeys(free_vars(index), tir.Const(0))
            value = substitute(index, others | {row: tir.Const(number)})
            at = tir.int_value(_ANALYZER.simplify(value))
            if at is None:
                return 0
            place = place * (size or 1) + at
        places.append(place)
    return abs(places[1] - places[0]) * roles.left.buffer.dtype.size_bytes


def density_of(roles: Contraction) -> float:
    """How many elements the left operand has for each row and step of the reduction."""
    own = {v for index in roles.left.indices for v in free_vars(index)}
    sizes = [tir.int_value(size) for size in roles.left.buffer.shape]
    points = [tir.int_value(it.extent) for it in roles.block.iters if it.var in own]
    if None in sizes or None in points:
        return 1.0
    return min(1.0, prod(s or 1 for s in sizes) / max(1, prod(p or 1 for p in points)))


def panel_density_of(roles: Contraction) -> float:
    """How many elements of the right operand a panel has for each column and step."""
    iters = [roles.block.iters[p] for p in (*roles.reduce, vector_iterator(roles))]
    extents = {it.var: it.extent for it in iters}
    known = [tir.int_value(extent) for extent in extents.values()]
    if None in known:
        return 1.0
    analyzer, elements = Analyzer(extents), 1
    for index in roles.right.indices:
        others = {v: tir.Const(0) for v in free_vars(index) if v not in extents}
        found = analyzer.bounds(substitute(index, others))
        if found.lo is None or found.hi is None:
            return 1.0
        elements *= found.hi - found.lo + 1
    return min(1.0, elements / max(1, prod(n or 1 for n in known)))


def bytes_of(operand: tir.Load) -> int:
    """Of all of an operand; 0 if a size is not known."""
    sizes = [tir.int_value(size) for size in operand.buffer.shape]
    return prod(size or 0 for size in sizes) * operand.buffer.dtype.size_bytes


def loops_of(context: Context, block: str) -> Loops:
    """The loops of a contraction by role."""
    roles = contraction(context.schedule.block(block))
    assert roles is not None
    column = vector_iterator(roles)

    def names(positions: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(iter_loop(context, block, p) for p in positions)

    rows = names(roles.rows)
    order = context.schedule.loops(block)  # the walk may go another way than the iterators
    return Loops(
        batch=names(roles.batch),
        outer_rows=rows[:-1],
        row=rows[-1] if rows else None,
        outer_columns=names(tuple(p for p in roles.columns if p != column)),
        column=iter_loop(context, block, column),
        reduce=tuple(sorted(names(roles.reduce), key=order.index)),
    )


def walk_of(context: Context, roles: Contraction) -> list[tir.Var]:
    """The iterators of the reduction in the order of their loops, the slowest first."""
    block, order = roles.block.name, context.schedule.loops(roles.block.name)
    walked = sorted(roles.reduce, key=lambda p: order.index(iter_loop(context, block, p)))
    return [roles.block.iters[p].var for p in walked]


def names_of(made: object) -> list[str]:
    """What a step made, as a list."""
    return [str(name) for name in made] if isinstance(made, tuple) else [str(made)]
