"""Where blocks are: a flat view of one nest, made once and shared by all checks.

Inside a block, its iterators are all that is left of the loops around, so they appear here as loops
of the blocks inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tilewright.tensor import ir as tir
from tilewright.tensor.regions import reads_own_output
from tilewright.tensor.visit import children, free_vars, substitute

__all__ = ["Place", "conjuncts", "places_of", "top_statements"]


@dataclass(slots=True, eq=False)
class Place:
    """A block with the statements around it, outermost first."""

    block: tir.Block
    around: tuple[tir.Stmt, ...]
    loops: tuple[tir.For, ...]
    number: int
    inherited: frozenset[tir.Buffer] = frozenset()
    """Buffers that the block around this one has prepared."""

    spatial: list[tuple[tir.Iter, tir.Expr]] = field(init=False)
    reduce: list[tuple[tir.Iter, tir.Expr]] = field(init=False)
    updates: bool = field(init=False)
    """Whether the block reads elements that it writes and that something else must prepare."""
    inner: tuple[Place, ...] = field(init=False)
    """The blocks inside this one."""
    inner_loops: tuple[tir.For, ...] = field(init=False)
    """The iterators, as loops around the blocks in the body."""

    def __post_init__(self) -> None:
        pairs = list(zip(self.block.iters, self.block.bindings, strict=True))
        self.spatial = [p for p in pairs if p[0].kind is tir.IterKind.SPATIAL]
        self.reduce = [p for p in pairs if p[0].kind is tir.IterKind.REDUCE]
        self.updates = reads_own_output(self.block)
        self.inner_loops, self.inner = (), ()
        if type(self.block.body) is not tir.Store:
            body = self.block.body
            self.inner_loops = tuple([tir.For(i.var, i.extent, body) for i in self.block.iters])
            self.inner = tuple(_inside(self.block, self.inner_loops))

    def extents(self) -> dict[tir.Var, tir.Expr]:
        """The extent of each loop around."""
        return {loop.var: loop.extent for loop in self.loops}

    def reads(self) -> list[tir.Region]:
        """What the block needs from others, its own accumulator included if it has no init."""
        found = list(self.block.reads)
        return found + list(self.block.writes) if self.updates else found

    def at(self, region: tir.Region) -> tir.Region:
        """A region of the block's signature in terms of the loops around it."""
        values = {it.var: b for it, b in zip(self.block.iters, self.block.bindings, strict=True)}
        return substitute(region, values)

    def common(self, other: Place) -> int:
        """How many loops the two blocks share."""
        count = 0
        for mine, theirs in zip(self.around, other.around, strict=False):
            if mine is not theirs:
                break
            count += type(mine) is tir.For
        return count

    def driven_by(self, pairs: Sequence[tuple[tir.Iter, tir.Expr]]) -> set[tir.Var]:
        """The loops that bindings use."""
        found: set[tir.Var] = set()
        for _, binding in pairs:
            found |= free_vars(binding)
        return found


def top_statements(func: tir.Func) -> list[tir.Stmt]:
    """The nests of a program in order, without the allocations around them."""
    found: list[tir.Stmt] = []
    stack = [func.body]
    while stack:
        stmt = stack.pop()
        if type(stmt) is tir.Alloc:
            stack.append(stmt.body)
        elif type(stmt) is tir.Seq:
            stack.extend(reversed(stmt.body))
        else:
            found.append(stmt)
    return found


def places_of(stmt: tir.Stmt) -> tuple[Place, ...]:
    """The outermost blocks of a statement, in program order."""
    return tuple(
        Place(block, around, loops, number)
        for number, (block, around, loops) in enumerate(_walk(stmt, (), ()))
    )


def _inside(block: tir.Block, loops: tuple[tir.For, ...]) -> Iterator[Place]:
    """The blocks in the init and the body of a block; its iterators are loops there."""
    prepared: frozenset[tir.Buffer] = frozenset()
    number = 0
    if block.init is not None:
        prepared = frozenset(r.buffer for r in block.writes)
        # It runs for one value of the reduce iterators only.
        kinds = zip(block.iters, loops, strict=True)
        spatial = tuple(p for it, p in kinds if it.kind is tir.IterKind.SPATIAL)
        for inner, around, own in _walk(block.init, spatial, spatial):
            yield Place(inner, around, own, number)
            number += 1
    for inner, around, own in _walk(block.body, loops, loops):
        yield Place(inner, around, own, number, prepared)
        number += 1


def _walk(
    stmt: tir.Stmt, around: tuple[tir.Stmt, ...], loops: tuple[tir.For, ...]
) -> Iterator[tuple[tir.Block, tuple[tir.Stmt, ...], tuple[tir.For, ...]]]:
    kind = type(stmt)
    if kind is tir.Block:
        yield stmt, around, loops  # type: ignore[misc]
    elif kind is tir.For:
        assert isinstance(stmt, tir.For)
        yield from _walk(stmt.body, (*around, stmt), (*loops, stmt))
    elif kind is not tir.Store:
        for child in children(stmt):
            if isinstance(child, tir.Stmt):
                yield from _walk(child, (*around, stmt), loops)


def conjuncts(cond: tir.Expr) -> list[tir.Expr]:
    """The parts of a predicate, all of which hold; none for `True`."""
    if type(cond) is tir.BitAnd:
        return conjuncts(cond.a) + conjuncts(cond.b)
    return [] if cond == tir.TRUE else [cond]
