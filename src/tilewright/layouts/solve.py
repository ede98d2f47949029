"""One alternative for each variable, such that all of them together cost the least (a PBQP).

A variable has a cost for each of its alternatives, an edge one for each pair of alternatives of its
ends. The problem is a sum of tables, and a variable is *eliminated* from it: for every choice of
its neighbours the best alternative is taken, and what that costs is a table over the neighbours.

    a ─ b ─ c   becomes   a ─ c   with   ac[i, k] = min over j of  ab[i, j] + b[j] + bc[j, k]

Without neighbours this leaves a number, with one a vector, with two an edge, with more a table of
more dimensions. All of it is exact, and chains, trees, cycles and series-parallel graphs never need
more than edges. Choices are made backwards, beginning with the variable eliminated last.

Where a table would become too large, the variable is *split*: groups of its tables get a copy of it
each, and copies may choose differently. Elimination then ends with a lower bound, and the choices
made backwards are a good guess. Branch and bound closes the gap between the two: it decides the
variable with the most neighbours in every way, until nothing is left that could be better, or its
budget is spent.

Infinite costs say what is impossible. "The least" is meant up to rounding (`SLACK`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from tilewright.errors import Code, GraphError
from tilewright.layouts.dominance import undominated

__all__ = ["Problem", "Solution", "least_costs", "solve"]

G060 = Code("G060", "no alternative of `{variable}` is possible together with those of the others")

MAX_ENTRIES: Final = 1 << 18
"""Of a table over a variable and three neighbours or more: five with eight alternatives each."""
THRIFT: Final = 16
"""Tables are smaller by this once something is split: bounds are needed more often than good."""
BUDGET: Final = 2000
"""Eliminations for branch and bound, of which each takes half a millisecond."""
SLACK: Final = 1e-9
"""Of a cost: what is better by less than this is not looked for."""
ROUNDING: Final = 8 * np.finfo(np.float64).eps
MAX_NEIGHBOURS: Final = 24
"""Tables of more variables than this are never made; NumPy ends at 32 dimensions."""

Array = npt.NDArray[np.float64]
Scope = tuple[int, ...]
"""The variables of a table, ascending: one dimension for each."""


@dataclass(frozen=True, slots=True)
class Problem:
    """`costs` has a vector for each variable; edges are (u, v, matrix) with the alternatives of u
    in rows. Edges between the same two variables add up; `names` are for errors.
    """

    costs: Sequence[npt.ArrayLike]
    edges: Sequence[tuple[int, int, npt.ArrayLike]] = ()
    names: Sequence[str] = ()

    def cost(self, choice: Sequence[int]) -> float:
        """What a choice costs."""
        own = (np.asarray(costs)[k] for costs, k in zip(self.costs, choice, strict=True))
        pairs = (np.asarray(matrix)[choice[u], choice[v]] for u, v, matrix in self.edges)
        return math.fsum((*own, *pairs))


@dataclass(frozen=True, slots=True)
class Solution:
    """The alternative of each variable; `exact` if it is known that no choice costs less."""

    choice: tuple[int, ...]
    cost: float
    exact: bool


def solve(problem: Problem, *, max_entries: int = MAX_ENTRIES, budget: int = BUDGET) -> Solution:
    """The choice that costs the least, or a good one where that is too much work.

    Equal problems have equal solutions, and of alternatives that are equally good with what was
    chosen before a variable takes the first.
    """
    own = [_array(costs) for costs in problem.costs]
    edges = [(u, v, _array(costs)) for u, v, costs in problem.edges]
    assert all(matrix.shape == (own[u].size, own[v].size) for u, v, matrix in edges)
    possible = undominated(own, edges)
    for x, alternatives in enumerate(possible):
        if not alternatives.size:
            raise _impossible(problem, x)
    search = _Search(_Tables.of(problem, possible), max_entries, budget)
    chosen = search.run()
    if chosen is None:
        raise _impossible(problem, search.dead_end)
    choice = tuple(int(alternatives[chosen[x]]) for x, alternatives in enumerate(possible))
    return Solution(choice, problem.cost(choice), search.is_exact)


def least_costs(problem: Problem, variable: int, *, max_entries: int = MAX_ENTRIES) -> Array | None:
    """What everything costs at the least with each alternative of one variable, all at once.

    All others are eliminated. None where that takes too large a table; `solve` can then be asked
    for one alternative after another.
    """
    own = [_array(costs) for costs in problem.costs]
    edges = [(u, v, _array(costs)) for u, v, costs in problem.edges]
    kept = variable, variable, np.zeros((own[variable].size,) * 2)  # dominance leaves loops alone
    possible = undominated(own, [*edges, kept])
    found = np.full(own[variable].size, np.inf)
    if not all(alternatives.size for alternatives in possible):
        return found
    tables = _Tables.of(problem, possible)
    if not tables.eliminate_others(variable, max_entries):
        return None
    rest = tables.tables.get((variable,), np.zeros(1))  # a single alternative is decided already
    found[possible[variable]] = rest + tables.tables[()]
    return found


def _array(costs: npt.ArrayLike) -> Array:
    array = np.asarray(costs, np.float64)
    assert (array > -np.inf).all(), "a cost is a number, or infinite"
    return array


def _impossible(problem: Problem, x: int) -> GraphError:
    names = problem.names or [f"variable {y}" for y in range(len(problem.costs))]
    near = sorted({y for u, v, _ in problem.edges if x in (u, v) for y in (u, v)} - {x})
    alone = np.isfinite(_array(problem.costs[x]))
    facts = {
        "variable": names[x],
        "possible by themselves": f"{alone.sum()} of {alone.size}",
        "neighbours": ", ".join(f"`{names[y]}`" for y in near) or "none",
    }
    hint = "give one of its alternatives a finite cost, also together with each neighbour"
    return GraphError(G060, facts, hint=hint)


class _Tables:
    """A sum of tables over variables; arrays are shared by copies and never written to."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.tables: dict[Scope, Array] = {(): np.zeros(())}
        self.scopes: dict[int, dict[Scope, None]] = {x: {} for x in range(len(sizes))}
        self.fixed: dict[int, int] = {}
        self.trail: list[tuple[int, list[tuple[Scope, Array]]]] = []
        self.dead_end: int | None = None  # the first variable with which nothing was possible

    @classmethod
    def of(cls, problem: Problem, possible: Sequence[npt.NDArray[np.intp]]) -> Self:
        """The tables of a problem, over the alternatives that are possible by themselves."""
        made = cls([alternatives.size for alternatives in possible])
        edges: dict[Scope, Array] = {}
        scope: Scope
        for x, costs in enumerate(problem.costs):
            made.add((x,), _array(costs)[possible[x]])
        for u, v, costs in problem.edges:
            matrix = _array(costs)[np.ix_(possible[u], possible[v])]
            if u == v:
                made.add((u,), np.diagonal(matrix))
                continue
            scope, table = ((u, v), matrix) if u < v else ((v, u), matrix.T)
            edges[scope] = edges[scope] + table if scope in edges else table
        for scope, table in edges.items():
            made.add(scope, table)
        for x in [x for x, size in enumerate(made.sizes) if size == 1]:
            made.fix(x, 0)
        return made

    def copy(self) -> _Tables:
        new = _Tables(())
        new.sizes, new.dead_end = self.sizes, self.dead_end
        new.tables, new.fixed, new.trail = self.tables.copy(), self.fixed.copy(), self.trail.copy()
        new.scopes = {x: scopes.copy() for x, scopes in self.scopes.items()}
        return new

    def add(self, scope: Scope, table: Array) -> None:
        """Add a table; what depends on one variable alone goes to that variable."""
        if scope in self.tables:
            table = table + self._take(scope)
        if len(scope) > 1:
            table, is_tie = self._simplified(scope, table)
            if not is_tie:
                return
        self.tables[scope] = table
        for x in scope:
            self.scopes[x][scope] = None

    def _simplified(self, scope: Scope, table: Array) -> tuple[Array, bool]:
        """The rest of a table, and whether it still ties its variables together."""
        rest, settled = table, np.zeros((), np.bool_)
        for axis, x in enumerate(scope):
            least = rest.min(axis=tuple(a for a in range(len(scope)) if a != axis), keepdims=True)
            is_possible = np.isfinite(least)
            rest = rest - np.where(is_possible, least, 0.0)
            settled = settled | ~is_possible  # the costs of the variable say so from now on
            self.add((x,), least.ravel())
        is_zero = np.isfinite(table) & (rest <= ROUNDING * np.abs(table))
        return rest, not (settled | is_zero).all()

    def _take(self, scope: Scope) -> Array:
        for x in scope:
            del self.scopes[x][scope]
        return self.tables.pop(scope)

    def around(self, x: int) -> set[int]:
        """The neighbours of a variable."""
        return {y for scope in self.scopes[x] for y in scope if y != x}

    def effort(self, x: int) -> float:
        """Entries of the sum of a variable's tables; below zero for two neighbours or less."""
        variables = {x}
        for scope in self.scopes[x]:
            variables.update(scope)
            if len(variables) > MAX_NEIGHBOURS:
                return math.inf
        return len(variables) - 4 if len(variables) <= 3 else self._entries(variables)

    def _entries(self, variables: Iterable[int]) -> int:
        return math.prod(self.sizes[x] for x in variables)

    def fix(self, x: int, alternative: int) -> None:
        """Decide for an alternative."""
        for scope in list(self.scopes[x]):
            axis = scope.index(x)
            table = self._take(scope).take([alternative], axis).squeeze(axis)
            self._leave(x, scope[:axis] + scope[axis + 1 :], table)
        del self.scopes[x]
        self.fixed[x] = alternative

    def eliminate(self, x: int, max_entries: int) -> None:
        """Replace a variable by the costs of its best alternatives; split it where needed."""
        own = self.tables[x,]
        sums = [self._sum(x, group) for group in self._groups(x, max_entries)]
        parts = [(scope, self._take(scope)) for scope in list(self.scopes[x])]
        del self.scopes[x]
        self.trail.append((x, parts))
        for (scope, table), share in zip(sums, _shares(own, [t for _, t in sums]), strict=True):
            self._leave(x, scope, (table + share).min(axis=-1))

    def eliminate_others(self, kept: int, max_entries: int) -> bool:
        """Eliminate all but one variable; whether that goes without a split."""
        queue = [(self.effort(x), x) for x in self.scopes if x != kept]
        heapq.heapify(queue)
        while queue:
            effort, x = heapq.heappop(queue)
            if x not in self.scopes or effort != self.effort(x):
                continue  # what changed is in the queue again
            if effort > max_entries:
                return False
            near = self.around(x) - {kept}
            self.eliminate(x, max_entries)
            for y in near:
                heapq.heappush(queue, (self.effort(y), y))
        return True

    def _leave(self, x: int, scope: Scope, table: Array) -> None:
        """Add what a variable leaves behind."""
        if self.dead_end is None and not np.isfinite(table).any():
            self.dead_end = x
        self.add(scope, table)

    def _groups(self, x: int, max_entries: int) -> list[list[Scope]]:
        """Tables that are added up: all of a variable, if the sum does not become too large."""
        scopes = [scope for scope in self.scopes[x] if len(scope) > 1]
        if self.effort(x) <= max_entries:
            return [scopes]
        groups: list[tuple[set[int], list[Scope]]] = []
        for scope in sorted(scopes, key=lambda scope: (-len(scope), scope)):
            for variables, members in groups:
                if self._entries(variables.union(scope)) <= max_entries:
                    variables.update(scope)
                    members.append(scope)
                    break
            else:
                groups.append((set(scope), [scope]))
        return [members for _, members in groups]

    def _sum(self, x: int, scopes: Sequence[Scope]) -> tuple[Scope, Array]:
        """The others of some tables of a variable, and their sum with the variable at the end."""
        others = tuple(sorted({y for scope in scopes for y in scope if y != x}))
        total = np.zeros(self.sizes[x])
        for scope in scopes:
            shape = [self.sizes[y] if y in scope else 1 for y in (*others, x)]
            total = total + np.moveaxis(self.tables[scope], scope.index(x), -1).reshape(shape)
        return others, total

    def decide(self) -> dict[int, int]:
        """The best alternatives of the eliminated variables, given those eliminated later."""
        chosen = self.fixed.copy()
        for x, parts in reversed(self.trail):
            chosen[x] = int(_given(x, parts, chosen).argmin())
        return chosen

    def cost(self, chosen: Mapping[int, int]) -> float:
        """What a choice costs."""
        return math.fsum(
            table[tuple(chosen[x] for x in scope)] for scope, table in self.tables.items()
        )

    def improved(self, chosen: dict[int, int]) -> dict[int, int]:
        """A choice that gets no better by changing one variable, or two with an edge."""
        cost, before = self.cost(chosen), math.inf
        while cost < before - SLACK * abs(cost):
            chosen = chosen.copy()
            for edge in [scope for scope in self.tables if len(scope) == 2]:
                u, v = edge
                at_u, at_v = (
                    _given(x, [(s, self.tables[s]) for s in self.scopes[x] if s != edge], chosen)
                    for x in edge
                )
                total = self.tables[edge] + at_u[:, None] + at_v
                if total.min() < total[chosen[u], chosen[v]]:
                    chosen[u], chosen[v] = map(int, np.unravel_index(total.argmin(), total.shape))
            cost, before = self.cost(chosen), cost
        return chosen


