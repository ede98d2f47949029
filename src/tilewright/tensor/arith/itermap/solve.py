"""Solving a system of bindings: every leaf a mixed radix number, every digit used once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilewright.tensor.arith.compare import facts_of
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
from tilewright.tensor.arith.itermap.dividends import absorb_dividends
from tilewright.tensor.arith.itermap.guards import absorb_guards, absorb_tile_guards
from tilewright.tensor.arith.itermap.result import Reason, Refusal
from tilewright.tensor.arith.itermap.system import Fused, Leaf, System
from tilewright.tensor.arith.itermap.tiles import absorb_tiles
from tilewright.tensor.arith.linear import Linear, constant, plus
from tilewright.tensor.arith.rebuild import expression
from tilewright.tensor.arith.space import NotAffine, Space
from tilewright.tensor.arith.tiles import tile_normal
from tilewright.tensor.ir import BitAnd, Expr, Var

__all__ = ["Problem", "Solution", "solve"]


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
class Solution:
    """The system of a map: each leaf as digits, and the number of digits of whole variables."""

    system: System
    chains: Mapping[Leaf, Chain]
    complete: Mapping[Var, int]


def solve(problem: Problem) -> Solution | Refusal:
    """The map that solves the problem, or why there is none."""
    system = System.over(problem.outer, problem.loops)
    refused = _read(system, problem)
    for absorb in (absorb_tile_guards, absorb_tiles, absorb_guards, absorb_dividends):
        refused = absorb(system) if refused is None else refused
    if refused is not None:
        return refused
    sums = _sums(system)
    if isinstance(sums, Refusal):
        return sums
    complete, chains = _complete(system, sums), _chains(system, sums)
    if isinstance(complete, Refusal):
        # If the digits could leave the domain, those that come may still fill it.
        wide = isinstance(chains, Refusal) and complete.reason is Reason.PARTIAL
        return replace(complete, reason=Reason.UNKNOWN) if wide else complete
    return chains if isinstance(chains, Refusal) else Solution(system, chains, complete)


def _read(system: System, problem: Problem) -> Refusal | None:
    """Fill the system: a leaf for each binding, a guard for each part of the predicate."""
    space = system.space
    for n, (binding, extent) in enumerate(zip(problem.bindings, problem.domain, strict=True)):
        try:
            form, size = space.linear(binding), space.linear(extent)
        except NotAffine:
            return Refusal(Reason.NOT_AFFINE, n)
        system.leaves.append(Leaf(tile_normal(space, form), tile_normal(space, size), n))
    for cond in _conjuncts(problem.predicate):
        if space.prove(cond):
            continue
        # Simplified, a guard might name other loops than the bindings do; as it is, it does not.
        facts = [tile_normal(space, fact) for fact in facts_of(space, cond)]
        if len(facts) != 1:
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
    if any(a.depth >= system.first for form in (base, reach, extent) for a in form.terms):
        return Reason.UNKNOWN  # its length depends on loops that some group has replaced
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
    left, reach, whole = sorted(digits, key=lambda use: use[0].lower.const), ONE, True
    while left:
        found = next((u for u in left if equal(space, u[0].lower, reach)), None)
        if found is None:
            found = next((u for u in left if _is_multiple(space, u[0].lower, reach)), None)
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
        return False  # all combinations come, and some come again
    return _cut(system, source, digits, reach)


def _is_multiple(space: Space, lower: Linear, reach: Linear) -> bool:
    """A digit further up, with a whole digit between that nothing uses."""
    if not space.never_negative(plus(plus(lower, reach, -1), constant(-1))):
        return False
    return space.floor_mod(lower, reach if reach.terms else reach.const).same(constant(0))


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
