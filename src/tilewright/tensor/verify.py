"""Is a program well formed? Scopes, types, ranks, block isolation, regions: cheap and syntactic.

Whether a schedule keeps the program's meaning (bindings, coverage, races) is the question of
`validate.py`. A program has three levels: *schedulable* (nests of loops with blocks as leaves),
*loops* (anything between two lowering passes) and *lowered* (flat buffers, explicit vectors).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final

from tilewright.dtypes import index
from tilewright.errors import Code
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.layout import logical_shape
from tilewright.tensor.regions import block_regions, point, sizes
from tilewright.tensor.verify_expr import ONE_INDEX, V003, V004, V006, ExprChecker
from tilewright.tensor.visit import walk, walk_stmts

__all__ = ["Level", "verify"]

V005 = Code("V005", "the buffer `{buffer}` is declared twice")
V012 = Code("V012", "the value stored to `{buffer}` has another type")
V014 = Code("V014", "block `{block}` needs one binding of the index type for each iterator")
V015 = Code("V015", "the variable and the extent of loop `{loop}` must be of the index type")
V016 = Code("V016", "block `{block}` reads {found}, which its `reads` do not cover")
V017 = Code("V017", "block `{block}` writes {found}, which its `writes` do not cover")
V018 = Code("V018", "the init of block `{block}` does not prepare what its body updates")
V019 = Code("V019", "an extent or dimension is negative")
V020 = Code("V020", "a sequence is nested in another one, or has a single statement")
V024 = Code("V024", "{found} appears in a program that is not lowered")
V026 = Code("V026", "{found} is left in a lowered program")
V027 = Code("V027", "`{buffer}` is not flat in a lowered program")
V028 = Code("V028", "`{buffer}` cannot live in registers")
V029 = Code("V029", "the size `{size}` is not a whole dimension of any parameter")
V033 = Code("V033", "a barrier stands inside a parallel loop")
V034 = Code("V034", "a dimension of `{buffer}` is not of the index type")
V035 = Code("V035", "{found} stands outside of all blocks")
V036 = Code(
    "V036", "block `{block}` stores to elements that its reduce iterator `{iterator}` selects"
)
V037 = Code("V037", "two parameters have the name `{buffer}`")

ONCE = "name it once; another array needs a buffer of its own"
NOT_NEGATIVE = "give a size of zero or more"
EARLIER = "resume from an earlier stage: a lowering pass removes it"
BIND = "bind each iterator to a whole number that the loops around give"


class Level(enum.Enum):
    """How far a program has come on the path."""

    SCHEDULABLE = "schedulable"
    LOOPS = "loops"
    LOWERED = "lowered"


# What only lowered programs may contain, and what none of them may.
_LATE: Final = (tir.Let, tir.Ramp, tir.Prefix, tir.Broadcast, tir.Reduce)
_EARLY: Final = (tir.TileStart, tir.TileSize)
_LATE_LOOPS: Final = (tir.LoopKind.SERIAL, tir.LoopKind.PARALLEL)


def verify(func: tir.Func, level: Level = Level.SCHEDULABLE) -> tir.Func:
    """`func` itself if it is well formed; else a `ProgramError` that marks the place."""
    checker = _Checker(func, level)
    checker.parameters()
    checker.stmt(func.body)
    return func


class _Checker(ExprChecker):
    def __init__(self, func: tir.Func, level: Level) -> None:
        super().__init__(func)
        self.level = level
        self.around: list[tir.Stmt] = []  # blocks and parallel loops around the current statement
        self.declared = set(func.params)
        self.bound: set[tir.Var] = set()

    def expr(self, expr: tir.Expr) -> None:
        if self.level is Level.SCHEDULABLE and isinstance(expr, _LATE) and not self.intrinsic():
            hint = "write scalars: vectors are made from `vectorized` loops"
            self.refuse(V024, hint, found=f"`{type(expr).__name__}`")
        if self.level is Level.LOWERED and isinstance(expr, _EARLY):
            self.refuse(V026, EARLIER, found=f"`{type(expr).__name__}`")
        super().expr(expr)

    def intrinsic(self) -> bool:
        """Inside the implementation of a tensor instruction, vectors may appear early."""
        return any(
            key == "intrinsic" for s in self.around if type(s) is tir.Block for key, _ in s.notes
        )

    def parameters(self) -> None:
        params = self.func.params
        found = sizes(self.func)
        self.visible.update(found)
        self.bound.update(found)
        if len(self.declared) != len(params):
            twice = next(p for n, p in enumerate(params) if p in params[:n])
            self.refuse(V005, ONCE, mark=twice, buffer=twice.name)
        for number, param in enumerate(params):
            if any(p.name == param.name for p in params[:number]):
                hint = "give each parameter a name of its own: calls go by name"
                self.refuse(V037, hint, mark=param, buffer=param.name)
            if param.scope is not tir.Scope.MEMORY:
                hint = "keep parameters in memory, and let `cache_read` copy them to registers"
                self.refuse(V028, hint, mark=param, buffer=param.name)
            self.shape(param)
        simplify = Analyzer().simplify  # a layout's inverse leaves `n + 2 - 2` behind
        whole = {
            simplify(d) if p.layout else d
            for p in params
            for d in logical_shape(p.shape, p.layout)
            if isinstance(d, tir.Expr)
        }
        for size in found:
            if size not in whole and self.level is Level.SCHEDULABLE:
                hint = "add a parameter that has it as a dimension"
                self.refuse(V029, hint, mark=size, size=size.name)

    def shape(self, buffer: tir.Buffer) -> None:
        for dim in buffer.shape:
            self.expr(dim)
            if dim.dtype != index:
                facts = {"buffer": buffer.name, "expected": index, "found": dim.dtype}
                self.refuse(V034, "write a whole number or a size", mark=buffer, **facts)
            if (tir.int_value(dim) or 0) < 0:
                self.refuse(V019, NOT_NEGATIVE, mark=buffer, found=tir.int_value(dim))
        if self.level is Level.LOWERED and len(buffer.shape) != 1:
            hint = "give it one dimension and compute the offset, as `flatten_buffers` does"
            found = f"{len(buffer.shape)} dimensions"
            self.refuse(V027, hint, mark=buffer, buffer=buffer.name, found=found)

    def stmt(self, stmt: tir.Stmt) -> None:
        before, self.statement = self.statement, stmt
        _RULES[type(stmt)](self, stmt)
        self.statement = before

    def once(self, var: tir.Var) -> None:
        """Bind `var`, which nothing else in a schedulable program may bind.

        Unrolling makes copies of loops; there it is enough that they are not nested.
        """
        if var in self.bound and self.level is Level.SCHEDULABLE:
            self.refuse(V003, "use a new variable", variable=var.name)
        self.bound.add(var)
        self.bind(var)

    def inside_block(self) -> bool:
        return any(type(s) is tir.Block for s in self.around)

    def only_inside(self, what: str) -> None:
        if self.level is Level.SCHEDULABLE and not self.inside_block():
            self.refuse(V035, "put it into the body of a block", found=what)

    def extent(self, extent: tir.Expr) -> None:
        if (tir.int_value(extent) or 0) < 0:
            self.refuse(V019, NOT_NEGATIVE, found=tir.int_value(extent))

    def loop(self, loop: tir.For) -> None:
        self.expr(loop.extent)
        if loop.var.dtype != index or loop.extent.dtype != index:
            found = f"{loop.var.dtype} and {loop.extent.dtype}"
            hint = "write a whole number or a size as the extent"
            self.refuse(V015, hint, loop=loop.var.name, expected=index, found=found)
        self.extent(loop.extent)
        if self.level is Level.LOWERED and loop.kind not in _LATE_LOOPS:
            self.refuse(V026, EARLIER, found=f"a {loop.kind.value} loop")
        self.once(loop.var)
        parallel = loop.kind is tir.LoopKind.PARALLEL
        if parallel:
            self.around.append(loop)
        self.stmt(loop.body)
        if parallel:
            self.around.pop()
        self.visible.discard(loop.var)

    def store(self, store: tir.Store) -> None:
        self.only_inside("a store")
        lanes = self.access(store.buffer, store.indices)
        self.expr(store.value)
        expected = store.buffer.dtype.vector(lanes)
        if store.value.dtype != expected:
            hint = f"convert it with `.to({expected})`"
            facts = {"expected": expected, "found": store.value.dtype}
            self.refuse(V012, hint, buffer=store.buffer.name, **facts)

    def sequence(self, seq: tir.Seq) -> None:
        if len(seq.body) == 1 or any(type(s) is tir.Seq for s in seq.body):
            self.refuse(V020, "build it with `build.seq`", mark=seq.body[0])
        for part in seq.body:
            self.stmt(part)

    def conditional(self, stmt: tir.If) -> None:
        self.only_inside("a condition")
        self.condition(stmt.cond)
        self.stmt(stmt.then)
        if stmt.otherwise is not None:
            self.stmt(stmt.otherwise)

    def alloc(self, alloc: tir.Alloc) -> None:
        buffer = alloc.buffer
        if buffer in self.declared:
            self.refuse(V005, ONCE, buffer=buffer.name)
        self.declared.add(buffer)
        self.shape(buffer)
        constant = all(tir.int_value(d) is not None for d in buffer.shape)
        if self.level is Level.LOWERED and buffer.scope is tir.Scope.REGISTER and not constant:
            self.refuse(V028, "give it a constant size, or memory", buffer=buffer.name)
        self.buffers.add(buffer)
        self.stmt(alloc.body)
        self.buffers.discard(buffer)
        if self.level is not Level.SCHEDULABLE:
            self.declared.discard(buffer)

    def prefetch(self, prefetch: tir.Prefetch) -> None:
        if self.level is Level.SCHEDULABLE:
            self.refuse(V024, "leave it out: the lowering places prefetches", found="a prefetch")
        self.access(prefetch.buffer, prefetch.indices)

    def barrier(self, barrier: tir.Barrier) -> None:
        del barrier
        if self.level is Level.SCHEDULABLE:
            self.refuse(V024, "leave it out: the lowering places barriers", found="a barrier")
        if any(type(s) is tir.For for s in self.around):
            hint = "put it behind the loop: threads run different numbers of iterations"
            self.refuse(V033, hint)

    def block(self, block: tir.Block) -> None:
        if self.level is Level.LOWERED:
            self.refuse(V026, EARLIER, found=f"block `{block.name}`")
        for binding in block.bindings:
            self.expr(binding)
        if len(block.bindings) != len(block.iters):
            found = f"{len(block.bindings)} bindings for {len(block.iters)} iterators"
            self.refuse(V014, BIND, block=block.name, found=found)
        if any(b.dtype != index for b in block.bindings):
            found = ", ".join(b.dtype.name for b in block.bindings)
            self.refuse(V014, BIND, block=block.name, found=found)
        self.condition(block.predicate)
        for it in block.iters:
            self.expr(it.extent)
            self.extent(it.extent)
        visible, outside = set(self.visible), set(self.outside)
        self.outside |= visible
        self.visible = set(sizes(self.func))
        self.outside -= self.visible
        for it in block.iters:
            self.once(it.var)
        self.around.append(block)
        self.signature(block)
        if block.init is not None:
            self.stmt(block.init)
        self.stmt(block.body)
        self.regions(block)
        self.updates(block)
        self.around.pop()
        self.visible, self.outside = visible, outside

    def signature(self, block: tir.Block) -> None:
        """The regions of a block speak of buffers that exist and of its own iterators."""
        for region in (*block.reads, *block.writes):
            if region.buffer not in self.buffers:
                hint = "allocate it, or make it a parameter"
                self.refuse(V004, hint, buffer=region.buffer.name)
            if len(region.ranges) != len(region.buffer.shape):
                expected, found = len(region.buffer.shape), len(region.ranges)
                name = region.buffer.name
                self.refuse(V006, ONE_INDEX, buffer=name, expected=expected, found=found)
            for span in region.ranges:
                self.index(span.start, region.buffer)
                self.index(span.extent, region.buffer)

    def regions(self, block: tir.Block) -> None:
        """The declared regions cover what the body touches."""
        reads, writes = block_regions(block.iters, block.body, block.init)
        for code, declared, touched in ((V016, block.reads, reads), (V017, block.writes, writes)):
            for region in touched:
                if region.buffer in self.buffers and not _covered(region, declared, block):
                    text = _region_text(region)
                    hint = "leave `reads` and `writes` out of the text: they follow from the body"
                    self.refuse(code, hint, block=block.name, found=text)

    def updates(self, block: tir.Block) -> None:
        """Reduce iterators pick no element of the result, and init writes what the body updates."""
        reduced = [i.var for i in block.iters if i.kind is tir.IterKind.REDUCE]
        body = [s for s in walk_stmts(block.body) if type(s) is tir.Store]
        for store in body:
            used = {n for i in store.indices for n in walk(i)}
            for var in reduced:
                if var in used and store.buffer in self.buffers:
                    hint = "make it a spatial iterator: `S` in the place of `R`"
                    self.refuse(V036, hint, block=block.name, iterator=var.name)
        if block.init is None or any(type(s) is tir.Block for s in walk_stmts(block.body)):
            return
        updated = {(s.buffer, s.indices) for s in body}
        for store in [s for s in walk_stmts(block.init) if type(s) is tir.Store]:
            if (store.buffer, store.indices) not in updated:
                found = _region_text(point(store.buffer, store.indices))
                hint = "let init store to the elements that the body updates"
                self.refuse(V018, hint, block=block.name, found=found)
        for var in reduced:
            if any(node is var for node in walk(block.init)):
                hint = "leave it out: init runs once for all steps of the reduction"
                self.refuse(V018, hint, block=block.name, found=f"`{var.name}`")


def _covered(region: tir.Region, declared: tuple[tir.Region, ...], block: tir.Block) -> bool:
    if region in declared:
        return True
    analyzer = Analyzer({it.var: it.extent for it in block.iters})
    return any(
        all(_within(a, b, analyzer) for a, b in zip(region.ranges, other.ranges, strict=True))
        for other in declared
        if other.buffer is region.buffer
    )


def _within(inner: tir.Range, outer: tir.Range, analyzer: Analyzer) -> bool:
    if inner == outer:
        return True
    stop, limit = inner.start + inner.extent, outer.start + outer.extent
    return bool(analyzer.prove(outer.start <= inner.start) and analyzer.prove(stop <= limit))


def _region_text(region: tir.Region) -> str:
    from tilewright.tensor.printer import print_node  # only when an error is made

    return f"`{print_node(region)}`"


_RULES: Final[dict[type[tir.Stmt], Callable[[Any, Any], None]]] = {
    tir.For: _Checker.loop,
    tir.Block: _Checker.block,
    tir.Store: _Checker.store,
    tir.Seq: _Checker.sequence,
    tir.If: _Checker.conditional,
    tir.Alloc: _Checker.alloc,
    tir.Barrier: _Checker.barrier,
    tir.Prefetch: _Checker.prefetch,
}
