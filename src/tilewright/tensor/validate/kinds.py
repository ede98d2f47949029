"""May the iterations of a loop run at once? Parallel loops must not race, vector loops must have
lanes that do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.errors import ProgramError
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import folding
from tilewright.tensor.validate.apart import stay_apart
from tilewright.tensor.validate.bindings import Bound
from tilewright.tensor.validate.codes import V102, V106, V109
from tilewright.tensor.validate.elements import determined
from tilewright.tensor.validate.groups import Maps
from tilewright.tensor.validate.places import Place
from tilewright.tensor.validate.races import require_no_race, spatial_of
from tilewright.tensor.visit import walk_stmts

__all__ = ["parallel_around", "require_kinds"]

PARALLEL, VECTOR = tir.LoopKind.PARALLEL, tir.LoopKind.VECTOR


def parallel_around(place: Place) -> tir.For | None:
    """The parallel loop that a block is in."""
    return next((loop for loop in place.loops if loop.kind is PARALLEL), None)


def require_kinds(
    func: tir.Func,
    blocks: Sequence[Bound],
    outside: frozenset[tir.Buffer],
    maps: Maps,
    *,
    around: tir.For | None = None,
) -> None:
    """V102, V103, V106 and V109 for all loops around the blocks of one nest.

    `outside` has the buffers that are also used outside of the nest, and `around` is the parallel
    loop that the whole nest is in.
    """
    at_once: dict[int, tir.For] = {}
    for block in blocks:
        parallel = around
        for loop in block.place.loops:
            if loop.kind is PARALLEL:
                if parallel is not None:
                    _refuse_nested(func, parallel, loop)
                parallel = loop
                _require_spatial(func, block, loop)
                at_once[id(loop)] = loop
            elif loop.kind is VECTOR:
                _require_lanes(func, block, loop, maps)
                if id(loop) not in at_once:
                    _require_innermost(func, loop)
                at_once[id(loop)] = loop
    for loop in at_once.values():
        require_no_race(func, blocks, loop, outside, maps)


def _refuse_nested(func: tir.Func, outer: tir.For, inner: tir.For) -> None:
    raise ProgramError(
        V109,
        {"expected": "one level of parallel loops"},
        hint="fuse the two loops and make the fused one parallel",
        program=func,
        marks={"outer": outer, "inner": inner},
    )


def _require_spatial(func: tir.Func, block: Bound, loop: tir.For) -> None:
    if block.place.reduce and loop.var in block.place.driven_by(block.place.reduce):
        _refuse_reduction(func, block, loop, "`rfactor` the loop: partial results do not race")


def _refuse_reduction(func: tir.Func, block: Bound, loop: tir.For, hint: str) -> None:
    raise ProgramError(
        V102,
        {"kind": loop.kind.value},
        hint=hint,
        program=func,
        marks={"block": block.place.block, "loop": loop},
    )


def _require_lanes(func: tir.Func, block: Bound, loop: tir.For, maps: Maps) -> None:
    """Lanes write different elements; a reduction over lanes is a fold without start value."""
    inner = block.place.block
    if block.place.reduce and loop.var in block.place.driven_by(block.place.reduce):
        if inner.init is not None or folding(inner) is None:
            hint = "take the start value out with `decompose_reduction`, or `rfactor` the loop"
            _refuse_reduction(func, block, loop, hint)
        return
    group = block.group_of(loop.var)
    driven = set() if group is None else spatial_of(group)
    for region in inner.writes:
        if not driven <= determined(inner.iters, region, maps) and not stay_apart(
            block, region, block, region, loop, maps
        ):
            facts = {"found": f"lanes that write the same element of `{region.buffer.name}`"}
            _refuse_vector(func, loop, facts, inner)


def _require_innermost(func: tir.Func, loop: tir.For) -> None:
    """Nothing but unrolled loops (and such that run once) is inside; the lanes can be counted."""
    for stmt in walk_stmts(loop.body):
        if type(stmt) is not tir.For or tir.int_value(stmt.extent) == 1:
            continue
        if stmt.kind is not tir.LoopKind.UNROLLED:
            _refuse_vector(func, loop, {"found": f"loop `{stmt.var.name}` inside"}, stmt)
    if not _is_bounded(loop.extent):
        _refuse_vector(func, loop, {"found": "an extent that is not a constant"}, None)


def _is_bounded(extent: tir.Expr) -> bool:
    if type(extent) is tir.Const or type(extent) is tir.TileSize:
        return True
    return isinstance(extent, tir.Binary) and _is_bounded(extent.a) and _is_bounded(extent.b)


def _refuse_vector(
    func: tir.Func, loop: tir.For, facts: Mapping[str, object], inner: tir.Stmt | None
) -> None:
    marks: dict[str, object] = {"loop": loop}
    if inner is not None:
        marks["inner"] = inner
    hint = "split the loop to a constant extent, and reorder it inside of all others"
    raise ProgramError(V106, facts, hint=hint, program=func, marks=marks)
