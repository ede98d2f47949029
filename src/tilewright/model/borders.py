"""Borders as steps of a schedule: they add the blocks that write zeros around a result, and take
the tests out of what reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.dtypes import u8
from tilewright.schedule.dataflow import FILL
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import Pad
from tilewright.tensor.regions import sizes
from tilewright.tensor.relaid import with_buffers
from tilewright.tensor.visit import walk_stmts

__all__ = ["padded", "zeros_first"]


def padded(
    program: tir.Func,
    borders: Sequence[tuple[str, Pad]],
    then: Callable[[Schedule], None] = lambda _: None,
) -> tir.Func:
    """The program whose parameters of these names have borders, after some more steps.

    Its parameters are what is in memory, and nothing else.
    """
    # Sizes that no parameter tells, or none with a border around it, are told by others meanwhile.
    told = [tir.Buffer(f"told_{k}", (size,), u8) for k, size in enumerate(sizes(program))]
    schedule = Schedule(program.with_fields(params=(*program.params, *told)))
    with schedule.together():
        for name, border in borders:
            schedule.layout_pad(name, border.dim, border.lead, border.tail)
        then(schedule)
    made = schedule.func
    return _as_stored(made.with_fields(params=made.params[: len(program.params)]))


def zeros_first(program: tir.Func) -> tir.Func:
    """Zeros are written first, so that nothing stands between what runs together."""
    return program.with_fields(body=_zeros_first(program.body))


def _zeros_first(stmt: tir.Stmt) -> tir.Stmt:
    if isinstance(stmt, tir.Alloc):
        return stmt.with_fields(body=_zeros_first(stmt.body))
    if isinstance(stmt, tir.Seq):
        return tir.Seq(tuple(sorted(stmt.body, key=lambda part: not _is_zero(part))))
    return stmt


def _is_zero(nest: tir.Stmt) -> bool:
    blocks = [stmt for stmt in walk_stmts(nest) if isinstance(stmt, tir.Block)]
    return all(FILL in block.notes for block in blocks)


def _as_stored(program: tir.Func) -> tir.Func:
    plain = {p: p.with_fields(layout=()) for p in program.params if p.layout}
    return with_buffers(program, plain)
