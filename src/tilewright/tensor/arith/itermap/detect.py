"""Detecting iterator maps: do the bindings of a block fill its domain, each loop used once?

    detect((i // 4, i % 4), (8, 4), [(i, 32)])          # an exact map
    detect((i, i * 2), (8, 16), [(i, 8)])               # refused: DEPENDENT
    detect((i0 * 4 + i1,), (10,), loops, i0 * 4 + i1 < 10)   # exact under its predicate

Supported: sums of loops and of their digits with constant or symbolic scales; fused loops, also
when they are split again; tiles of covers, also when tile numbers are split, fused or tiled; guards
that cut a sum; reversed loops; windows that overlap (`t·4 + x` with `x < 6`), which are reported as
such. Symbolic extents are supported where equalities can be proved. Everything else is refused with
a reason; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.tensor.arith.analyzer import Analyzer
from tilewright.tensor.arith.compare import facts_of
from tilewright.tensor.arith.fold import TRUE
from tilewright.tensor.arith.itermap.absorb import absorb_dividends, absorb_guards, absorb_tiles
from tilewright.tensor.arith.itermap.digits import (
    ONE,
    Chain,
    Digit,
    Sum,
    chain,
    equal,
    read,
    source_extent,
)
from tilewright.tensor.arith.itermap.inverse import invert
from tilewright.tensor.arith.itermap.plain import plain_uses
from tilewright.tensor.arith.itermap.result import Reason, Refusal
from tilewright.tensor.arith.itermap.system import Fused, Leaf, System, Tiled
from tilewright.tensor.arith.linear import Linear, constant, plus
from tilewright.tensor.arith.rebuild import expression
from tilewright.tensor.arith.space import NotAffine
from tilewright.tensor.arith.tiles import tile_normal
from tilewright.tensor.expr import BitAnd, Const, Expr, Lt, Var, as_index, int_value
from tilewright.tensor.visit import substitute

__all__ = ["IterMap", "compose", "detect"]

Loops = Sequence[tuple[Var, Expr | int]]


@dataclass(frozen=True)
class Problem:
    """The question: these bindings, for a domain, from loops (outermost first), where a predicate
    holds; `outer` has variables that are constant here, with their extents.
    """

    bindings: tuple[Expr, ...]
    domain: tuple[Expr, ...]
    loops: tuple[tuple[Var, Expr], ...]
    predicate: Expr
    outer: Mapping[Var, Expr | int]


@dataclass(frozen=True)
class _Solution:
    """The system of a map: each leaf as digits, and the number of digits of whole variables."""

    system: System
    chains: Mapping[Leaf, Chain]
    complete: Mapping[Var, int]


@dataclass(frozen=True)
class IterMap:
    """A map from loops to iterators that takes every point of the domain.

    `uses` has the loops of each binding, `overlapping` says where values are taken more than once,
    `unused` has the loops that (at least in part) no binding uses: the block is repeated for them.
    """

    problem: Problem
    uses: tuple[tuple[Var, ...], ...]
    overlapping: tuple[bool, ...]
    unused: tuple[Var, ...]

    @property
    def is_exact(self) -> bool:
        """Whether every point of the domain is taken exactly once."""
        return not self.unused and not any(self.overlapping)

    def inverse(self, iterators: Sequence[Var | Expr]) -> dict[Var, Expr]:
        """Each loop in terms of the iterators, as far as they determine it.

        With an exact map that is all loops; a loop of extent one is zero.
        """
        problem = self.problem
        solution = _solve(problem)
        assert isinstance(solution, _Solution)
        own = {v: e for v, e in zip(iterators, problem.domain, strict=True) if isinstance(v, Var)}
        analyzer = Analyzer({**problem.outer, **own})
        found = invert(solution.system, solution.chains, solution.complete, iterators, analyzer)
        space = solution.system.space
        ones = {v: Const(0) for v, _ in problem.loops if isinstance(space.var(v), int)}
        return {v: found[v] for v, _ in problem.loops if v in found} | ones


def detect(
    bindings: Sequence[Expr],
    domain: Sequence[Expr | int],
    loops: Loops,
    predicate: Expr = TRUE,
    outer: Mapping[Var, Expr | int] | None = None,
) -> IterMap | Refusal:
    """The map from `loops` to iterators with these bindings and extents, or why there is none."""
    nest = tuple([(var, as_index(extent)) for var, extent in loops])
    extents = tuple([as_index(extent) for extent in domain])
    problem = Problem(tuple(bindings), extents, nest, predicate, outer or {})
    if type(predicate) is Const and predicate.value:
        uses = plain_uses(problem.bindings, extents, nest)
        if uses is not None:
            used = {var for group in uses for var in group}
            left = tuple([v for v, e in nest if v not in used and int_value(e) != 1])
            return IterMap(problem, uses, (False,) * len(uses), left)
    solution = _solve(problem)
    return solution if isinstance(solution, Refusal) else _answer(problem, solution)


def _answer(problem: Problem, solution: _Solution) -> IterMap:
    system = solution.system
    repeated = _repeated(system, solution.chains)
    own = system.leaves[: len(problem.bindings)]
    return IterMap(
        problem,
        tuple(system.loops_in(leaf.form) for leaf in own),
        tuple(leaf in repeated for leaf in own),
        _unused(system, problem.loops, solution.complete),
    )


def _solve(problem: Problem) -> _Solution | Refusal:
    system = System.over(problem.outer, problem.loops)
    refused = _read(system, problem)
    for absorb in (absorb_tiles, absorb_guards, absorb_dividends):
        refused = absorb(system) if refused is None else refused
    if refused is not None:
        return refused
    sums = _sums(system)
    if isinstance(sums, Refusal):
        return sums
    complete = _complete(system, sums)
    if isinstance(complete, Refusal):
        return complete
    chains = _chains(system, sums)
    return chains if isinstance(chains, Refusal) else _Solution(system, chains, complete)


def _read(system: System, problem: Problem) -> Refusal | None:
    """Fill the system: a leaf for each binding, a guard for each part of the predicate."""
    space = system.space

    for n, (binding, extent) in enumerate(zip(problem.bindings, problem.domain, strict=True)):
        try:
            form, size = space.linear(binding), space.linear(extent)
        except NotAffine:
            return Refusal(Reason.NOT_AFFINE, n)
        system.leaves.append(Leaf(tile_normal(space, form), tile_normal(space, size), n))
    for cond in _conjuncts(space.simplify(problem.predicate)):
        if type(cond) is Const and cond.value:
            continue
        facts = [tile_normal(space, fact) for fact in facts_of(space, cond)]
        if type(cond) is not Lt or not facts:
            return Refusal(Reason.PREDICATE, None)
        system.guards += facts
    return None


def _conjuncts(cond: Expr) -> list[Expr]:
    if type(cond) is BitAnd:
        return _conjuncts(cond.a) + _conjuncts(cond.b)
    return [cond]


def _sums(system: System) -> dict[Leaf, Sum] | Refusal:
    """Each leaf as a sum of digits."""
    sums: dict[Leaf, Sum] = {}
    for leaf in system.leaves:
        total = read(system.space, leaf.form, system.first)
        if total is None:
            where = system.binding_of(leaf.owner)
            return Refusal(Reason.NOT_AFFINE, where, system.loops_in(leaf.form))
        sums[leaf] = total
    return sums


def _chains(system: System, sums: Mapping[Leaf, Sum]) -> dict[Leaf, Chain] | Refusal:
    """Each leaf as a mixed radix number that fills its extent."""
    chains: dict[Leaf, Chain] = {}
    for leaf, total in sums.items():
        numbers = chain(system.space, total.digits)
        if isinstance(numbers, Reason):
            return Refusal(numbers, system.binding_of(leaf.owner), system.loops_in(leaf.form))
        fault = _misfit(system, total.base, numbers.reach, leaf.extent)
        if fault is not None:
            if isinstance(system.groups.get(leaf.owner), Fused):  # type: ignore[arg-type]
                fault = Reason.UNKNOWN  # its extent was found before other groups changed it
            found = expression(plus(numbers.reach, total.base))
            where, loops = system.binding_of(leaf.owner), system.loops_in(leaf.form)
            return Refusal(fault, where, loops, expression(leaf.extent), found)
        chains[leaf] = numbers
    return chains


def _misfit(system: System, base: Linear, reach: Linear, extent: Linear) -> Reason | None:
    """What is wrong with values in `[base, base + reach)` for a domain `[0, extent)`."""
    space = system.space
    if equal(space, base, constant(0)) and equal(space, reach, extent):
        return None
    below, end = plus(constant(-1), base, -1), plus(base, reach)
    if space.never_negative(below) or space.never_negative(
        plus(plus(end, extent, -1), constant(-1))
    ):
        return Reason.OUTSIDE
    if space.never_negative(plus(base, constant(-1))) or space.never_negative(
        plus(plus(extent, end, -1), constant(-1))
    ):
        return Reason.PARTIAL
    return Reason.UNKNOWN


def _complete(system: System, sums: Mapping[Leaf, Sum]) -> dict[Var, int] | Refusal:
    """How many digits each variable has, for those whose digits are all used, each once."""
    uses: dict[Var, list[tuple[Digit, Leaf]]] = {}
    for leaf, total in sums.items():
        for digit in total.digits:
            uses.setdefault(digit.source, []).append((digit, leaf))
    fixed = (group for group in system.groups if isinstance(system.space.var(group), int))
    complete: dict[Var, int] = dict.fromkeys(fixed, 0)
    for source, digits in uses.items():
        whole = _partition(system, source, digits)
        if isinstance(whole, Refusal):
            return whole
        if whole:
            complete[source] = len(digits)
    return complete


def _partition(system: System, source: Var, digits: list[tuple[Digit, Leaf]]) -> bool | Refusal:
    """Whether digits make up the whole variable; a refusal if they are not independent."""
    space = system.space
    left, reach, whole = list(digits), ONE, True
    while left:
        found = next((u for u in left if equal(space, u[0].lower, reach)), None)
        if found is None:
            found = next((u for u in left if _is_multiple(u[0].lower, reach)), None)
            whole = False
        if found is None:
            leaf = left[-1][1]
            shared = _root_loops(system, source)
            return Refusal(Reason.DEPENDENT, system.binding_of(leaf.owner), shared)
        reach = space.multiply(found[0].lower, found[0].extent)
        left.remove(found)
    extent = source_extent(space, source)
    if equal(space, reach, extent):
        return whole
    if space.never_negative(plus(extent, reach, -1)):
        return False if _divides(space, reach, extent) else _cut(system, source, digits, reach)
    return _cut(system, source, digits, reach)


def _is_multiple(lower: Linear, reach: Linear) -> bool:
    """A digit further up, with a whole digit between that nothing uses."""
    if lower.terms or reach.terms:
        return False
    return lower.const > reach.const and lower.const % reach.const == 0


def _divides(space: Analyzer, reach: Linear, extent: Linear) -> bool:
    if reach.terms:
        return False
    return space.floor_mod(extent, reach.const).same(constant(0))


def _cut(system: System, source: Var, digits: list[tuple[Digit, Leaf]], reach: Linear) -> Refusal:
    """Digits that do not divide their source: some of their combinations never come."""
    where = system.binding_of(digits[-1][1].owner)
    extent = source_extent(system.space, source)
    known = not reach.terms and not extent.terms
    reason = Reason.PARTIAL if known else Reason.UNKNOWN
    loops = _root_loops(system, source)
    return Refusal(reason, where, loops, expression(reach), expression(extent))


def _root_loops(system: System, source: Var) -> tuple[Var, ...]:
    return system.loops_in(system.space.linear(source))


def _repeated(system: System, chains: Mapping[Leaf, Chain]) -> set[Leaf]:
    """The leaves whose values are taken more than once, by themselves or by a group inside."""
    known: dict[Var, bool] = {}

    def repeats(leaf: Leaf) -> bool:
        numbers = chains[leaf]
        return not numbers.exact or any(group_repeats(d.source) for d in numbers.digits)

    def group_repeats(var: Var) -> bool:
        if var not in known:
            group = system.groups.get(var)
            if isinstance(group, Fused):
                known[var] = repeats(group.leaf)
            elif isinstance(group, Tiled):
                longer = bool(group.more.terms or group.more.const)
                known[var] = longer or repeats(group.tile) or repeats(group.inside)
            else:
                known[var] = False
        return known[var]

    return {leaf for leaf in chains if repeats(leaf)}


def _unused(
    system: System, loops: tuple[tuple[Var, Expr], ...], complete: Mapping[Var, int]
) -> tuple[Var, ...]:
    space = system.space
    partly = (system.loops_in(space.linear(g)) for g in system.groups if g not in complete)
    repeated = {v for loops_in_group in partly for v in loops_in_group}
    repeated |= {v for v, _ in loops if v not in complete and not isinstance(space.var(v), int)}
    return tuple(v for v, _ in loops if v in repeated)


def compose(first: IterMap, then: IterMap) -> IterMap | Refusal:
    """The map from the loops of `first` to the iterators of `then`.

    The loops of `then` are the iterators of `first`, in order.
    """
    mine, other = first.problem, then.problem
    values = {v: b for (v, _), b in zip(other.loops, mine.bindings, strict=True)}
    bindings = tuple(substitute(b, values) for b in other.bindings)
    where = substitute(other.predicate, values)
    if type(where) is Const or type(mine.predicate) is Const:
        predicate = mine.predicate if type(where) is Const else where
    else:
        predicate = mine.predicate & where
    return detect(bindings, other.domain, mine.loops, predicate, {**other.outer, **mine.outer})
