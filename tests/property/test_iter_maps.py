"""Iterator maps against enumeration: every loop point is visited and every value is counted.

Maps come from random splits (even, guarded, by covers), fusions and swaps of an identity map; some
are spoiled afterwards. What is accepted must fill the domain, what is exact must fill it once and
invert, and what is refused for a definite reason must really have that fault.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given, note
from hypothesis import strategies as st

from tests.property.index_expressions import Values, evaluate
from tilewright.tensor import cover
from tilewright.tensor import ir as tir
from tilewright.tensor.arith.itermap import IterMap, Reason, Refusal, compose, detect
from tilewright.tensor.arith.itermap.plain import plain_uses
from tilewright.tensor.arith.itermap.solve import Problem, Solution, solve
from tilewright.tensor.printer import print_node
from tilewright.tensor.visit import free_vars, substitute

Loops = list[tuple[tir.Var, tir.Expr]]
MAX_POINTS = 4000


@dataclass
class Nest:
    """Loops around a block whose iterators are bound to them; steps change it as schedules do."""

    rng: random.Random
    bindings: list[tir.Expr]
    domain: list[int]
    loops: Loops
    predicate: tir.Expr = tir.TRUE
    made: int = 0

    def var(self) -> tir.Var:
        self.made += 1
        return tir.Var(f"l{self.made}")

    def put(self, place: int, removed: int, new: Loops, values: dict[tir.Var, tir.Expr]) -> None:
        behind = [(v, substitute(e, values)) for v, e in self.loops[place + removed :]]
        self.loops = [*self.loops[:place], *new, *behind]
        self.bindings = [substitute(b, values) for b in self.bindings]
        self.predicate = substitute(self.predicate, values)

    def shape_is_used(self, place: int) -> bool:
        var = self.loops[place][0]
        return any(var in free_vars(e) for _, e in self.loops[place + 1 :])

    def split(self, place: int) -> None:
        var, extent = self.loops[place]
        length, factor = tir.int_value(extent), self.rng.choice((2, 3, 4, 5))
        outer, inner = self.var(), self.var()
        way = self.rng.random()
        if length is not None and length % factor == 0 and way < 0.5:
            value = outer * factor + inner
            self.put(
                place,
                1,
                [(outer, tir.Const(length // factor)), (inner, tir.Const(factor))],
                {var: value},
            )
        elif length is not None and way < 0.75:
            tiles = self.cover(length, factor)
            new = [(outer, cover.count(tiles)), (inner, cover.size(tiles, outer))]
            self.put(place, 1, new, {var: cover.start(tiles, outer) + inner})
        elif not self.shape_is_used(place):
            value = outer * factor + inner
            new = [(outer, (extent + (factor - 1)) // factor), (inner, tir.Const(factor))]
            self.put(place, 1, new, {var: value})
            self.predicate = self.predicate & (value < extent)

    def cover(self, length: int, factor: int) -> tir.Cover:
        whole = length // factor
        choices = [cover.uniform(length, factor), cover.uneven(length, factor)]
        if whole > 1:
            rest = length - (whole - 1) * factor
            choices.append(cover.of((factor, whole - 1), (2, rest // 2), (1, rest % 2)))
            choices.append(cover.of((factor, whole - 1), (rest, 1)))  # the last one is the longest
        return self.rng.choice(choices)

    def fuse(self, place: int) -> None:
        if place + 1 >= len(self.loops):
            return
        (a, m), (b, n) = self.loops[place : place + 2]
        if tir.int_value(m) is not None and tir.int_value(n) is not None:
            fused = self.var()
            self.put(place, 2, [(fused, m * n)], {a: fused // n, b: fused % n})

    def swap(self, place: int) -> None:
        if place + 1 < len(self.loops) and self.loops[place][0] not in free_vars(
            self.loops[place + 1][1]
        ):
            self.loops[place : place + 2] = reversed(self.loops[place : place + 2])

    def spoil(self) -> None:
        rng, n = self.rng, self.rng.randrange(len(self.bindings))
        loop = rng.choice(self.loops)[0]
        match rng.randrange(8):
            case 0:
                self.bindings[n] = self.bindings[n] * 2
            case 1:
                self.bindings[n] = self.bindings[n] + 1
            case 2:
                self.bindings[n] = rng.choice(self.bindings)
            case 3:
                self.bindings[n] = self.bindings[n] + loop
            case 4:
                self.domain[n] += 1
            case 5:
                self.domain[n] = max(1, self.domain[n] - 1)
            case 6:
                self.bindings[n] = self.bindings[n] // 2
            case 7:
                self.predicate = self.predicate & (loop < rng.randint(1, 4))

    def points(self) -> list[Values] | None:
        """Every point of the loops where the predicate holds; None if there are too many."""
        every = list(itertools.islice(_points(self.loops, {}), MAX_POINTS + 1))
        if len(every) > MAX_POINTS:
            return None
        return [values for values in every if evaluate(self.predicate, values)]

    def detect(self) -> IterMap | Refusal:
        return detect(self.bindings, self.domain, self.loops, self.predicate)

    def __str__(self) -> str:
        loops = ", ".join(f"{v.name} < {print_node(e)}" for v, e in self.loops)
        bindings = ", ".join(print_node(b) for b in self.bindings)
        return f"({bindings}) in {self.domain} for {loops} if {print_node(self.predicate)}"


def _points(loops: Loops, values: Values) -> Iterator[Values]:
    if not loops:
        yield dict(values)
        return
    (var, extent), *inner = loops
    for value in range(evaluate(extent, values)):
        yield from _points(inner, {**values, var: value})


def nest_from(seed: int, rank: int, steps: int) -> Nest:
    rng = random.Random(seed)
    domain = [rng.choice((2, 3, 4, 5, 6, 8, 10, 12)) for _ in range(rank)]
    loops: Loops = [(tir.Var(f"i{n}"), tir.Const(extent)) for n, extent in enumerate(domain)]
    nest = Nest(rng, [v for v, _ in loops], domain, loops)
    for _ in range(steps):
        step = rng.choice((nest.split, nest.split, nest.split, nest.fuse, nest.swap))
        step(rng.randrange(len(nest.loops)))
    return nest


def nests(steps: int) -> st.SearchStrategy[Nest]:
    return st.builds(nest_from, st.integers(0, 1 << 20), st.integers(1, 3), st.integers(0, steps))


PER_EXAMPLE = 6


def many(steps: int) -> st.SearchStrategy[list[Nest]]:
    return st.lists(nests(steps), min_size=1, max_size=PER_EXAMPLE)


@given(many(steps=2))
def test_two_steps_from_an_exact_map_are_always_understood(several):
    for nest in several:
        note(str(nest))
        found = nest.detect()
        assert isinstance(found, IterMap), str(found)
        assert found.is_exact
        _check_values(nest, found)


@given(many(steps=5))
def test_longer_schedules_are_judged_rightly(several):
    """Guards in tiles in guards may be refused, but never wrongly accepted or blamed."""
    for nest in several:
        _check(nest)


@given(many(steps=4))
def test_spoiled_maps_are_judged_rightly(several):
    for nest in several:
        nest.spoil()
        _check(nest)


def _check(nest: Nest) -> None:
    note(str(nest))
    found = nest.detect()
    if isinstance(found, IterMap):
        _check_values(nest, found)
    else:
        _check_refusal(nest, found)


def _values(nest: Nest, points: list[Values]) -> list[tuple[int, ...]]:
    return [tuple(evaluate(b, values) for b in nest.bindings) for values in points]


def _check_values(nest: Nest, found: IterMap) -> None:
    points = nest.points()
    if points is None:
        return
    values = _values(nest, points)
    assert set(values) == set(itertools.product(*map(range, nest.domain)))
    assert not found.is_exact or len(values) == len(set(values))
    for var, _ in nest.loops:
        if any(var in free_vars(b) for b in nest.bindings):
            assert any(var in group for group in found.uses) or len({p[var] for p in points}) == 1
    iterators = [tir.Var(f"v{n}") for n in range(len(nest.domain))]
    inverse = found.inverse(iterators)
    assert not found.is_exact or inverse.keys() == {v for v, _ in nest.loops}
    for place, point in zip(points, values, strict=True):
        known = dict(zip(iterators, point, strict=True))
        for var, expr in inverse.items():
            assert evaluate(expr, known) == place[var], var.name


def _check_refusal(nest: Nest, found: Refusal) -> None:
    assert str(found)
    points = nest.points()
    if points is None:
        return
    values = set(_values(nest, points))
    domain = set(itertools.product(*map(range, nest.domain)))
    if found.reason is Reason.OUTSIDE:
        assert not values <= domain
    elif found.reason in (Reason.GAP, Reason.PARTIAL):
        assert not domain <= values


def digits_from(seed: int) -> Nest:
    """Bindings that are sums of digits of constant loops, most of them right, some not."""
    rng = random.Random(seed)
    loops: Loops = []
    parts: list[tuple[tir.Expr, int]] = []
    for n in range(rng.randint(1, 2)):
        var, factors = tir.Var(f"i{n}"), [rng.choice((2, 3, 4)) for _ in range(rng.randint(1, 3))]
        loops.append((var, tir.Const(math.prod(factors) + (rng.random() < 0.1))))
        lower = 1
        for factor in factors:
            cut = factor * rng.choice((1, 1, 1, 2)) if rng.random() < 0.2 else factor
            whole = lower * factor == math.prod(factors) and rng.random() < 0.7
            parts.append((var // lower if whole else var // lower % cut, factor))
            if rng.random() < 0.15:  # the same digit as the remainder of a larger one
                parts[-1] = (var % (lower * factor) // lower, factor)
            lower *= factor
    rng.shuffle(parts)
    if rng.random() < 0.2:
        parts.pop()
    bindings: list[tir.Expr] = []
    domain: list[int] = []
    while parts:
        number: tir.Expr = tir.Const(0)
        reach = 1
        for digit, extent in parts[: rng.randint(1, 2)]:
            number, reach = number + digit * reach, reach * extent
            parts = parts[1:]
        bindings.append(number)
        domain.append(reach)
    return Nest(rng, bindings or [loops[0][0]], domain or [1], loops)


@given(st.lists(st.integers(0, 1 << 20), min_size=1, max_size=PER_EXAMPLE))
def test_sums_of_digits_are_judged_rightly(seeds):
    for seed in seeds:
        _check(digits_from(seed))


@given(st.lists(st.integers(0, 1 << 20), min_size=1, max_size=PER_EXAMPLE))
def test_the_short_way_agrees_with_the_long_one(seeds):
    """What is accepted at a glance, the full algorithm finds to be exact, with the same loops."""
    for seed in seeds:
        nest = digits_from(seed)
        note(str(nest))
        domain = [tir.Const(extent) for extent in nest.domain]
        uses = plain_uses(nest.bindings, domain, nest.loops)
        if None in uses:
            continue
        problem = Problem(tuple(nest.bindings), tuple(domain), tuple(nest.loops), tir.TRUE, {})
        solution = solve(problem)
        assert isinstance(solution, Solution), str(solution)
        leaves = solution.system.leaves[: len(uses)]
        assert [solution.system.loops_in(leaf.form) for leaf in leaves] == uses


@given(nests(steps=1))
def test_composition_with_a_flattening(nest):
    """All iterators of a map, flattened into one, are again filled exactly."""
    iterators = [(tir.Var(f"v{n}"), tir.Const(extent)) for n, extent in enumerate(nest.domain)]
    flat: tir.Expr = tir.Const(0)
    for var, extent in iterators:
        flat = flat * extent + var
    first, then = nest.detect(), detect((flat,), (math.prod(nest.domain),), iterators)
    note(str(nest))
    assert isinstance(first, IterMap)
    assert isinstance(then, IterMap)
    both = compose(first, then)
    assert isinstance(both, IterMap), str(both)
    assert both.is_exact
