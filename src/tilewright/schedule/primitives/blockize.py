"""Make the subtree of a loop one block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import require_blocks
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.nests import blocks_under, loops_under, vars_by_kind
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.reductions import S253, init_nest
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import make_block
from tilewright.tensor.regions import sizes
from tilewright.tensor.terms import terms
from tilewright.tensor.visit import enclosing, free_vars, replace_node, substitute

__all__ = ["blockize", "enclose"]

S401 = Code("S401", "the extent of loop `{loop}` around the tile is not the same everywhere")
S402 = Code("S402", "loop `{loop}` is spatial for one block and reduces in block `{block}`")


@primitive
def blockize(func: tir.Func, loop: tir.For) -> Edit:
    """Hide a loop and all that is inside it in one block `C_tile`, whose iterators are the loops
    around. A start value moves out of the reduction inside, so that the whole tile has one.

    Before:  for i_0 in range(8): for i_1 in range(4): with block C(vi = i_0 * 4 + i_1): S(vi)
    After:   for i_0 in range(8): with block C_tile(vi_0 = i_0):
                 for i_1 in range(4): with block C(vi = vi_0 * 4 + i_1): S(vi)       (loop = i_1)
    Requires: S111 the leaves are blocks; S401 the loops around that the blocks use have fixed
        extents; S402 S253 each of them is either spatial or reduce; S254 S255 the start value can
        be taken out
    Example: s.blockize("i_1")
    """
    made, tile = enclose(func, loop)
    return Edit(made, (tile.name,))


def enclose(func: tir.Func, loop: tir.For) -> tuple[tir.Func, tir.Block]:
    """The program with `loop` in a block of its own, and this block."""
    require_blocks(func, loop)
    func, loop, divided = _divided(func, loop)
    blocks = tuple(blocks_under(loop))
    iters, bindings, inside = _outer_iters(func, loop, blocks)
    iters, bindings = (*divided.iters, *iters), (*divided.bindings, *bindings)
    body: tir.Stmt = loop
    init: tir.Stmt | None = None
    if len(blocks) == 1 and blocks[0].init is not None and _reduces(iters):
        around = _loops_between(loop, blocks[0])
        init, _ = init_nest(func, blocks[0], around)
        init = substitute(init, inside)
        body = replace_node(loop, blocks[0], blocks[0].with_fields(init=None))
    body = substitute(body, inside)
    name = fresh(names_of(func), f"{blocks[-1].name}_tile")
    tile = make_block(name, iters, bindings, body, init)
    return replace_node(func, loop, tile), tile


@dataclass(frozen=True)
class _Divided:
    """Iterators of a tile that count tiles of those of the block inside, with their bindings."""

    iters: tuple[tir.Iter, ...] = ()
    bindings: tuple[tir.Expr, ...] = ()


def _divided(func: tir.Func, loop: tir.For) -> tuple[tir.Func, tir.For, _Divided]:
    """Iterators of the only block inside by the length of the tile, where loops cannot be ones.

    Loops that are cut into tiles of several sizes have no one extent, and a fused loop moves two
    iterators. What the loops inside add to an iterator is a range from zero; the rest of it,
    divided by the length of that, is an iterator of the tile.
    """
    blocks, nothing = tuple(blocks_under(loop)), (func, loop, _Divided())
    if len(blocks) != 1 or _are_iterators(func, loop, blocks[0]):
        return nothing
    (block,) = blocks
    inner = {part.var: part.extent for part in loops_under(loop)}
    around = {var: extent for var, extent, *_ in _surroundings(func, loop)}
    simplify = Analyzer({**around, **inner}).simplify
    first = {var: tir.Const(0) for var in inner}
    iters: list[tir.Iter] = []
    bindings: list[tir.Expr] = []
    within: list[tir.Expr] = []
    for it, binding in zip(block.iters, block.bindings, strict=True):
        outside = substitute(binding, first)
        own = simplify(binding - outside)
        length, whole = _length(own, inner), tir.int_value(it.extent)
        if length is None or not free_vars(own) <= inner.keys():
            return nothing
        number = outside
        if length > 1:
            number = simplify(outside // length)
            if (
                whole is None
                or whole % length
                or simplify(number * length - outside) != tir.Const(0)
            ):
                return nothing
        var = tir.Var(it.var.name)
        extent = it.extent if whole is None else tir.Const(whole // length)
        iters.append(tir.Iter(var, extent, it.kind))
        bindings.append(number)
        within.append(simplify(var * length + own))
    new = replace_node(loop, block, block.with_fields(bindings=tuple(within)))
    return replace_node(func, loop, new), new, _Divided(tuple(iters), tuple(bindings))


def _are_iterators(func: tir.Func, loop: tir.For, block: tir.Block) -> bool:
    """Whether each loop around has one extent and moves one iterator of the block."""
    known = set(sizes(func))
    used = [var for binding in block.bindings for var in free_vars(binding)]
    return all(
        var not in used or (free_vars(extent) <= known and used.count(var) == 1)
        for var, extent, *_ in _surroundings(func, loop)
    )


def _length(own: tir.Expr, inner: Mapping[tir.Var, tir.Expr]) -> int | None:
    """How many values a sum of loops takes, if it is all of a range from zero."""
    length = 1
    for factor, part in sorted(terms(own), key=lambda term: term[0]):
        extent = tir.int_value(inner.get(part, tir.Const(0))) if isinstance(part, tir.Var) else None
        if factor == 0 or part == tir.Const(0):
            continue
        if not extent or factor != length:
            return None
        length *= extent
    return length


def _reduces(iters: tuple[tir.Iter, ...]) -> bool:
    return any(it.kind is tir.IterKind.REDUCE for it in iters)


def _loops_between(loop: tir.For, block: tir.Block) -> tuple[tir.For, ...]:
    return tuple(s for s in enclosing(loop, block) if type(s) is tir.For)


def _outer_iters(
    func: tir.Func, loop: tir.For, blocks: tuple[tir.Block, ...]
) -> tuple[tuple[tir.Iter, ...], tuple[tir.Expr, ...], dict[tir.Var, tir.Expr]]:
    """One iterator for each loop (or iterator of a block) around that the inside mentions."""
    used: set[tir.Var] = set()
    for part in loops_under(loop):
        used |= free_vars(part.extent)
    spatial, reducing = set(used), {}
    for block in blocks:
        here, folded = vars_by_kind(block)
        spatial |= here | free_vars(block.predicate)
        reducing.update(dict.fromkeys(folded, block))
    iters: list[tir.Iter] = []
    bindings: list[tir.Expr] = []
    inside: dict[tir.Var, tir.Expr] = {}
    known = set(sizes(func))
    for var, extent, kind, owner in _surroundings(func, loop):
        if var not in spatial and var not in reducing:
            continue
        if not free_vars(extent) <= known:
            hint = "blockize before the loop is cut into tiles of several sizes, or further out"
            raise ScheduleError(S401, program=func, marks={"loop": owner}, hint=hint)
        if var in reducing:
            _require_one_kind(func, owner, var, blocks, reducing[var], spatial)
            kind = tir.IterKind.REDUCE
        name = var.name if type(owner) is tir.Block else f"v{var.name}"
        own = inside[var] = tir.Var(name)
        iters.append(tir.Iter(own, extent, kind))
        bindings.append(var)
    return tuple(iters), tuple(bindings), inside


def _require_one_kind(
    func: tir.Func,
    owner: tir.Stmt,
    var: tir.Var,
    blocks: tuple[tir.Block, ...],
    block: tir.Block,
    spatial: set[tir.Var],
) -> None:
    if var not in spatial:
        return
    code = S253 if len(blocks) == 1 else S402
    hint = "blockize before the loops are fused, or fewer blocks at once"
    raise ScheduleError(code, program=func, marks={"loop": owner, "block": block}, hint=hint)


def _surroundings(
    func: tir.Func, loop: tir.For
) -> list[tuple[tir.Var, tir.Expr, tir.IterKind, tir.Stmt]]:
    """The variables in scope, outermost first: iterators of the block around, then loops."""
    found: list[tuple[tir.Var, tir.Expr, tir.IterKind, tir.Stmt]] = []
    for part in reversed(enclosing(func, loop)):
        if type(part) is tir.For:
            found.append((part.var, part.extent, tir.IterKind.SPATIAL, part))
        elif type(part) is tir.Block:
            found += [(it.var, it.extent, it.kind, part) for it in reversed(part.iters)]
            break
    return found[::-1]
