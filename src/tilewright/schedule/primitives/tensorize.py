"""Let a tensor instruction do what a tile of a program does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.errors import Code, ScheduleError
from tilewright.intrin import FAMILIES, lookup
from tilewright.intrin.intrinsic import TensorIntrinsic
from tilewright.intrin.match import Mismatch, Placed, TileLoop, match
from tilewright.schedule.handles import Namer, Names, names_of
from tilewright.schedule.nests import chain_from, replace_block, vars_by_kind
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.primitives.blockize import enclose
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.node import Node
from tilewright.tensor.regions import block_regions
from tilewright.tensor.visit import map_children, rewrite, substitute, walk

__all__ = ["tensorize", "unknown_instruction"]

S420 = Code("S420", "there is no tensor instruction `{intrinsic}`")
S421 = Code("S421", "block `{block}` is not one computation in a nest of constant loops")
S422 = Code("S422", "block `{block}` still has its start value, which `{intrinsic}` does not set")
S423 = Code("S423", "block `{block}` does not compute what `{intrinsic}` means")
S424 = Code("S424", "the types of block `{block}` are not those of `{intrinsic}`")
S425 = Code("S425", "the loops of block `{block}` are not the axes of `{intrinsic}`")
S426 = Code("S426", "the indices of block `{block}` do not move like the operands of `{intrinsic}`")
S427 = Code("S427", "an operand of `{intrinsic}` is not contiguous in block `{block}`")

_CODES = {
    "value": (S423, "`tilewright.intrin.lookup(…).meaning_func()` shows what it means"),
    "dtype": (S424, "choose an instruction for these types"),
    "axes": (S425, "split the loops to the extents of the instruction, and keep them innermost"),
    "index": (S426, "make the indices linear in the loops, for example with `reindex`"),
    "dense": (S427, "change the layout of the buffer so that the dimension is innermost"),
}


@primitive
def tensorize(func: tir.Func, target: tir.For | tir.Block, intrinsic: str) -> Edit:
    """Replace the loops of a tile by the implementation of an instruction that means the same.

    `target` is a block made by `blockize`, or a loop, which is blockized first. Loops may come in
    any order and have any name.

    Before:  for i_1, j_1, k_1 in grid(6, 16, 64): C[…] += A[…] * B[…]
    After:   with block C_tile: the implementation of f32.gemm(6,16,64)
    Requires: S420 the instruction exists; S421 the tile is one block in loops of constant extent;
        S422 its start value was taken out; S423 the values, S424 their types, S425 the loops and
        S426 the indices agree; S427 operands are contiguous
    Example: s.tensorize("i_1", "f32.gemm(6,16,64)")
    """
    chosen = lookup(intrinsic)
    if chosen is None:
        raise unknown_instruction(intrinsic)
    tile = target
    if isinstance(tile, tir.For):
        func, tile = enclose(func, tile)
    loops, store = _computation(func, tile, intrinsic)
    found = match(chosen, loops, store)
    if isinstance(found, Mismatch):
        code, hint = _CODES[found.reason]
        facts = {"intrinsic": intrinsic, "expected": found.expected, "found": found.found}
        raise ScheduleError(code, facts, program=func, marks={"block": tile}, hint=hint)
    body = _instantiated(chosen, found.placed, names_of(func), tile.name)
    notes = (*tile.notes, ("intrinsic", intrinsic), *_required(chosen))
    reads, writes = block_regions(tile.iters, body, tile.init)
    done = tile.with_fields(body=body, reads=reads, writes=writes, notes=notes)
    return Edit(replace_block(func, tile, done), (tile.name,))


def unknown_instruction(name: str) -> ScheduleError:
    """The error for a tensor instruction that does not exist."""
    known = [f"{f.name}({','.join(f.parameters)})".removesuffix("()") for f in FAMILIES.values()]
    hint = "give whole numbers above zero in the place of the letters"
    return ScheduleError(S420, {"intrinsic": name, "known": ", ".join(known)}, hint=hint)


def _required(chosen: TensorIntrinsic) -> tuple[tuple[str, object], ...]:
    return (("requires", tuple(sorted(chosen.requires))),) if chosen.requires else ()


def _computation(
    func: tir.Func, tile: tir.Block, intrinsic: str
) -> tuple[list[TileLoop], tir.Store]:
    """The loops in the tile, and what they repeat in terms of these loops."""
    chain = chain_from(tile.body)
    inner = chain.body
    extents = [tir.int_value(loop.extent) for loop in chain.loops]
    if (
        type(inner) is not tir.Block
        or type(inner.body) is not tir.Store
        or inner.predicate != tir.TRUE
        or not all(extents)
    ):
        facts = {"expected": "loops of constant extent around one block of one store"}
        hint = "name the outermost loop of a tile that was split by sizes that divide its extent"
        raise ScheduleError(S421, facts, program=func, marks={"block": tile}, hint=hint)
    if inner.init is not None:
        facts = {"intrinsic": intrinsic}
        hint = f'use `decompose_reduction("{inner.name}", …)` first'
        raise ScheduleError(S422, facts, program=func, marks={"block": inner}, hint=hint)
    _, reduce = vars_by_kind(inner)
    loops = [
        TileLoop(
            loop.var,
            extent,
            tir.IterKind.REDUCE if loop.var in reduce else tir.IterKind.SPATIAL,
        )
        for loop, extent in zip(chain.loops, extents, strict=True)
        if extent is not None
    ]
    values = {it.var: b for it, b in zip(inner.iters, inner.bindings, strict=True)}
    return loops, _simplified(substitute(inner.body, values), tile, chain.loops)


def _simplified(store: tir.Store, tile: tir.Block, loops: Sequence[tir.For]) -> tir.Store:
    """Indices like `(i_0 * 8 + i_1) // 8`, which layouts leave behind, become plain."""
    if not any(type(n) in (tir.FloorDiv, tir.FloorMod) for n in walk(store)):
        return store
    extents = {it.var: it.extent for it in tile.iters} | {p.var: p.extent for p in loops}
    analyzer = Analyzer(extents)

    def change(part: Node) -> Node | None:
        if isinstance(part, tir.Load | tir.Store):
            indices = tuple(map(analyzer.simplify, part.indices))
            return part.with_fields(indices=indices)
        return None

    return rewrite(store, change)


def _instantiated(
    chosen: TensorIntrinsic, placed: Mapping[tir.Buffer, Placed], names: Names, owner: str
) -> tir.Stmt:
    """The implementation on the buffers of the program, with names of its own."""
    named = Namer(names)
    variables: dict[tir.Var, tir.Var] = {}
    buffers: dict[tir.Buffer, tir.Buffer] = {}

    def visit(part: Node) -> Node:
        if isinstance(part, tir.Var):
            return variables.get(part, part)
        if isinstance(part, tir.Const | tir.Buffer):
            return part
        if type(part) is tir.For:
            variables[part.var] = tir.Var(named(f"{owner}_{part.var.name}"))
        if type(part) is tir.Alloc:
            local = part.buffer
            buffers[local] = local.with_fields(name=named(f"{owner}_{local.name}"))
        part = map_children(part, visit)
        match part:
            case tir.Load() | tir.Store() if part.buffer in placed:
                here = placed[part.buffer]
                at = here.at(part.indices)
                return part.with_fields(buffer=here.buffer, indices=at)
            case tir.Load() | tir.Store() | tir.Alloc() if part.buffer in buffers:
                return part.with_fields(buffer=buffers[part.buffer])
        return part

    return visit(chosen.implementation)  # type: ignore[return-value]
