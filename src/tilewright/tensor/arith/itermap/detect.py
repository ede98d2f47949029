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
from dataclasses import dataclass, field

from tilewright.tensor.arith.analyzer import Analyzer
from tilewright.tensor.arith.fold import TRUE
from tilewright.tensor.arith.itermap.digits import Chain
from tilewright.tensor.arith.itermap.inverse import invert
from tilewright.tensor.arith.itermap.plain import plain_uses
from tilewright.tensor.arith.itermap.result import Refusal
from tilewright.tensor.arith.itermap.solve import Problem, Solution, solve
from tilewright.tensor.arith.itermap.system import Fused, Leaf, System, Tiled
from tilewright.tensor.ir import Const, Expr, Var, as_index, int_value
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["IterMap", "compose", "detect"]

Loops = Sequence[tuple[Var, Expr | int]]


@dataclass(frozen=True)
class IterMap:
    """A map from loops to iterators that takes every point of the domain.

    `uses` has the loops of each binding, `overlapping` says where values are taken more than once,
    `unused` has the loops that (at least in part) no binding uses: the block is repeated for them.
    """

    problem: Problem = field(repr=False)
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
        solution = solve(problem)
        assert isinstance(solution, Solution)
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
        found = _in_parts(problem)
        if found is not None:
            return found
    solution = solve(problem)
    return solution if isinstance(solution, Refusal) else _answer(problem, solution)


def _in_parts(problem: Problem) -> IterMap | Refusal | None:
    """Plain bindings at a glance, the others by themselves if they share nothing with these."""
    uses = plain_uses(problem.bindings, problem.domain, problem.loops)
    taken = {var for group in uses for var in group or ()}
    left = [n for n, group in enumerate(uses) if group is None]
    loops = tuple([(v, e) for v, e in problem.loops if v not in taken])
    unused = tuple([v for v, e in loops if int_value(e) != 1])
    if not left:
        return IterMap(problem, tuple(uses), (False,) * len(uses), unused)  # type: ignore[arg-type]
    bindings = tuple(problem.bindings[n] for n in left)
    rest = (*bindings, *(e for _, e in loops))
    if len(left) == len(uses) or not taken.isdisjoint(v for e in rest for v in free_vars(e)):
        return None
    domain = tuple(problem.domain[n] for n in left)
    part = Problem(bindings, domain, loops, problem.predicate, problem.outer)
    solution = solve(part)
    if isinstance(solution, Refusal):
        return None  # the whole problem says it in its own numbers
    found = _answer(part, solution)
    overlapping = [False] * len(uses)
    for n, own, repeats in zip(left, found.uses, found.overlapping, strict=True):
        uses[n], overlapping[n] = own, repeats
    return IterMap(problem, tuple(uses), tuple(overlapping), found.unused)  # type: ignore[arg-type]


def _answer(problem: Problem, solution: Solution) -> IterMap:
    system = solution.system
    repeated = _repeated(system, solution.chains)
    own = system.leaves[: len(problem.bindings)]
    return IterMap(
        problem,
        tuple(system.loops_in(leaf.form) for leaf in own),
        tuple(leaf in repeated for leaf in own),
        _unused(system, problem.loops, solution.complete),
    )


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
