"""Problems that are small enough to solve by hand, or so large that only their kind is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.expect import raises_code
from tilewright.layouts.solve import Problem, Solution, solve

INF = math.inf
SAME = [[0, 5], [5, 0]]  # a conversion costs 5
NEVER = [[INF, INF], [INF, INF]]
NOT_DOWN = [[0, 0], [INF, 0]]  # no first alternative behind a second one

BY_HAND = {
    "nothing": (Problem([]), (), 0.0),
    "one variable": (Problem([[3, 1, 2]]), (1,), 1.0),
    "one alternative": (Problem([[3], [1, 2]], [(0, 1, [[4, 1]])]), (0, 1), 6.0),
    "no edges": (Problem([[3, 1], [2, 4]]), (1, 0), 3.0),
    "a conversion does not pay": (Problem([[0, 4], [3, 0]], [(0, 1, SAME)]), (0, 0), 3.0),
    "a conversion pays": (Problem([[0, 9], [9, 0]], [(0, 1, SAME)]), (0, 1), 5.0),
    "rows are of the first": (
        Problem([[0, 0], [0] * 3], [(1, 0, [[2, 2], [2, 2], [2, 1]])]),
        (1, 2),
        1.0,
    ),
    "parallel edges add up": (
        Problem([[0, 7], [7, 0]], [(0, 1, SAME), (1, 0, SAME)]),
        (0, 0),
        7.0,
    ),
    "parallel edges that cancel": (
        Problem([[0, 1], [1, 0]], [(0, 1, SAME), (1, 0, [[5, 0], [0, 5]])]),
        (0, 1),
        5.0,
    ),
    "an edge to itself": (Problem([[0, 1]], [(0, 0, [[3, -9], [-9, 1]])]), (1,), 2.0),
    "the middle follows": (
        Problem([[0, 9], [0, 1], [0, 9], [9, 0]], [(0, 1, SAME), (1, 2, SAME), (1, 3, SAME)]),
        (0, 0, 0, 1),
        5.0,
    ),
    "the cheapest is impossible": (Problem([[INF, 2], [0, 1]], [(0, 1, NOT_DOWN)]), (1, 1), 3.0),
    "a gain": (Problem([[0, 0], [0, 0]], [(0, 1, [[0, 0], [0, -1]])]), (1, 1), -1.0),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_solved_by_hand(name: str) -> None:
    problem, choice, cost = BY_HAND[name]
    assert solve(problem) == Solution(choice, cost, exact=True)


def test_the_first_of_equal_alternatives() -> None:
    zeros = Problem([np.zeros(3)] * 4, [(u, u + 1, np.zeros((3, 3))) for u in range(3)])
    assert solve(zeros).choice == (0, 0, 0, 0)
    # Both in the same layout: either one is right, and the first one is taken.
    assert solve(Problem([[0, 0], [0, 0]], [(0, 1, SAME)])).choice == (0, 0)


def drawn(rng: np.random.Generator, sizes: list[int], pairs: list[tuple[int, int]]) -> Problem:
    edges = [(u, v, rng.random((sizes[u], sizes[v]))) for u, v in pairs]
    return Problem([rng.random(size) for size in sizes], edges)


def test_long_chains(rng: np.random.Generator) -> None:
    """Against dynamic programming from one end to the other."""
    problem = drawn(rng, [8] * 2000, [(n, n + 1) for n in range(1999)])
    best = np.zeros(8)
    for costs, (_, _, matrix) in zip(problem.costs, problem.edges, strict=False):
        best = ((best + costs)[:, None] + matrix).min(axis=0)
    found = solve(problem, budget=0)
    assert found.exact
    assert found.cost == pytest.approx((best + problem.costs[-1]).min())
    assert found.cost == problem.cost(found.choice)


def test_stars_are_as_good_as_chains(rng: np.random.Generator) -> None:
    problem = drawn(rng, [4] * 500, [(250, n) for n in range(500) if n != 250])
    leaves = sum((matrix + problem.costs[leaf]).min(axis=1) for _, leaf, matrix in problem.edges)
    found = solve(problem, budget=0)
    assert found.exact
    assert found.cost == pytest.approx((problem.costs[250] + leaves).min())


def test_residual_networks_are_exact(rng: np.random.Generator) -> None:
    """Blocks of three layers and a way around them; with many alternatives, too."""
    pairs = [(n, n + 1) for n in range(160)] + [(n, n + 4) for n in range(0, 160, 4)]
    assert solve(drawn(rng, [6] * 161, pairs), budget=0).exact
    few = [(u, v) for u, v in pairs if v <= 8]
    assert solve(drawn(rng, [80] * 9, few), budget=0).exact


def test_layers_that_read_the_five_before_them_are_exact(rng: np.random.Generator) -> None:
    pairs = [(u, v) for v in range(60) for u in range(max(0, v - 5), v)]
    assert solve(drawn(rng, [8] * 60, pairs), budget=0).exact


def test_a_search_that_ends_early_says_so(rng: np.random.Generator) -> None:
    pairs = [(u, v) for v in range(10) for u in range(v)]
    problem = drawn(rng, [4] * 10, pairs)
    guess, found = (solve(problem, max_entries=1 << 10, budget=n) for n in (0, 1 << 20))
    assert not guess.exact
    assert found.exact
    assert found.cost == pytest.approx(solve(problem, max_entries=1 << 20, budget=0).cost)
    assert found.cost <= guess.cost <= 1.1 * found.cost


def test_more_neighbours_than_dimensions(rng: np.random.Generator) -> None:
    """A table over all of them could not even be made; the choice is not bad for that."""
    pairs = [(u, v) for v in range(40) for u in range(v)]
    problem = drawn(rng, [2] * 40, pairs)
    found = solve(problem, max_entries=1 << 12, budget=0)
    assert found.cost == problem.cost(found.choice)
    assert found.cost < min(problem.cost([k] * 40) for k in range(2))


def test_a_choice_is_found_where_few_are_possible() -> None:
    """Three colours for a ring of triangles: a guess that fails is searched on, budget or not."""
    apart = np.where(np.eye(3) > 0, INF, 0.0)
    pairs = [(n, (n + k) % 12) for n in range(12) for k in (1, 2)]
    problem = Problem([[0, 1, 2]] * 12, [(u, v, apart) for u, v in pairs])
    found = solve(problem, max_entries=1, budget=0)
    assert found.cost == 12
    with raises_code("G060"):
        pairs = [(n, (n + k) % 11) for n in range(11) for k in (1, 2)]
        solve(Problem([[0, 1, 2]] * 11, [(u, v, apart) for u, v in pairs]), max_entries=1)


def test_equal_problems_have_equal_solutions(rng: np.random.Generator) -> None:
    pairs = [(u, v) for v in range(14) for u in range(v)]
    problem = drawn(rng, [3] * 14, pairs)
    first, second = (solve(problem, max_entries=1 << 8, budget=200) for _ in range(2))
    assert first == second


IMPOSSIBLE = {
    "no alternatives": (Problem([[1], []], names=["a", "b"]), "b", "0 of 0", "none"),
    "none by itself": (Problem([[1, 2], [INF, INF]], [(0, 1, SAME)], "ab"), "b", "0 of 2", "`a`"),
    "no pair": (Problem([[1, 2], [1, 2]], [(1, 0, NEVER)], "ab"), "a", "2 of 2", "`b`"),
    "between two": (
        Problem([[INF, 0], [1, 2], [0, INF]], [(0, 1, NOT_DOWN), (1, 2, NOT_DOWN)], "abc"),
        "b",
        "2 of 2",
        "`a`, `c`",
    ),
    "nothing to choose": (Problem([[1]] * 3, [(1, 2, [[INF]])], "abc"), "b", "1 of 1", "`c`"),
    "without names": (Problem([[INF]]), "variable 0", "0 of 1", "none"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_solve_rejects_what_is_impossible(name: str) -> None:
    problem, variable, alone, neighbours = IMPOSSIBLE[name]
    facts = {"variable": variable, "possible by themselves": alone, "neighbours": neighbours}
    with raises_code("G060", facts=facts, text=f"no alternative of `{variable}` is possible"):
        solve(problem)


@pytest.mark.parametrize("cost", [-INF, math.nan])
def test_costs_are_numbers(cost: float) -> None:
    with pytest.raises(AssertionError, match="a cost is a number"):
        solve(Problem([[0.0, cost]]))


def test_matrices_fit_their_variables() -> None:
    with pytest.raises(AssertionError):
        solve(Problem([[0, 1], [0, 1, 2]], [(0, 1, np.zeros((3, 2)))]))
