"""The solver of the layout choice against exhaustive search, on graphs of many shapes.

Problems have up to eight variables with up to four alternatives: all choices fit into one array.
Small tables and budgets make branch and bound and the heuristic work on problems of this size.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import currently_in_test_context, given, note
from hypothesis import strategies as st

from tests.expect import raises_code
from tilewright.layouts.dominance import undominated
from tilewright.layouts.solve import Problem, Solution, _Search, _Tables, least_costs, solve

Pairs = list[tuple[int, int]]
SMALL, AMPLE = 1, 1 << 30  # tables of edges only; a budget that is never spent


def tree(rng: random.Random, count: int) -> Pairs:
    return [(rng.randrange(v), v) for v in range(1, count)]


def cycle(rng: random.Random, count: int) -> Pairs:
    places = rng.sample(range(count), count)
    return [(places[n - 1], places[n]) for n in range(count) if count > 1]


def series_parallel(rng: random.Random, count: int) -> Pairs:
    """Grown from one edge: an edge gets a variable in its middle, or a way around it."""
    pairs = [(0, 1)] if count > 1 else []
    for v in range(2, count):
        u, w = pairs[rng.randrange(len(pairs))]
        if rng.random() < 0.5:
            pairs.remove((u, w))
        pairs += [(u, v), (v, w)]
    return pairs


def clique(_rng: random.Random, count: int) -> Pairs:
    return list(itertools.combinations(range(count), 2))


def anything(rng: random.Random, count: int) -> Pairs:
    """With parallel edges in both directions, loops, and parts without an edge between them."""
    return [(rng.randrange(count), rng.randrange(count)) for _ in range(rng.randint(0, 2 * count))]


NARROW = (tree, cycle, series_parallel)
SHAPES = (*NARROW, clique, anything)


def numbers(rng: random.Random, shape: tuple[int, ...], holes: float) -> np.ndarray:
    """Costs: whole ones, of which many are equal, or not; `holes` of them impossible."""
    whole = rng.random() < 0.5
    draw = (lambda: float(rng.randint(-2, 5))) if whole else (lambda: rng.uniform(-1, 4))
    flat = [math.inf if rng.random() < holes else draw() for _ in range(math.prod(shape))]
    return np.array(flat).reshape(shape)


def problem_from(seed: int, shape: str, count: int, holes: float) -> Problem:
    rng = random.Random(seed)
    sizes = [rng.randint(1, 4) for _ in range(count)]
    pairs = next(s for s in SHAPES if s.__name__ == shape)(rng, count)
    costs = [numbers(rng, (size,), holes / 2) for size in sizes]
    return Problem(
        costs, [(u, v, numbers(rng, (sizes[u], sizes[v]), holes)) for u, v in pairs], "abcdefgh"
    )


def problems(*shapes: object, holes: Sequence[float] = (0.0, 0.2, 0.5)) -> st.SearchStrategy:
    names = [shape.__name__ for shape in shapes]
    seeds, counts = st.integers(0, 1 << 20), st.integers(1, 8)
    each = st.builds(
        problem_from, seeds, st.sampled_from(names), counts, holes=st.sampled_from(holes)
    )
    return st.lists(each, min_size=1, max_size=4)


def least_cost(problem: Problem) -> float:
    """By looking at every choice."""
    count = len(problem.costs)
    total = np.zeros([len(costs) for costs in problem.costs])
    for x, costs in enumerate(problem.costs):
        total = total + np.reshape(costs, [-1 if y == x else 1 for y in range(count)])
    for u, v, matrix in problem.edges:
        if u == v:
            matrix, axes = np.diagonal(matrix), (u,)
        else:
            matrix, axes = (matrix, (u, v)) if u < v else (np.transpose(matrix), (v, u))
        sizes = iter(np.shape(matrix))
        total = total + np.reshape(matrix, [next(sizes) if y in axes else 1 for y in range(count)])
    return float(total.min())


def check(problem: Problem, **options: int) -> Solution | None:
    """Solve, and compare with the least cost; None if nothing is possible, which is refused."""
    if currently_in_test_context():
        note(f"{problem} {options}")
    least = least_cost(problem)
    if least == math.inf:
        with raises_code("G060"):
            solve(problem, **options)
        return None
    found = solve(problem, **options)
    assert found.cost == problem.cost(found.choice)
    assert found.cost >= least - 1e-9
    if found.exact:
        assert found.cost == pytest.approx(least, abs=1e-9)
    return found


@given(problems(*SHAPES))
def test_small_problems_are_solved_by_elimination(several):
    for problem in several:
        found = check(problem, budget=0)
        assert found is None or found.exact


@given(problems(*SHAPES), st.randoms(use_true_random=False))
def test_all_alternatives_of_a_variable_are_answered_at_once(several, rng):
    for problem in several:
        variable = rng.randrange(len(problem.costs))
        found = least_costs(problem, variable)
        assert found is not None
        for k in range(len(problem.costs[variable])):
            costs = [*problem.costs]
            own = np.arange(len(costs[variable])) == k
            costs[variable] = np.where(own, costs[variable], math.inf)
            least = least_cost(Problem(costs, problem.edges))
            assert found[k] == pytest.approx(least, abs=1e-9)


@given(problems(clique), st.sampled_from([SMALL, 300]))
def test_what_takes_too_large_a_table_is_not_answered_at_once(several, max_entries):
    for problem in several:
        found = least_costs(problem, 0, max_entries=max_entries)
        assert found is None or float(found.min()) == pytest.approx(least_cost(problem), abs=1e-9)


@given(problems(clique, anything), st.sampled_from([SMALL, 300, 3000]))
def test_branch_and_bound_finds_the_least(several, max_entries):
    for problem in several:
        found = check(problem, max_entries=max_entries, budget=AMPLE)
        assert found is None or found.exact


@given(problems(*NARROW))
def test_trees_cycles_and_series_parallel_graphs_need_edges_only(several):
    for problem in several:
        found = check(problem, max_entries=SMALL, budget=0)
        assert found is None or found.exact


@given(problems(clique, anything), st.sampled_from([SMALL, 300]), st.sampled_from([0, 40, 80]))
def test_guesses_get_no_better_by_small_changes(several, max_entries, budget):
    for problem in several:
        found = check(problem, max_entries=max_entries, budget=budget)
        if found is None or found.exact:
            continue
        for changed in _neighbours(problem, found.choice):
            assert problem.cost(changed) >= found.cost - 1e-6


def _neighbours(problem: Problem, choice: tuple[int, ...]) -> list[list[int]]:
    """Choices that differ in one variable, or in the two of an edge."""
    found = []
    for ends in [*((x, x) for x in range(len(choice))), *((u, v) for u, v, _ in problem.edges)]:
        for pair in itertools.product(*(range(len(problem.costs[x])) for x in ends)):
            changed = list(choice)
            for x, alternative in zip(ends, pair, strict=True):
                changed[x] = alternative
            found.append(changed)
    return found


@given(problems(*SHAPES), st.sampled_from([SMALL, 300, 1 << 18]), st.integers(0, 1 << 20))
def test_the_least_cost_does_not_depend_on_how_a_problem_is_written(several, max_entries, seed):
    """Variables in another order, edges turned around, alternatives in another order."""
    rng = random.Random(seed)
    for problem in several:
        found = check(problem, max_entries=max_entries, budget=AMPLE)
        again = check(_rewritten(problem, rng), max_entries=max_entries, budget=AMPLE)
        assert (found is None) == (again is None)
        if found is not None and again is not None:
            assert again.cost == pytest.approx(found.cost, abs=1e-9)
            assert solve(problem, max_entries=max_entries, budget=AMPLE) == found


def _rewritten(problem: Problem, rng: random.Random) -> Problem:
    count = len(problem.costs)
    place = rng.sample(range(count), count)
    order = [rng.sample(range(len(costs)), len(costs)) for costs in problem.costs]
    costs: list[np.ndarray] = [np.zeros(0)] * count
    for x in range(count):
        costs[place[x]] = problem.costs[x][order[x]]
    edges = []
    for u, v, matrix in problem.edges:
        turned = (place[u], place[v], matrix[np.ix_(order[u], order[v])])
        edges.append(turned if rng.random() < 0.5 else (turned[1], turned[0], turned[2].T))
    rng.shuffle(edges)
    return Problem(costs, edges)


@given(problems(clique, anything, holes=(0.0,)), st.integers(0, 1 << 20))
def test_edges_that_are_sums_tie_nothing(several, seed):
    """Each variable then takes its own best, in whatever graph."""
    rng = random.Random(seed)
    for problem in several:
        edges = []
        for u, v, matrix in problem.edges:
            rows, columns = (numbers(rng, (size,), 0.2) for size in matrix.shape)
            edges.append((u, v, rows[:, None] + columns))
        apart = Problem(problem.costs, edges)
        assert all(len(scope) < 2 for scope in tables_of(apart).tables)
        check(apart)


@given(problems(*SHAPES), st.sampled_from([SMALL, 300, 1 << 18]))
def test_of_equal_alternatives_the_first_is_taken(several, max_entries):
    """A copy of an alternative, put behind it, is never chosen."""
    for problem in several:
        twice = [np.concatenate([costs, costs]) for costs in problem.costs]
        edges = [(u, v, np.tile(matrix, (2, 2))) for u, v, matrix in problem.edges]
        found = check(Problem(twice, edges), max_entries=max_entries)
        if found is not None:
            sizes = map(len, problem.costs)
            assert all(k < size for k, size in zip(found.choice, sizes, strict=True))


@given(problems(*SHAPES), st.sampled_from([SMALL, 300, 3000]))
def test_bounds_are_never_above_the_least(several, max_entries):
    for problem in several:
        note(str(problem))
        assert bound_of(problem, max_entries) <= least_cost(problem) + 1e-9


@given(problems(*SHAPES))
def test_what_is_left_out_is_not_needed(several):
    """Without the alternatives that others dominate the least is the same."""
    for problem in several:
        note(str(problem))
        left = undominated(problem.costs, problem.edges)
        if not all(places.size for places in left):
            assert least_cost(problem) == math.inf
            continue
        costs = [own[places] for own, places in zip(problem.costs, left, strict=True)]
        edges = [(u, v, matrix[np.ix_(left[u], left[v])]) for u, v, matrix in problem.edges]
        assert least_cost(Problem(costs, edges)) == pytest.approx(least_cost(problem), abs=1e-9)


def tables_of(problem: Problem) -> _Tables:
    return _Tables.of(problem, [np.flatnonzero(np.isfinite(costs)) for costs in problem.costs])


def bound_of(problem: Problem, max_entries: int) -> float:
    if any(np.isinf(costs).all() for costs in problem.costs):
        return math.inf
    tables = tables_of(problem)
    return _Search(tables, max_entries, budget=0).relax(tables.copy())[0]


def dense(seed: int) -> Problem:
    """All of seven variables have to do with each other, and no two costs are equal."""
    rng = np.random.default_rng(seed)
    pairs = itertools.combinations(range(7), 2)
    edges = [(u, v, rng.random((4, 4))) for u, v in pairs]
    return Problem([rng.random(4) for _ in range(7)], edges)


@pytest.mark.parametrize("max_entries", [SMALL, 1 << 10, 1 << 12])
def test_dense_problems_are_solved_by_search(max_entries):
    for seed in range(20):
        found = check(dense(seed), max_entries=max_entries, budget=AMPLE)
        assert found is not None
        assert found.exact


def test_guesses_are_good():
    """Over a fixed set: on average without any search, and each of them after a short one."""
    for max_entries in (SMALL, 1 << 10, 1 << 12):
        guesses, over = _guesses(max_entries, budget=0)
        assert guesses > 20
        assert over.mean() < 0.03
    guesses, over = _guesses(SMALL, budget=200)
    assert guesses > 10
    assert over.max() < 0.05


def _guesses(max_entries: int, budget: int) -> tuple[int, np.ndarray]:
    """How many solutions are not known to be exact, and by how much all are above the least."""
    several = [dense(seed) for seed in range(60)]
    found = [solve(problem, max_entries=max_entries, budget=budget) for problem in several]
    over = [s.cost / least_cost(problem) - 1 for s, problem in zip(found, several, strict=True)]
    return sum(not solution.exact for solution in found), np.array(over)


def test_bounds_are_better_with_larger_tables():
    bounds = [
        np.mean([bound_of(dense(seed), max_entries) for seed in range(40)])
        for max_entries in (SMALL, 1 << 10, 1 << 12, 1 << 14)
    ]
    least = np.mean([least_cost(dense(seed)) for seed in range(40)])
    assert bounds[0] < bounds[1] < bounds[2] < bounds[3] == pytest.approx(least)
