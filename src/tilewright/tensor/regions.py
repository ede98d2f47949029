"""What blocks and programs touch: regions of a block from its body, writers, readers, sizes.

The regions are part of a block's signature, and everything outside relies on them alone. A leaf
block lists one point per distinct access; a block with loops inside lists boxes, exact where an
index only grows or falls with each loop, and never too small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.sweep import region_bounds
from tilewright.tensor.node import Node
from tilewright.tensor.visit import children, find, free_vars, holds, substitute, walk_stmts

__all__ = [
    "allocated",
    "block_regions",
    "blocks",
    "box_over",
    "outputs",
    "point",
    "reads_own_output",
    "readers",
    "sizes",
    "writers",
]

Loops = tuple[tuple[tir.Var, tir.Expr], ...]
ONE = tir.Const(1)
ZERO = tir.Const(0)


def point(buffer: tir.Buffer, indices: Sequence[tir.Expr]) -> tir.Region:
    """The region of one element, or of the elements of a vector."""
    pairs = zip(indices, buffer.shape, strict=False)  # `verify` reports a wrong number of indices
    if all(i.dtype.lanes == 1 for i in indices):
        return tir.Region(buffer, tuple([tir.Range(i, ONE) for i in indices]))
    return tir.Region(buffer, tuple([_along(i, size) for i, size in pairs]))


def _along(position: tir.Expr, size: tir.Expr) -> tir.Range:
    """What an index touches along one dimension; whole if it is a vector that does not count up."""
    if position.dtype.lanes == 1:
        return tir.Range(position, ONE)
    step = tir.int_value(position.stride) if type(position) is tir.Ramp else None
    if type(position) is not tir.Ramp or step is None or step < 0:
        return tir.Range(ZERO, size)
    return tir.Range(position.base, tir.Const((position.lanes - 1) * step + 1))


def block_regions(
    iters: tuple[tir.Iter, ...], body: tir.Stmt, init: tir.Stmt | None = None
) -> tuple[tuple[tir.Region, ...], tuple[tir.Region, ...]]:
    """(reads, writes) of a block, each region once, in order of appearance.

    What an accumulator reads of its own is not listed: the very element that it stores, or for a
    tile that is updated in place the very box.
    """
    found = _Touched({it.var: it.extent for it in iters})
    if init is not None:
        found.statement(init, ())
    found.statement(body, ())
    own = found.stores
    writes = dict.fromkeys(found.writes)
    reads = [region for region, access in found.reads if access not in own]
    return tuple(dict.fromkeys(r for r in reads if r not in writes)), tuple(writes)


class _Touched:
    """Collects the regions that a statement reads and writes, outside of its own allocations."""

    def __init__(self, outer: Mapping[tir.Var, tir.Expr]) -> None:
        self.outer = outer
        self.reads: list[tuple[tir.Region, object]] = []
        self.writes: list[tir.Region] = []
        self.stores: set[object] = set()  # (buffer, indices) of every plain store
        self.local: set[tir.Buffer] = set()

    def statement(self, stmt: tir.Stmt, loops: Loops) -> None:
        match stmt:
            case tir.Store():
                self.expressions((*stmt.indices, stmt.value), loops)
                self.stores.add((stmt.buffer, stmt.indices))
                if stmt.buffer not in self.local:
                    self.writes.append(self.box(stmt.buffer, stmt.indices, loops))
            case tir.Block():
                self.block(stmt, loops)
            case tir.For():
                self.expressions((stmt.extent,), loops)
                self.statement(stmt.body, (*loops, (stmt.var, stmt.extent)))
            case tir.Alloc():
                self.local.add(stmt.buffer)
                self.statement(stmt.body, loops)
            case _:
                self.expressions([c for c in children(stmt) if isinstance(c, tir.Expr)], loops)
                for child in children(stmt):
                    if isinstance(child, tir.Stmt):
                        self.statement(child, loops)

    def block(self, block: tir.Block, loops: Loops) -> None:
        self.expressions((*block.bindings, block.predicate), loops)
        at = {i.var: b for i, b in zip(block.iters, block.bindings, strict=True)}
        for region in block.reads:
            if region.buffer not in self.local:
                self.reads.append((box_over(substitute(region, at), loops, self.outer), None))
        for region in block.writes:
            if region.buffer not in self.local:
                self.writes.append(box_over(substitute(region, at), loops, self.outer))

    def expressions(self, parts: Sequence[tir.Expr], loops: Loops) -> None:
        for part in parts:
            for node in find(part, tir.Load):
                if node.buffer not in self.local:
                    region = self.box(node.buffer, node.indices, loops)
                    self.reads.append((region, (node.buffer, node.indices)))

    def box(self, buffer: tir.Buffer, indices: Sequence[tir.Expr], loops: Loops) -> tir.Region:
        """What an access sweeps; where memory that may change decides, a whole dimension."""
        region = box_over(point(buffer, indices), loops, self.outer)
        if not loops and not self.local:
            return region
        ranges = [
            tir.Range(ZERO, size) if holds(i, tir.Load) else span
            for i, span, size in zip(indices, region.ranges, buffer.shape, strict=False)
        ]
        return region.with_fields(ranges=tuple(ranges))


def box_over(
    region: tir.Region, loops: Loops, outer: Mapping[tir.Var, tir.Expr] | None = None
) -> tir.Region:
    """The box that `region` sweeps while `loops` (outermost first) run.

    `outer` has the extents of variables that stand still.
    """
    if not loops:
        return region
    ranges = tuple(
        [
            _swept(span, loops, outer or {}, size)
            for span, size in zip(region.ranges, region.buffer.shape, strict=True)
        ]
    )
    return region.with_fields(ranges=ranges)


def _swept(
    span: tir.Range, loops: Loops, outer: Mapping[tir.Var, tir.Expr], size: tir.Expr
) -> tir.Range:
    """One dimension of the box; linear indices are done at once, others by the analyzer."""
    start, extent = span.start, span.extent
    for var, length in reversed(loops):
        if var not in free_vars(start) and var not in free_vars(extent):
            continue
        factor = None if var in free_vars(extent) else _coefficient(start, var)
        if factor is None:
            return _bounded(span, loops, outer) or tir.Range(ZERO, size)
        start = _tidy(substitute(start, {var: ZERO if factor >= 0 else length - 1}))
        single = abs(factor) == 1 and tir.int_value(extent) == 1
        extent = length if single else _tidy(extent + (length - 1) * abs(factor))
    return tir.Range(start, extent)


def _bounded(span: tir.Range, loops: Loops, outer: Mapping[tir.Var, tir.Expr]) -> tir.Range | None:
    analyzer = Analyzer(outer)
    first, last = region_bounds((span.start, span.start + span.extent - 1), loops, analyzer)
    if first is None or last is None:
        return None
    end = last.start + last.extent
    return tir.Range(first.start, analyzer.simplify(end - first.start))


def _coefficient(expr: tir.Expr, var: tir.Var) -> int | None:
    """The factor of `var` in an expression that is linear in it; None if it is not."""
    if expr is var:
        return 1
    if var not in free_vars(expr):
        return 0
    match expr:
        case tir.Add(a=a, b=b) | tir.Sub(a=a, b=b):
            left, right = _coefficient(a, var), _coefficient(b, var)
            if left is None or right is None:
                return None
            return left + right if type(expr) is tir.Add else left - right
        case tir.Mul(a=a, b=b):
            for part, other in ((a, b), (b, a)):
                number, inner = tir.int_value(other), _coefficient(part, var)
                if number is not None and inner is not None:
                    return inner * number
    return None


def _tidy(expr: tir.Expr) -> tir.Expr:
    """Rebuild index arithmetic through the folding operators: `x * 4 + 0` becomes `x * 4`."""
    match expr:
        case tir.Add(a=a, b=b):
            a, b = _tidy(a), _tidy(b)
            inner = tir.int_value(b)
            if inner is not None and type(a) is tir.Add and tir.int_value(a.b) is not None:
                return a.a + (a.b + b)
            return a + b
        case tir.Sub(a=a, b=b):
            a, b = _tidy(a), _tidy(b)
            inner = tir.int_value(b)
            return a + (-inner) if inner is not None and type(a) is tir.Add else a - b
        case tir.Mul(a=a, b=b):
            return _tidy(a) * _tidy(b)
    return expr


def reads_own_output(block: tir.Block) -> bool:
    """Does the block read elements that it writes, without having initialised them?

    A body may begin with loops that give a value to every element that it writes.
    """
    if block.init is not None:
        return False
    waiting = {r.buffer for r in block.writes}
    body = block.body
    while type(body) is tir.Alloc:
        body = body.body
    for stmt in body.body if type(body) is tir.Seq else (body,):
        if any(load.buffer in waiting for load in find(stmt, tir.Load)):
            return True
        waiting -= _prepared(block, stmt)
    return False


def _prepared(block: tir.Block, stmt: tir.Stmt) -> set[tir.Buffer]:
    """The buffer to which loops over whole dimensions store all elements that the block writes."""
    loops: dict[tir.Expr, tir.Expr] = {}
    while type(stmt) is tir.For:
        loops[stmt.var] = stmt.extent
        stmt = stmt.body
    if type(stmt) is not tir.Store:
        return set()
    buffer, indices = stmt.buffer, stmt.indices
    swept = [i for i in indices if i in loops]
    if len(swept) != len(loops) or len(set(swept)) != len(swept):
        return set()
    for region in block.writes:
        if region.buffer is buffer:
            for place, span, size in zip(indices, region.ranges, buffer.shape, strict=True):
                whole = loops.get(place) == size
                if not whole and (place in loops or span != tir.Range(place, ONE)):
                    return set()
    return {buffer}


def blocks(node: Node) -> Iterator[tir.Block]:
    """The blocks of a program or statement in program order, without those inside other blocks."""
    if isinstance(node, tir.Block):
        yield node
    elif isinstance(node, (tir.Func, tir.Stmt)):
        inside = (node.body,) if isinstance(node, tir.Func) else children(node)
        for child in inside:
            if isinstance(child, tir.Stmt):
                yield from blocks(child)


def writers(func: tir.Func | tir.Stmt, buffer: tir.Buffer) -> tuple[tir.Block, ...]:
    """The outermost blocks that write `buffer`, in program order."""
    return tuple([b for b in blocks(func) if any(r.buffer is buffer for r in b.writes)])


def readers(func: tir.Func | tir.Stmt, buffer: tir.Buffer) -> tuple[tir.Block, ...]:
    """The outermost blocks that read `buffer` (other than their own accumulator), in order."""
    return tuple([b for b in blocks(func) if any(r.buffer is buffer for r in b.reads)])


def allocated(func: tir.Func) -> tuple[tir.Buffer, ...]:
    """All intermediate buffers, in program order."""
    return tuple([s.buffer for s in walk_stmts(func) if type(s) is tir.Alloc])


def outputs(func: tir.Func) -> tuple[tir.Buffer, ...]:
    """The parameters that are written, in call order."""
    written = {s.buffer for s in walk_stmts(func) if type(s) is tir.Store}
    return tuple([p for p in func.params if p in written])


def sizes(func: tir.Func) -> tuple[tir.Var, ...]:
    """The symbolic sizes in order of first appearance in the shapes of the parameters."""
    found: dict[tir.Var, None] = {}
    for param in func.params:
        for dim in param.shape:
            if type(dim) is not tir.Const:
                found.update(dict.fromkeys(find(dim, tir.Var)))
    return tuple(found)
