"""Where blocks are: a flat view of one nest, made once and shared by all checks.

Inside a block, its iterators are all that is left of the loops around, so they appear here as loops
of the blocks inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.tensor import ir as tir
from tilewright.tensor.regions import point, reads_own_output
from tilewright.tensor.validate.memo import Memo
from tilewright.tensor.visit import children, free_vars, substitute, walk_stmts

__all__ = ["Content", "Place", "conjuncts", "places_of", "top_statements"]

Pair = tuple[tir.Iter, tir.Expr]


@dataclass(slots=True, eq=False)
class Content:
    """What a block is by itself, wherever it stands and whatever its iterators are bound to."""

    written: frozenset[tir.Buffer]
    updates: bool
    """Whether the body loads from a buffer that it writes, without a start value."""
    loops: tuple[tir.For, ...] = ()
    """The iterators, as loops around the blocks in the body."""
    inner: tuple[Place, ...] = ()
    """The blocks inside this one."""
    stores: tuple[Place, ...] = ()
    """Stores of the body that are in no block, as blocks without iterators."""


@dataclass(slots=True, eq=False)
class Place:
    """A block with the statements around it, outermost first."""

    block: tir.Block
    around: tuple[tir.Stmt, ...]
    loops: tuple[tir.For, ...]
    number: int
    content: Content
    inherited: frozenset[tir.Buffer] = frozenset()
    """Buffers that the block around this one has prepared."""

    spatial: list[Pair] = field(init=False)
    reduce: list[Pair] = field(init=False)
    branches: list[tir.Stmt] = field(init=False)
    """What stands for the branches of conditions that the block is in, see `_walk`."""

    def __post_init__(self) -> None:
        spatial: list[Pair] = []
        reduce: list[Pair] = []
        self.spatial, self.reduce = spatial, reduce
        self.branches = [s for s in self.around if type(s) is tir.Seq and not s.body]
        for pair in zip(self.block.iters, self.block.bindings, strict=True):
            (reduce if pair[0].kind is tir.IterKind.REDUCE else spatial).append(pair)

    @property
    def inner(self) -> tuple[Place, ...]:
        """The blocks inside this one."""
        return self.content.inner

    def extents(self) -> dict[tir.Var, tir.Expr]:
        """The extent of each loop around."""
        return {loop.var: loop.extent for loop in self.loops}

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

    def is_conditional(self, other: Place) -> bool:
        """Whether a condition decides if this block runs, and not if the other one does."""
        return any(all(s is not t for t in other.branches) for s in self.branches)

    def driven_by(self, pairs: Sequence[Pair]) -> set[tir.Var]:
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


def places_of(stmt: tir.Stmt, memo: Memo) -> tuple[Place, ...]:
    """The outermost blocks of a statement, in program order."""
    blocks = [part for part in _walk(stmt, (), ()) if isinstance(part[0], tir.Block)]
    return tuple(
        [
            Place(block, around, loops, number, content_of(block, memo))  # type: ignore[arg-type]
            for number, (block, around, loops) in enumerate(blocks)
        ]
    )


def content_of(block: tir.Block, memo: Memo) -> Content:
    """What a block is by itself."""
    about = (block.iters, block.body, block.init, block.writes)
    return memo.once("content", about, lambda: _content(block, memo))


def _content(block: tir.Block, memo: Memo) -> Content:
    written, updates = frozenset([r.buffer for r in block.writes]), reads_own_output(block)
    if type(block.body) is tir.Store:
        return Content(written, updates)
    loops = tuple([tir.For(i.var, i.extent, block.body) for i in block.iters])
    inner: list[Place] = []
    prepared: frozenset[tir.Buffer] = frozenset()
    if block.init is not None:
        # It runs for one value of the reduce iterators only.
        kinds = zip(block.iters, loops, strict=True)
        spatial = tuple([p for it, p in kinds if it.kind is tir.IterKind.SPATIAL])
        for leaf, around, own in _walk(block.init, spatial, spatial):
            if isinstance(leaf, tir.Block):
                inner.append(Place(leaf, around, own, len(inner), content_of(leaf, memo)))
        prepared = frozenset([s.buffer for s in walk_stmts(block.init) if type(s) is tir.Store])
    stores: list[Place] = []
    for leaf, around, own in _walk(block.body, loops, loops):
        if isinstance(leaf, tir.Block):
            content = content_of(leaf, memo)
            inner.append(Place(leaf, around, own, len(inner), content, prepared))
        else:
            region = point(leaf.buffer, leaf.indices)
            alone = tir.Block("store", (), (), (), (region,), leaf)
            content = Content(frozenset((leaf.buffer,)), updates=False)
            stores.append(Place(alone, around, own, len(stores), content))
    return Content(written, updates, loops, tuple(inner), tuple(stores))


Around = tuple[tir.Stmt, ...]


def _walk(
    stmt: tir.Stmt, around: Around, loops: tuple[tir.For, ...]
) -> list[tuple[tir.Block | tir.Store, Around, tuple[tir.For, ...]]]:
    """Each block, and each store that is in none, with what is around it, in program order.

    The branches of a condition are told apart by empty statements of their own.
    """
    chain = list(around)
    nest = list(loops)
    while type(stmt) is tir.For:
        chain.append(stmt)
        nest.append(stmt)
        stmt = stmt.body
    if isinstance(stmt, tir.Block | tir.Store):
        return [(stmt, tuple(chain), tuple(nest))]
    around, loops = (*chain, stmt), tuple(nest)
    found: list[tuple[tir.Block | tir.Store, Around, tuple[tir.For, ...]]] = []
    for child in children(stmt):
        if isinstance(child, tir.Stmt):
            branch = (*around, tir.Seq(())) if type(stmt) is tir.If else around
            found += _walk(child, branch, loops)
    return found


def conjuncts(cond: tir.Expr) -> list[tir.Expr]:
    """The parts of a predicate, all of which hold; none for `True`."""
    if cond is tir.TRUE:
        return []
    if type(cond) is tir.BitAnd:
        return conjuncts(cond.a) + conjuncts(cond.b)
    return [] if cond == tir.TRUE else [cond]
