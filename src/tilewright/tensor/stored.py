"""Layouts of whole values: the stored shape, what fits it, what lies innermost, indices both ways.

A layout is a tuple of steps (`layout.py`) from the shape that a program means to the one that is in
memory. `settled` brings the borders of a layout to its end wherever they can wait: a border that is
put on last is written and read without a test.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.layout import Fuse, LayoutStep, Pad, Reorder, Split, Unfold
from tilewright.tensor.printer import print_node
from tilewright.tensor.unfolded import window_in_tile

__all__ = [
    "Layout",
    "innermost",
    "is_bijective",
    "is_long",
    "is_turned",
    "logical_index",
    "misfit",
    "settled",
    "stored_index",
    "stored_shape",
]

Layout = tuple[LayoutStep, ...]
Exprs = tuple[tir.Expr, ...]


def stored_shape(shape: Sequence[tir.Expr], layout: Sequence[LayoutStep]) -> Exprs:
    """The dimensions in memory, in canonical form."""
    dims: tuple[object, ...] = tuple(shape)
    for step in layout:
        dims = step.shape(dims)
    return tuple(_tidy(tir.as_index(d)) for d in dims)  # type: ignore[arg-type]


def stored_index(
    indices: Sequence[tir.Expr], layout: Sequence[LayoutStep], analyzer: Analyzer | None = None
) -> Exprs:
    """Where an element is found in memory; not simplified.

    Of the copies in tiles that overlap it is the one in the tile of the whole window, if ranges of
    variables are given and prove that there is one.
    """
    at: tuple[object, ...] = tuple(indices)
    for step in layout:
        whole = _window(at, step, analyzer)
        at = step.index(at) if whole is None else whole
    return tuple(tir.as_index(i) for i in at)  # type: ignore[arg-type]


def _window(
    at: tuple[object, ...], step: LayoutStep, analyzer: Analyzer | None
) -> tuple[object, ...] | None:
    if analyzer is None or not isinstance(step, Unfold):
        return None
    found = window_in_tile(tir.as_index(at[step.dim]), step, analyzer)  # type: ignore[arg-type]
    return None if found is None else (*at[: step.dim], *found, *at[step.dim + 1 :])


def is_bijective(layout: Sequence[LayoutStep]) -> bool:
    """Whether memory holds every element once, and nothing else."""
    return all(isinstance(step, Split | Reorder | Fuse) for step in layout)


def misfit(shape: Sequence[tir.Expr], layout: Sequence[LayoutStep]) -> str | None:
    """Why a layout cannot be one of a value of this shape; None if it can."""
    dims = tuple(shape)
    for step in layout:
        reason = _misfit(dims, step)
        if reason is not None:
            return f"{step}: {reason}"
        dims = stored_shape(dims, (step,))
    return None


def _misfit(shape: Exprs, step: LayoutStep) -> str | None:
    rank = len(shape)
    match step:
        case Reorder(order=order):
            wrong = sorted(order) != list(range(rank))
            return f"not an order of {rank} dimensions" if wrong else None
        case Split(dim=dim) | Fuse(dim=dim) | Pad(dim=dim) | Unfold(dim=dim):
            count = len(step.sizes) if isinstance(step, Fuse) else 1
            if not 0 <= dim <= rank - count:
                return f"there is no dimension {dim + count - 1}"
        case _:
            return "a value cannot be stored in another one"
    return _misfit_of_sizes(shape, step)


def _misfit_of_sizes(shape: Exprs, step: LayoutStep) -> str | None:
    match step:
        case Split(dim=dim, factor=factor):
            if factor < 1 or Analyzer().divisor(shape[dim]) % factor:
                return f"{factor} does not divide {print_node(shape[dim])}"
        case Fuse(dim=dim, sizes=sizes):
            if len(sizes) < 2:
                return "fewer than two dimensions"
            for size, own in zip(sizes, shape[dim:], strict=False):
                if _tidy(tir.as_index(size) - own) != tir.Const(0):
                    wanted = print_node(tir.as_index(size))
                    return f"a dimension has {print_node(own)} elements, not {wanted}"
        case Pad(lead=lead, tail=tail):
            if min(lead, tail) < 0:
                return "a border has no fewer than 0 elements"
        case Unfold(dim=dim, tile=tile, stride=stride, extent=extent):
            if tir.int_value(shape[dim]) != extent:
                return f"a dimension has {print_node(shape[dim])} elements, not {extent}"
            if not 0 < stride <= tile <= extent:
                return f"tiles of {tile} every {stride} do not fit {extent} elements"
    return None


def innermost(rank: int, layout: Sequence[LayoutStep]) -> int:
    """The dimension whose neighbours are neighbours in memory; -1 if there are no dimensions."""
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


def is_turned(rank: int, layout: Sequence[LayoutStep]) -> bool:
    """Whether the last dimension does not stay innermost."""
    return innermost(rank, layout) != rank - 1


def is_long(shape: Sequence[tir.Expr], layout: Sequence[LayoutStep], least: int) -> bool:
    """Whether the innermost dimension has at least so many elements; an unknown size has."""
    extent = tir.int_value(shape[innermost(len(shape), layout)])
    return extent is None or extent >= least


def settled(
    shape: Sequence[tir.Expr], layout: Sequence[LayoutStep]
) -> tuple[Layout, tuple[Pad, ...]]:
    """The layout as steps without borders, and the borders behind them; borders that a later step
    depends on stay among the steps.
    """
    dims = tuple(shape)  # of what is stored so far, without the borders that wait
    done: list[LayoutStep] = []
    waiting: dict[int, tuple[int, int]] = {}

    def put(step: LayoutStep) -> None:
        nonlocal dims
        done.append(step)
        dims = stored_shape(dims, (step,))

    def release(*places: int) -> None:
        for d in places:
            if d in waiting:
                put(Pad(d, *waiting.pop(d)))

    for step in layout:
        match step:
            case Pad(dim=d, lead=lead, tail=tail):
                before, after = waiting.get(d, (0, 0))
                waiting[d] = (before + lead, after + tail)
            case Reorder(order=order):
                put(step)
                waiting = {order.index(d): border for d, border in waiting.items()}
            case Split(dim=d, factor=factor):
                border = waiting.pop(d, None)
                if border is not None and not _is_split_by(factor, dims[d], *border):
                    put(Pad(d, *border))
                    border = None
                put(step)
                waiting = {e + (e > d): b for e, b in waiting.items()}
                if border is not None:
                    waiting[d] = (border[0] // factor, border[1] // factor)
            case Fuse(dim=d, sizes=sizes):
                release(*range(d, d + len(sizes)))
                put(step)
                waiting = {e - (len(sizes) - 1) * (e > d): b for e, b in waiting.items()}
            case Unfold(dim=d):
                release(d)
                put(step)
                waiting = {e + (e > d): b for e, b in waiting.items()}
            case _:
                raise AssertionError(f"{step} is no layout of a value")
    borders = tuple(Pad(d, *border) for d, border in sorted(waiting.items()) if any(border))
    return tuple(done), borders


def _is_split_by(factor: int, size: tir.Expr, lead: int, tail: int) -> bool:
    """Whether elements and borders are whole blocks."""
    return lead % factor == tail % factor == Analyzer().divisor(size) % factor == 0


def logical_index(
    shape: Sequence[tir.Expr], layout: Sequence[LayoutStep], stored: Sequence[tir.Expr]
) -> tuple[Exprs, tir.Expr | None]:
    """Which element a place in memory holds, and when it holds one (None: always).

    The index is one of the value also where the place holds none.
    """
    shapes = [tuple(shape)]
    for step in layout:
        shapes.append(stored_shape(shapes[-1], (step,)))
    at = tuple(stored)
    inside: tir.Expr | None = None
    for step, before in zip(reversed(layout), reversed(shapes[:-1]), strict=True):
        at, own = _before(step, before, at)
        if own is not None:
            inside = own if inside is None else inside & own
    return at, inside


def _before(step: LayoutStep, shape: Exprs, at: Exprs) -> tuple[Exprs, tir.Expr | None]:
    match step:
        case Reorder():
            return tuple(step.inverse().index(at)), None
        case Split(dim=d, factor=factor):
            return (*at[:d], at[d] * factor + at[d + 1], *at[d + 2 :]), None
        case Fuse(dim=d, sizes=sizes):
            return (*at[:d], *_digits(at[d], shape[d : d + len(sizes)]), *at[d + 1 :]), None
        case Pad(dim=d, lead=lead, tail=tail):
            return _within(at, d, at[d] - lead, shape[d], low=lead > 0, high=tail > 0)
        case Unfold(dim=d, tile=tile, stride=stride, extent=extent):
            place = at[d] * stride + at[d + 1]
            beyond = (step.tiles - 1) * stride + tile > extent
            whole = (*at[: d + 1], *at[d + 2 :])
            return _within(whole, d, place, shape[d], low=False, high=beyond)
    raise AssertionError(f"no way back from {step}")


def _within(
    at: Exprs, d: int, place: tir.Expr, size: tir.Expr, *, low: bool, high: bool
) -> tuple[Exprs, tir.Expr | None]:
    """An index that may be outside, held inside; and when it is inside."""
    inside: tir.Expr | None = None
    held = place
    if high:
        inside, held = place < size, tir.minimum(held, size - 1)
    if low or (high and tir.int_value(size) is None):  # it may be empty
        held = tir.maximum(held, 0)
    if low:
        inside = place >= 0 if inside is None else (place >= 0) & inside
    return (*at[:d], held, *at[d + 1 :]), inside


def _digits(number: tir.Expr, sizes: Exprs) -> Exprs:
    """A number as digits, the last running fastest."""
    found: list[tir.Expr] = []
    for size in reversed(sizes[1:]):
        found.append(number % size)
        number = number // size
    return (number, *reversed(found))


def _tidy(expr: tir.Expr) -> tir.Expr:
    return expr if isinstance(expr, tir.Const | tir.Var) else Analyzer().simplify(expr)
