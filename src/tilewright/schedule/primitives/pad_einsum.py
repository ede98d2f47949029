"""Enlarge the domain of a contraction to multiples of what an instruction needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import and_

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import require_serial, require_sole_block
from tilewright.schedule.handles import Namer
from tilewright.schedule.nests import expand, loops_around
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.reductions import Update, update_of
from tilewright.tensor import ir as tir
from tilewright.tensor.build import make_block
from tilewright.tensor.node import Node
from tilewright.tensor.regions import block_regions
from tilewright.tensor.visit import free_vars, rewrite, walk

__all__ = ["pad_einsum"]

S410 = Code("S410", "`pad_einsum` needs one multiple for each iterator of block `{block}`")
S411 = Code("S411", "block `{block}` is not a sum of products with start value zero")
S412 = Code(
    "S412", "iterator `{iterator}` of block `{block}` is not an index of `{buffer}` by itself"
)
S413 = Code("S413", "iterator `{iterator}` of block `{block}` is not a loop of its own")
S414 = Code("S414", "no input of block `{block}` has the iterator `{iterator}` as an index")

Grown = Mapping[tir.Expr, tir.Expr]
"""The new extent of each iterator that grows."""


@primitive
def pad_einsum(func: tir.Func, block: tir.Block, padding: tuple[int, ...]) -> Edit:
    """Round the extent of each iterator up to a multiple; zeros fill what is added, exactly.

    Inputs that lack the added elements are copied into buffers `A_pad`, zero outside; the result
    is computed in `C_pad` and cropped by a block `C_crop`.

    Before:  for i, j, k in grid(5, 8, 7): C[i, j] += A[i, k] * B[k, j]
    After:   for i, k in grid(8, 8): A_pad[i, k] = A[i, k] if i < 5 and k < 7 else 0
             for k, j in grid(8, 8): B_pad[k, j] = B[k, j] if k < 7 else 0
             for i, j, k in grid(8, 8, 8): C_pad[i, j] += A_pad[i, k] * B_pad[k, j]
             for i, j in grid(5, 8): C[i, j] = C_pad[i, j]                (padding = [4, 4, 4])
    Requires: S410 a positive multiple for each iterator; S411 the block sums products from zero;
        S412 padded iterators are indices by themselves; S413 padded iterators are loops of their
        own; S101 these are serial; S260 no other block is in them; S414 some input has them
    Example: s.pad_einsum("C", [4, 16, 1])
    """
    if len(padding) != len(block.iters) or min(padding, default=1) < 1:
        facts = {"expected": f"{len(block.iters)} positive numbers", "found": list(padding)}
        names = ", ".join(it.var.name for it in block.iters)
        hint = f"the iterators are {names}; 1 leaves an iterator as it is"
        raise ScheduleError(S410, facts, program=func, marks={"block": block}, hint=hint)
    update = _product_sum(func, block)
    grown = _grown(block, padding)
    loops = loops_around(func, block)
    if not grown:
        return Edit(func)
    _require_own_loops(func, block, loops, grown)
    require_sole_block(func, loops[0])
    _require_plain_indices(func, block, update, grown)
    own = tir.Load(update.buffer, update.indices)
    loads = dict.fromkeys(p for p in walk(update.value) if type(p) is tir.Load)
    changed = [load for load in loads if _lacks(block, load, grown)]
    changed += [own] if any(i in grown for i in own.indices) else []
    work = _Padding(Namer(func), block, grown, own)
    larger = {access: work.larger(access) for access in changed}
    nest = _enlarged(block, loops[0], larger, grown)
    before = [work.pad(load, made) for load, made in larger.items() if load is not own]
    after = [work.crop(larger[own])] if own in larger else []
    done = expand(func, loops[0], (*before, nest, *after), tuple(larger.values()))
    return Edit(done, tuple(work.made))


def _product_sum(func: tir.Func, block: tir.Block) -> Update:
    update = update_of(block)
    start = block.init.value if type(block.init) is tir.Store else None
    if (
        update is None
        or update.fold is not tir.Fold.ADD
        or type(start) is not tir.Const
        or start.value != 0
        or not _is_product(update.value)
        or block.predicate != tir.TRUE
    ):
        facts = {"expected": "C[…] = C[…] + A[…] * B[…] with start value 0"}
        hint = "pad before the start value is taken out and before the block is tiled"
        raise ScheduleError(S411, facts, program=func, marks={"block": block}, hint=hint)
    return update


def _is_product(value: tir.Expr) -> bool:
    """Is the value zero wherever all elements that it loads are zero, also beside infinities?"""
    match value:
        case tir.Mul():
            return _is_product(value.a) and _is_product(value.b)
        case tir.Cast() | tir.Neg():
            return _is_product(value.value)
    return type(value) in (tir.Load, tir.Const)


def _grown(block: tir.Block, padding: tuple[int, ...]) -> dict[tir.Expr, tir.Expr]:
    found: dict[tir.Expr, tir.Expr] = {}
    for it, multiple in zip(block.iters, padding, strict=True):
        larger = (it.extent + (multiple - 1)) // multiple * multiple
        if larger != it.extent:
            found[it.var] = larger
    return found


def _require_own_loops(
    func: tir.Func, block: tir.Block, loops: tuple[tir.For, ...], grown: Grown
) -> None:
    by_var = {loop.var: loop for loop in loops}
    uses = [v for b in block.bindings for v in free_vars(b)]
    for it, binding in zip(block.iters, block.bindings, strict=True):
        if it.var not in grown:
            continue
        loop = by_var.get(binding) if isinstance(binding, tir.Var) else None
        if loop is None or loop.extent != it.extent or uses.count(loop.var) != 1:
            facts = {"iterator": it.var.name}
            hint = "pad before the loops are split or fused"
            raise ScheduleError(S413, facts, program=func, marks={"block": block}, hint=hint)
        require_serial(func, loop)


def _require_plain_indices(func: tir.Func, block: tir.Block, update: Update, grown: Grown) -> None:
    loads = [p for p in walk(update.value) if type(p) is tir.Load]
    for access in (tir.Load(update.buffer, update.indices), *loads):
        for index in access.indices:
            mixed = [v for v in free_vars(index) if v in grown and index is not v]
            if mixed:
                facts = {"iterator": mixed[0].name, "expected": f"[…, {mixed[0].name}, …]"}
                hint = "make every index a single iterator with `reindex` first"
                marks = {"block": block, "buffer": access.buffer}
                raise ScheduleError(S412, facts, program=func, marks=marks, hint=hint)
    for it in block.iters:
        used = any(i is it.var for load in loads for i in load.indices)
        if it.var in grown and it.kind is tir.IterKind.REDUCE and not used:
            facts = {"iterator": it.var.name}
            hint = "leave it as it is with 1: added steps would add the same value again"
            raise ScheduleError(S414, facts, program=func, marks={"block": block}, hint=hint)


def _lacks(block: tir.Block, load: tir.Load, grown: Grown) -> bool:
    """Does the input need added elements? A reduction needs zeros in any case."""
    reduced = {it.var for it in block.iters if it.kind is tir.IterKind.REDUCE}
    for index, extent in zip(load.indices, load.buffer.shape, strict=True):
        if index in grown:
            there, needed = tir.int_value(extent), tir.int_value(grown[index])
            if index in reduced or there is None or needed is None or there < needed:
                return True
    return False


def _enlarged(
    block: tir.Block, top: tir.For, larger: Mapping[tir.Load, tir.Buffer], grown: Grown
) -> tir.Stmt:
    """The nest of the block over the enlarged domain and on the enlarged buffers."""
    result = next((b for access, b in larger.items() if access.buffer in _written(block)), None)
    loop_extents = {
        binding: grown[it.var]
        for it, binding in zip(block.iters, block.bindings, strict=True)
        if it.var in grown
    }

    def change(part: Node) -> Node | None:
        if type(part) is tir.Load and part in larger:
            return tir.Load(larger[part], part.indices)
        if type(part) is tir.Store and result is not None:
            return part.with_fields(buffer=result)
        if type(part) is tir.For and part.var in loop_extents:
            return part.with_fields(extent=loop_extents[part.var])
        if type(part) is tir.Iter and part.var in grown:
            return part.with_fields(extent=grown[part.var])
        if type(part) is tir.Block:
            reads, writes = block_regions(part.iters, part.body, part.init)
            return part.with_fields(reads=reads, writes=writes)
        return None

    return rewrite(top, change)


def _written(block: tir.Block) -> set[tir.Buffer]:
    return {region.buffer for region in block.writes}


class _Padding:
    """The copies around the enlarged nest: zeros around inputs, and the crop of the result."""

    def __init__(self, named: Namer, block: tir.Block, grown: Grown, own: tir.Load) -> None:
        self.named, self.block, self.grown, self.own = named, block, grown, own
        self.extents: dict[tir.Expr, tir.Expr] = {it.var: it.extent for it in block.iters}
        self.made: list[str] = []

    def larger(self, access: tir.Load) -> tir.Buffer:
        """A buffer for the enlarged domain, where an index is an iterator that grows."""
        pairs = zip(access.indices, access.buffer.shape, strict=True)
        shape = tuple(self.grown.get(index, extent) for index, extent in pairs)
        return tir.Buffer(self.named(f"{access.buffer.name}_pad"), shape, access.buffer.dtype)

    def pad(self, load: tir.Load, made: tir.Buffer) -> tir.Stmt:
        """`A_pad[…] = A[…]`, and zero outside; the index is clamped because both sides are read."""

        def value(where: tuple[tir.Var, ...]) -> tir.Expr:
            limits = [
                (at, self.extents[i])
                for at, i in zip(where, load.indices, strict=True)
                if i in self.grown
            ]
            clamped = {at: tir.minimum(at, limit - 1) for at, limit in limits}
            inside = reduce(and_, [at < limit for at, limit in limits])
            element = tir.Load(load.buffer, tuple(clamped.get(at, at) for at in where))
            return tir.Select(inside, element, tir.const(0, made.dtype))

        return self._copy(made.name, made, load.indices, "pad", value)

    def crop(self, result: tir.Buffer) -> tir.Stmt:
        """`C[…] = C_pad[…]`."""
        name = self.named(f"{self.block.name}_crop")
        target = self.own.buffer
        return self._copy(
            name, target, self.own.indices, "crop", lambda where: tir.Load(result, where)
        )

    def _copy(
        self,
        name: str,
        target: tir.Buffer,
        indices: tuple[tir.Expr, ...],
        word: str,
        value: Callable[[tuple[tir.Var, ...]], tir.Expr],
    ) -> tir.Stmt:
        hints = [self._axis(index, n) for n, index in enumerate(indices)]
        loops = [tir.Var(self.named(f"{hint}_{word}")) for hint in hints]
        iters = [
            tir.Iter(tir.Var(f"v{hint}"), extent)
            for hint, extent in zip(hints, target.shape, strict=True)
        ]
        where = tuple(it.var for it in iters)
        body = tir.Store(target, where, value(where))
        nest: tir.Stmt = make_block(name, tuple(iters), tuple(loops), body)
        for loop, it in zip(reversed(loops), reversed(iters), strict=True):
            nest = tir.For(loop, it.extent, nest)
        self.made.append(name)
        return nest

    def _axis(self, index: tir.Expr, number: int) -> str:
        """The name of the loop that drives an index."""
        for it, binding in zip(self.block.iters, self.block.bindings, strict=True):
            if it.var is index and isinstance(binding, tir.Var):
                return binding.name
        return f"d{number}"
