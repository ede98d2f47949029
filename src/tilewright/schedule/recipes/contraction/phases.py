"""Results in phases: an epilogue that puts them beside each other is cut to run phase by phase.

    Y[n, h, o] = f(Z[h % 2, n, h // 2, o])    →    Y[n, u * 2 + p, o] = f(Z[p, n, u, o])

A transposed convolution computes its result in phases. With an iterator for each part of `h`, the
epilogue reads every element of Z once, in plain order, as any other epilogue does.
"""

from __future__ import annotations

from tilewright.schedule.recipes.context import Context, iter_loop
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import loads_of

__all__ = ["align_phases", "phases_of"]

_ZERO = tir.Const(0)  # the index of a single element, which has lost its iterator


def phases_of(reader: tir.Block, buffer: tir.Buffer) -> dict[tir.Var, int]:
    """By how much the iterators of an epilogue are divided where it reads `buffer`.

    Empty unless it reads each element once: every index is an iterator, its quotient, or its
    remainder by a number that divides its extent.
    """
    loads = {load.indices for load in loads_of(reader) if load.buffer is buffer}
    if len(loads) != 1:
        return {}
    found: dict[tir.Var, int] = {}
    (indices,) = loads
    wanted: list[tir.Expr] = []
    for it in reader.iters:
        size, extent = _divisor(it.var, indices), tir.int_value(it.extent)
        if size is None:
            wanted.append(_ZERO if extent == 1 and it.var not in indices else it.var)
        elif extent is not None and extent % size == 0:
            found[it.var] = size
            wanted += [it.var // size, it.var % size]
    same = len(wanted) == len(indices) and all(w in indices for w in wanted)
    return found if same else {}


def _divisor(var: tir.Var, indices: tuple[tir.Expr, ...]) -> int | None:
    for index in indices:
        if isinstance(index, tir.FloorDiv) and index.a is var:
            return tir.int_value(index.b)
    return None


def align_phases(context: Context, block: str, epilogue: str) -> None:
    """Give the epilogue an iterator for each dimension of the result, in the result's order."""
    s = context.schedule
    buffer = s.block(block).writes[0].buffer
    phases = phases_of(s.block(epilogue), buffer)
    for var, size in phases.items():
        s.split_iter(epilogue, var.name, size)
    if not phases:
        return
    node = s.block(epilogue)
    (indices,) = {load.indices for load in loads_of(node) if load.buffer is buffer}
    places = {it.var: position for position, it in enumerate(node.iters)}
    single = iter([places[it.var] for it in node.iters if it.var not in indices])
    order = [places[i] if isinstance(i, tir.Var) else next(single) for i in indices]
    if order != sorted(order):
        s.reorder(*(iter_loop(context, epilogue, position) for position in order))
