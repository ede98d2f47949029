"""Do the loops around a block take each point of its domain, as often as they may?

A block without accumulation may run more often than needed and, if only other blocks read its
results, at fewer points. A reduction adds each point once for each start value.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NoReturn

from tilewright.errors import ProgramError
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.itermap import Reason
from tilewright.tensor.validate.codes import V101, V105, V107, V108
from tilewright.tensor.validate.facts import Known, image_of, rises
from tilewright.tensor.validate.groups import Group, Maps, groups_of, summands
from tilewright.tensor.validate.places import Place, conjuncts
from tilewright.tensor.visit import free_vars, substitute, walk

__all__ = ["Bound", "Mapped", "bound", "require_counted_once", "require_outputs_filled"]

# Reasons that no use of the results can excuse.
_FATAL = (Reason.DEPENDENT, Reason.OUTSIDE)


@dataclass(slots=True, eq=False)
class Mapped:
    """How the loops around a block drive its iterators; the same while only their kinds change."""

    groups: list[Group]
    idle: frozenset[tir.Var]
    """Loops that no binding uses: they repeat the block."""
    fills: bool
    """Does the block run at every point of its domain?"""
    exact: bool
    """Does it run exactly once at each?"""


@dataclass(slots=True, eq=False)
class Bound:
    """A place with the map of its bindings."""

    place: Place
    mapped: Mapped
    lacks: frozenset[tir.Buffer] = frozenset()
    """Buffers of which the block reads the elements that it writes: others must prepare them."""

    @property
    def groups(self) -> list[Group]:
        return self.mapped.groups

    @property
    def written(self) -> frozenset[tir.Buffer]:
        """The buffers that the block writes."""
        return self.place.content.written

    def reads(self) -> Sequence[tir.Region]:
        """What the block needs from others, accumulators that it does not start included.

        What it reads of buffers that it writes is else its own, or refused.
        """
        block = self.place.block
        if not self.place.inner or self.place.content.stores:
            return block.reads + block.writes if self.lacks else block.reads
        written = self.written
        own = [r for r in block.writes if r.buffer in self.lacks]
        return [r for r in block.reads if r.buffer not in written] + own

    def group_of(self, var: tir.Var) -> Group | None:
        """The group that uses a loop."""
        return next((g for g in self.groups if any(p.var is var for p in g.loops)), None)


def bound(func: tir.Func, place: Place, maps: Maps, sizes: frozenset[tir.Var]) -> Bound:
    """The map of a block's bindings, refused if it cannot be right whatever is around."""
    block, loops = place.block, place.loops
    about = (block.iters, block.bindings, block.predicate)
    around = (*[p.var for p in loops], *[p.extent for p in loops])
    question = ("mapped", sizes, block.init is None)
    mapped = maps.once(question, about + around, lambda: _mapped(func, place, maps, sizes))
    found = Bound(place, mapped)
    if place.content.updates and (not place.inner or place.content.stores):
        found.lacks = found.written
    return found


def _mapped(func: tir.Func, place: Place, maps: Maps, sizes: frozenset[tir.Var]) -> Mapped:
    _require_scope(func, place, sizes)
    groups, idle = groups_of(place, maps)
    for group in groups:
        if group.refusal is not None:
            _require_inside(func, place, group)
    repeated = False
    for loop in place.loops if idle else ():
        if loop.var in idle:
            _require_iterations(func, place, loop)
            repeated |= tir.int_value(loop.extent) != 1
    _require_start(func, place, groups)
    fills = all(group.fills for group in groups)
    exact = not repeated and all(group.exact for group in groups)
    return Mapped(groups, idle, fills, exact)


def _require_scope(func: tir.Func, place: Place, sizes: frozenset[tir.Var]) -> None:
    known = set(sizes)
    for loop in place.loops:
        if type(loop.extent) is not tir.Const:
            _require_known(func, place, free_vars(loop.extent) - known)
        known.add(loop.var)
    for binding in place.block.bindings:
        if not free_vars(binding) <= known:
            _require_known(func, place, free_vars(binding) - known)
    if place.block.predicate is not tir.TRUE:
        _require_known(func, place, free_vars(place.block.predicate) - known)


def _require_known(func: tir.Func, place: Place, unknown: AbstractSet[tir.Var]) -> None:
    for var in unknown:
        raise ProgramError(
            V105,
            {"variable": var.name, "block": place.block.name},
            hint="keep loops inside of the loops that their extents mention",
            program=func,
            marks={"here": place.block},
        )


def _require_inside(func: tir.Func, place: Place, group: Group) -> None:
    """A block whose results other blocks read may leave points out, but not leave its domain."""
    refusal = group.refusal
    assert refusal is not None
    reduces = any(it.kind is tir.IterKind.REDUCE for it, _ in group.pairs)
    if reduces or refusal.reason in _FATAL:
        _refuse(func, place, group)
    known = Known(place.extents(), conjuncts(place.block.predicate))
    zero = tir.Const(0)
    for it, binding in group.pairs:
        if not known.within(binding, zero, it.extent):
            _refuse(func, place, group)


def require_outputs_filled(func: tir.Func, found: Bound) -> None:
    """A block that leaves points out must not write what the caller sees."""
    if not found.written.isdisjoint(func.params):
        _refuse(func, found.place, next(g for g in found.groups if not g.fills))


