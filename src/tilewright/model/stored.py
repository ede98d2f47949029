"""The program of a kernel whose parameters are values with layouts.

`tensor/relaid/` writes its loops over stored dimensions. Borders are put on behind that, by a
step of a schedule: it adds the blocks that write zeros around a result, and takes the tests out of
what reads them.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.dtypes import u8
from tilewright.schedule.dataflow import FILL
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import Pad
from tilewright.tensor.regions import sizes
from tilewright.tensor.relaid import relaid, with_buffers, with_packing
from tilewright.tensor.stored import Layout, settled
from tilewright.tensor.visit import walk_stmts

__all__ = ["stored_program"]


def stored_program(program: tir.Func, layouts: Mapping[str, Layout]) -> tir.Func:
    """The program with the parameters of these names stored by layouts."""
    assert layouts.keys() <= {param.name for param in program.params}
    steps: dict[tir.Buffer, Layout] = {}
    borders: list[tuple[str, Pad]] = []
    for param in program.params:
        if param.name in layouts:
            steps[param], around = settled(param.shape, layouts[param.name])
            borders += [(param.name, border) for border in around]
    bordered = {name for name, _ in borders}
    program = relaid(program, steps, [p for p in steps if p.name in bordered])
    if not borders:
        return program
    for param in program.params:
        if param.name in bordered:
            program = _written_last(program, param.name)
    # Sizes that no parameter tells, or none with a border around it, are told by others meanwhile.
    told = [tir.Buffer(f"told_{k}", (size,), u8) for k, size in enumerate(sizes(program))]
    schedule = Schedule(program.with_fields(params=(*program.params, *told)))
    with schedule.together():
        for name, border in borders:
            schedule.layout_pad(name, border.dim, border.lead, border.tail)
    made = schedule.func
    params = made.params[: len(program.params)]
    return _as_stored(made.with_fields(params=params, body=_zeros_first(made.body)))


def _written_last(program: tir.Func, name: str) -> tir.Func:
    """The program with a stage that only copies in front of a result: sums know of no border."""
    param = next(p for p in program.params if p.name == name)
    folds = any(
        any(it.kind is tir.IterKind.REDUCE for it in block.iters)
        for block in walk_stmts(program)
        if isinstance(block, tir.Block) and any(w.buffer is param for w in block.writes)
    )
    return with_packing(program, param, ()) if folds else program


def _zeros_first(stmt: tir.Stmt) -> tir.Stmt:
    """Zeros are written first, so that nothing stands between what runs together."""
    if isinstance(stmt, tir.Alloc):
        return stmt.with_fields(body=_zeros_first(stmt.body))
    if isinstance(stmt, tir.Seq):
        return tir.Seq(tuple(sorted(stmt.body, key=lambda part: not _is_zero(part))))
    return stmt


def _is_zero(nest: tir.Stmt) -> bool:
    blocks = [stmt for stmt in walk_stmts(nest) if isinstance(stmt, tir.Block)]
    return all(FILL in block.notes for block in blocks)


def _as_stored(program: tir.Func) -> tir.Func:
    """The program whose parameters are what is in memory, and nothing else."""
    plain = {p: p.with_fields(layout=()) for p in program.params if p.layout}
    return with_buffers(program, plain)