def _given(x: int, parts: Iterable[tuple[Scope, Array]], chosen: Mapping[int, int]) -> Array:
    """What the alternatives of a variable cost, with those that are chosen for the others."""
    total = np.zeros(())
    for scope, table in parts:
        total = total + table[tuple(slice(None) if y == x else chosen[y] for y in scope)]
    return total


def _shares(own: Array, sums: Sequence[Array]) -> list[Array]:
    """A variable's own costs, shared by its copies such that all of them would choose alike.

    With its share an alternative costs each copy the same at the least; bounds are much better.
    """
    if len(sums) == 1:
        return [own]
    least = [table.min(axis=tuple(range(table.ndim - 1))) for table in sums]
    mean = np.sum([own, *least], axis=0) / len(sums)
    return [mean - np.where(np.isfinite(mean), part, 0.0) for part in least]


class _Search:
    """Branch and bound; what elimination alone solves ends before the first branch."""

    def __init__(self, start: _Tables, max_entries: int, budget: int) -> None:
        self.start, self.max_entries, self.budget = start, max_entries, budget
        self.best: dict[int, int] | None = None
        self.goal = math.inf  # only what costs less is of interest
        self.dead_end = 0  # where the whole problem turned out to be impossible
        self.is_exact = True

    def run(self) -> dict[int, int] | None:
        """The best choice, or a good one if the budget is too small; None if all is impossible."""
        nodes = [self.relax(self.start.copy())]
        while nodes:
            bound, core = nodes.pop()
            if core is None or bound >= self.goal:
                continue
            x = max(core.scopes, key=lambda x: (len(core.around(x)), -x))
            self.budget -= core.sizes[x] * len(core.scopes)
            if self.budget < 0 and self.best is not None:
                self.best, self.is_exact = self.start.improved(self.best), False
                break
            nodes += self._branches(core, x)
        return self.best

    def _branches(self, core: _Tables, x: int) -> list[tuple[float, _Tables | None]]:
        """What is left with each alternative of a variable, the most promising one last."""
        found = []
        for alternative in range(core.sizes[x]):
            child = core.copy()
            child.fix(x, alternative)
            found.append(self.relax(child))
        return sorted(found, key=lambda node: node[0])[::-1]

    def relax(self, tables: _Tables) -> tuple[float, _Tables | None]:
        """Eliminate everything and look at the choice: the bound, and what there was to split."""
        core = None
        queue = [(tables.effort(x), x) for x in tables.scopes]
        heapq.heapify(queue)
        while queue:
            effort, x = heapq.heappop(queue)
            if x not in tables.scopes or effort != tables.effort(x):
                continue  # what changed is in the queue again
            if core is None and effort > self.max_entries:
                core = tables.copy()
            near = tables.around(x)
            tables.eliminate(x, self.max_entries // (1 if core is None else THRIFT))
            for y in near:
                heapq.heappush(queue, (tables.effort(y), y))
        bound = float(tables.tables[()])
        if bound < self.goal:
            self._offer(tables.decide())
        elif tables.dead_end is not None:
            self.dead_end = tables.dead_end
        return bound, core

    def _offer(self, chosen: dict[int, int]) -> None:
        """Keep a choice if it is better than the best one so far."""
        cost = self.start.cost(chosen)
        if cost < self.goal:
            self.best, self.goal = chosen, cost - SLACK * abs(cost)