def _require_iterations(func: tir.Func, place: Place, loop: tir.For) -> None:
    """A loop that only repeats the block must run at all."""
    length = tir.int_value(loop.extent)
    if length == 0 or (length is None and not Known(place.extents()).holds(loop.extent >= 1)):
        facts = {"block": place.block.name, "because": f"`{loop.var.name}` may have no iterations"}
        hint = "let the loop drive an iterator of the block, or remove it"
        marks = {"here": place.block, "loop": loop}
        raise ProgramError(V101, facts, hint=hint, program=func, marks=marks)


def _refuse(func: tir.Func, place: Place, group: Group) -> NoReturn:
    refusal = group.refusal
    assert refusal is not None
    position = refusal.binding
    what = "the predicate" if position is None else f"`{group.pairs[position][0].var.name}`"
    facts: dict[str, object] = {
        "block": place.block.name,
        "because": f"{what} {refusal.reason.value}",
    }
    if refusal.expected is not None:
        facts |= {"expected extent": refusal.expected, "found": refusal.found}
    marks: dict[str, object] = {"here": place.block}
    marks |= {f"loop {loop.var.name}": loop for loop in place.loops if loop.var in refusal.loops}
    hint = "take every point of the domain by independent loops: `i // 4, i % 4`, not `i, 2 * i`"
    raise ProgramError(V101, _printed(facts), hint=hint, program=func, marks=marks)


def _printed(facts: dict[str, object]) -> dict[str, object]:
    from tilewright.tensor.printer import print_node  # only when an error is made

    return {k: print_node(v) if isinstance(v, tir.Expr) else v for k, v in facts.items()}


def _require_start(func: tir.Func, place: Place, groups: list[Group]) -> None:
    """The first point of a reduction, which sets the start value, has all reduce iterators at 0."""
    if place.block.init is None or not place.reduce:
        return
    loops = {loop.var for loop in place.loops}
    for it, binding in place.reduce:
        group = next(g for g in groups if any(i is it for i, _ in g.pairs))
        if not _starts_at_zero(binding, loops) or not _in_order(group, place):
            raise ProgramError(
                V108,
                {"block": place.block.name, "iterator": it.var.name},
                hint="reduce in rising order, or take the start value out with "
                "`decompose_reduction` first",
                program=func,
                marks={"here": place.block},
            )


def _in_order(group: Group, place: Place) -> bool:
    """Do loops that drive spatial and reduce iterators alike take their points in rising order?

    A sum of loops that is divided, `(a * 5 + b) // 6`, must rise as the loops run.
    """
    if len({it.kind for it, _ in group.pairs}) == 1:
        return True
    divided = [
        node.a
        for _, binding in group.pairs
        for node in walk(binding)
        if isinstance(node, tir.FloorDiv | tir.FloorMod)
        and not isinstance(node.a, tir.FloorDiv | tir.FloorMod)  # a digit of a digit
    ]
    return all(isinstance(part, tir.Var) or _rises(part, place) for part in divided)


def _rises(expr: tir.Expr, place: Place) -> bool:
    """Is a sum of loops the larger, the later it is reached?"""
    terms = summands(expr)
    extents = place.extents()
    if terms is not None and all(type(part) is tir.Var for _, part in terms):
        depth = {p.var: n for n, p in enumerate(place.loops)}
        reach: int | None = 0  # of the loops further in; None if it is not known
        for factor, var in sorted(terms, key=lambda term: -depth.get(term[1], -1)):  # type: ignore[call-overload]
            if var not in depth or reach is None or factor <= reach:
                break
            length = tir.int_value(extents[var])  # type: ignore[index]
            reach = None if length is None else reach + factor * (length - 1)
        else:
            return True
    return rises(expr, list(extents.items()))


def _starts_at_zero(expr: tir.Expr, loops: set[tir.Var]) -> bool:
    """Is the expression zero where all loops are at zero?"""
    match expr:
        case tir.Var():
            return expr in loops
        case tir.Const(value=value):
            return value == 0
        case tir.Add(a=a, b=b):
            return _starts_at_zero(a, loops) and _starts_at_zero(b, loops)
        case tir.Mul(a=a, b=b):
            return _starts_at_zero(a, loops) or _starts_at_zero(b, loops)
        case tir.FloorDiv(a=a) | tir.FloorMod(a=a) | tir.TileStart(tile=a):
            return _starts_at_zero(a, loops)
    first = substitute(expr, dict.fromkeys(loops, tir.Const(0)))
    return tir.int_value(Analyzer({}).simplify(first)) == 0


def require_counted_once(func: tir.Func, found: Bound, depth: int, maps: Maps) -> None:
    """Loops from `depth` on must not take a point of a reduction twice.

    Loops further out start the accumulation anew, so that they may repeat it.
    """
    if found.mapped.exact:
        return
    place = found.place
    again = _repeating(found, depth, maps)
    if again is not None:
        raise ProgramError(
            V107,
            {"block": place.block.name, "repeated by": again.var.name},
            hint="let the loop drive a spatial iterator, or start the reduction anew inside of it",
            program=func,
            marks={"here": place.block, "loop": again},
        )


def _repeating(found: Bound, depth: int, maps: Maps) -> tir.For | None:
    """A loop from `depth` on that takes points again."""
    outer, inner = found.place.loops[:depth], found.place.loops[depth:]
    for loop in inner:
        if loop.var in found.mapped.idle and tir.int_value(loop.extent) != 1:
            return loop
    fixed = {p.var: p.extent for p in outer}
    for group in found.groups:
        own = {p.var for p in group.loops}
        mine = [p for p in inner if p.var in own]
        if group.exact or not mine:
            continue
        image = image_of([b for _, b in group.pairs], mine, fixed, maps)
        if image is None or not image.exact:
            return mine[0]
    return None
