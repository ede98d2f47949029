"""Bindings in groups that share no loop: each group is a map of its own, found once and kept.

Most groups are mixed radix numbers with constant extents or plain tiles of a cover, which can be
told at a glance; everything else goes to `arith.itermap`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.arith.itermap import IterMap, Reason, Refusal, detect
from tilewright.tensor.validate.memo import Memo
from tilewright.tensor.validate.places import Pair, Place, conjuncts
from tilewright.tensor.visit import free_vars

__all__ = ["Group", "Maps", "groups_of", "summands"]


@dataclass(slots=True, eq=False)
class Group:
    """Bindings that share loops, and what is known about their map."""

    pairs: list[Pair]
    loops: list[tir.For]
    predicate: tir.Expr
    refusal: Refusal | None = None
    unused: frozenset[tir.Var] = frozenset()
    overlapping: frozenset[tir.Var] = frozenset()
    """Loops of bindings that take values more than once."""

    @property
    def fills(self) -> bool:
        """Is every point of the domain taken?"""
        return self.refusal is None

    @property
    def exact(self) -> bool:
        """Is every point of the domain taken once?"""
        return self.refusal is None and not self.unused and not self.overlapping


class Maps(Memo):
    """Finds maps and remembers them by value; other answers it remembers by identity."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[object, IterMap | Refusal] = {}

    def detect(
        self,
        bindings: Sequence[tir.Expr],
        domain: Sequence[tir.Expr],
        loops: Sequence[tuple[tir.Var, tir.Expr]],
        predicate: tir.Expr = tir.TRUE,
        outer: Mapping[tir.Var, tir.Expr] | None = None,
    ) -> IterMap | Refusal:
        """As `itermap.detect`, remembered."""
        outside = tuple((outer or {}).items())
        key = (tuple(bindings), tuple(domain), tuple(loops), predicate, outside)
        found = self._known.get(key)
        if found is None:
            if len(self._known) > 4096:
                self._known.clear()
            found = self._known[key] = detect(bindings, domain, loops, predicate, outer)
        return found


def groups_of(place: Place, maps: Maps) -> tuple[list[Group], frozenset[tir.Var]]:
    """The groups of a block's bindings, and the loops that none of them uses."""
    extents = place.extents()
    groups = _apart(place, extents) or _merged(place, extents)
    for group in groups:
        _solve(group, extents, maps)
    used = {loop.var for group in groups for loop in group.loops}
    return groups, frozenset([var for var in extents if var not in used])


def _apart(place: Place, extents: Mapping[tir.Var, tir.Expr]) -> list[Group] | None:
    """A group for each binding, if no two share a loop and there is no condition: most blocks."""
    if place.block.predicate is not tir.TRUE:
        return None
    groups: list[Group] = []
    seen: set[tir.Var] = set()
    for pair in zip(place.block.iters, place.block.bindings, strict=True):
        used = _reach(pair[1], extents)
        if not seen.isdisjoint(used):
            return None
        seen |= used
        groups.append(Group([pair], [p for p in place.loops if p.var in used], tir.TRUE))
    return groups


def _merged(place: Place, extents: Mapping[tir.Var, tir.Expr]) -> list[Group]:
    """Merge bindings (and conditions) that share loops, directly or through extents."""
    owners: dict[tir.Var, int] = {}
    merged: list[tuple[list[Pair], list[tir.Expr], set[tir.Var]]] = []

    def add(pair: Pair | None, cond: tir.Expr | None, used: AbstractSet[tir.Var]) -> None:
        touched = sorted({owners[v] for v in used if v in owners})
        target = touched[0] if touched else len(merged)
        if not touched:
            merged.append(([], [], set()))
        pairs, conds, variables = merged[target]
        for number in touched[1:]:
            more_pairs, more_conds, more = merged[number]
            pairs += more_pairs
            conds += more_conds
            variables |= more
            merged[number] = ([], [], set())
        if pair is not None:
            pairs.append(pair)
        if cond is not None:
            conds.append(cond)
        variables |= used
        owners.update(dict.fromkeys(variables, target))

    for it, binding in zip(place.block.iters, place.block.bindings, strict=True):
        add((it, binding), None, _reach(binding, extents))
    for cond in conjuncts(place.block.predicate):
        add(None, cond, _reach(cond, extents))
    groups = []
    for pairs, conds, variables in merged:
        if pairs or conds:
            predicate = tir.TRUE if not conds else conds[0]
            for cond in conds[1:]:
                predicate = tir.BitAnd(predicate, cond)
            groups.append(Group(pairs, [p for p in place.loops if p.var in variables], predicate))
    return groups


