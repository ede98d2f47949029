"""The program of a kernel whose parameters are values with layouts.

`tensor/relaid/` writes its loops over stored dimensions. Borders are put on behind that
(`borders`), but those that lie inside of tiles before (`windows_in_tiles`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.model.borders import padded, zeros_first
from tilewright.model.windows_in_tiles import with_windows_in_tiles
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import Pad
from tilewright.tensor.relaid import relaid, with_packing
from tilewright.tensor.stored import Layout, settled
from tilewright.tensor.visit import walk_stmts

__all__ = ["stored_program"]


def stored_program(program: tir.Func, layouts: Mapping[str, Layout]) -> tir.Func:
    """The program with the parameters of these names stored by layouts."""
    assert layouts.keys() <= {param.name for param in program.params}
    program, layouts = with_windows_in_tiles(program, layouts)
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
    return zeros_first(padded(program, borders))


def _written_last(program: tir.Func, name: str) -> tir.Func:
    """The program with a stage that only copies in front of a result: sums know of no border."""
    param = next(p for p in program.params if p.name == name)
    folds = any(
        any(it.kind is tir.IterKind.REDUCE for it in block.iters)
        for block in walk_stmts(program)
        if isinstance(block, tir.Block) and any(w.buffer is param for w in block.writes)
    )
    return with_packing(program, param, ()) if folds else program
