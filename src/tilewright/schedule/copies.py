"""Making nests: one loop for each iterator of a block, over its whole domain or a part of it.

The loops of a nest are called after the block and the iterator: those of block `A_read` with the
iterators `v0`, `v1` are `A_read_0`, `A_read_1`. A trace can rely on these names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.schedule.handles import Names, fresh
from tilewright.tensor import ir as tir
from tilewright.tensor.build import make_block

__all__ = ["box_nest", "iters_over", "loop_names", "names_without", "nest"]

Part = tuple[tir.Expr, tir.Expr]  # start and extent of an iterator's values


def names_without(names: Names, stmt: tir.Stmt) -> Names:
    """The names of a program from which a nest of loops is about to be removed."""
    taken = set(names.taken)
    while isinstance(stmt, tir.For):
        taken.discard(stmt.var.name)
        stmt = stmt.body
    return Names(names.func, taken=taken)


def loop_names(names: Names, block: str, iters: Sequence[tir.Iter]) -> list[str]:
    """Fresh names for the loops of a nest that holds only this block."""
    made: list[str] = []
    for it in iters:
        hint = it.var.name.removeprefix("v") or it.var.name
        made.append(fresh(names, f"{block}_{hint}", *made))
    return made


def nest(
    names: Names, block: tir.Block, parts: Sequence[Part] | None = None
) -> tuple[tir.Stmt, tuple[str, ...]]:
    """Fresh loops around `block`, bound to `start + loop` each; and the names of the loops.

    Without `parts`, the loops cover the whole domain. The predicate of the block is kept as it is.
    """
    made = loop_names(names, block.name, block.iters)
    loops = [tir.Var(name) for name in made]
    if parts is None:
        parts = [(tir.Const(0), it.extent) for it in block.iters]
    bindings = [start + loop for (start, _), loop in zip(parts, loops, strict=True)]
    result: tir.Stmt = block.with_fields(bindings=tuple(bindings))
    for loop, (_, extent) in zip(reversed(loops), reversed(parts), strict=True):
        result = tir.For(loop, extent, result)
    return result, tuple(made)


def iters_over(shape: Sequence[tir.Expr]) -> tuple[tir.Iter, ...]:
    """Spatial iterators `v0`, `v1`, … over a shape."""
    return tuple([tir.Iter(tir.Var(f"v{d}"), extent) for d, extent in enumerate(shape)])


def box_nest(
    names: Names,
    block: str,
    iters: tuple[tir.Iter, ...],
    body: Callable[[tuple[tir.Expr, ...]], tir.Stmt],
    notes: tuple[tuple[str, object], ...] = (),
) -> tir.Stmt:
    """A new block over the whole domain of `iters`; `body` gets the iterators' variables."""
    where = tuple([it.var for it in iters])
    made = make_block(block, iters, where, body(where))
    return nest(names, made.with_fields(notes=notes) if notes else made)[0]