def _reach(expr: tir.Expr, extents: Mapping[tir.Var, tir.Expr]) -> AbstractSet[tir.Var]:
    """The loops that an expression depends on, also through the extents of loops."""
    found = free_vars(expr)
    for var in found:
        extent = extents.get(var)
        if extent is not None and type(extent) is not tir.Const:
            found = found | _reach(extent, extents)
    return found & extents.keys()


def _solve(group: Group, extents: Mapping[tir.Var, tir.Expr], maps: Maps) -> None:
    if not group.pairs:  # a condition that no binding shows
        group.refusal = Refusal(Reason.PREDICATE, None, tuple(p.var for p in group.loops))
        return
    if group.predicate is tir.TRUE and len(group.pairs) == 1 and _is_plain(group, extents):
        return
    bindings = [b for _, b in group.pairs]
    domain = [it.extent for it, _ in group.pairs]
    loops = [(p.var, p.extent) for p in group.loops]
    found = maps.detect(bindings, domain, loops, group.predicate)
    if isinstance(found, Refusal):
        group.refusal = found
        return
    group.unused = frozenset(found.unused)
    twice = zip(found.uses, found.overlapping, strict=True)
    group.overlapping = frozenset(v for used, again in twice if again for v in used)


def _is_plain(group: Group, extents: Mapping[tir.Var, tir.Expr]) -> bool:
    """A loop, a mixed radix number of constants, or the tiles of a cover: surely exact."""
    ((it, binding),) = group.pairs
    if isinstance(binding, tir.Var):
        return extents.get(binding) == it.extent
    terms = summands(binding, 1)
    if terms is None:
        return False
    variables = [t for _, t in terms if isinstance(t, tir.Var)]
    if len(set(variables)) != len(group.loops) or len(set(variables)) != len(variables):
        return False
    if len(variables) == len(terms):
        lengths = [tir.int_value(extents[v]) for v in variables if v in extents]
        if len(lengths) == len(terms) and None not in lengths:
            factors = [k for k, _ in terms]
            return _is_radix(factors, lengths, tir.int_value(it.extent))  # type: ignore[arg-type]
    return _is_tiling(terms, it.extent, extents)


def summands(expr: tir.Expr, factor: int = 1) -> list[tuple[int, tir.Expr]] | None:
    """The summands of an expression with constant factors; None if it is no such sum."""
    match expr:
        case tir.Add(a=a, b=b):
            left, right = summands(a, factor), summands(b, factor)
            return None if left is None or right is None else left + right
        case tir.Mul(a=a, b=tir.Const(value=int() as value)):
            return summands(a, factor * value)
        case tir.Var():
            return [(factor, expr)]
        case tir.Const(value=0):
            return []
        case tir.TileStart(tile=tir.Var()):
            return [(factor, expr), (0, expr.tile)]
    return None


def _is_radix(factors: list[int], lengths: list[int], whole: int | None) -> bool:
    reach = 1
    for factor, length in sorted(zip(factors, lengths, strict=True)):
        if factor != reach and length != 1:
            return False
        reach *= length
    return reach == whole and reach > 0


def _is_tiling(
    terms: list[tuple[int, tir.Expr]], whole: tir.Expr, extents: Mapping[tir.Var, tir.Expr]
) -> bool:
    """`start(t) + j` with `j < size(t)` and `t < count`, for a cover of the whole domain."""
    for factor, part in terms:
        size = extents.get(part) if isinstance(part, tir.Var) else None
        if factor != 1 or type(size) is not tir.TileSize or not isinstance(size.tile, tir.Var):
            continue
        cover, tile = size.cover, size.tile
        start = covers.start(cover, tile)
        step = covers.regular_size(cover)
        kept = [(k, t) for k, t in terms if t is not part and k != 0]
        expected = [(1, start)] if step is None else [(step, tile)]
        if kept != expected or extents.get(tile) != covers.count(cover):
            return False
        return covers.total(cover) == whole
    return False
