"""Random index expressions in random scopes, and their plain evaluation: the oracle of `arith`."""

from __future__ import annotations

import operator
import random
from dataclasses import dataclass

from hypothesis import strategies as st

from tilewright.tensor import cover
from tilewright.tensor import ir as tir

Values = dict[tir.Var, int]


class NoTile(Exception):
    """A tile number that its cover does not have: nothing is promised there."""


_BINARY = {
    tir.Add: operator.add,
    tir.Sub: operator.sub,
    tir.Mul: operator.mul,
    tir.FloorDiv: lambda a, b: a // b if b else 0,
    tir.FloorMod: lambda a, b: a % b if b else 0,
    tir.Min: min,
    tir.Max: max,
    tir.Lt: operator.lt,
    tir.Le: operator.le,
    tir.Eq: operator.eq,
    tir.Ne: operator.ne,
    tir.BitAnd: operator.and_,
    tir.BitOr: operator.or_,
}


def evaluate(expr: tir.Expr, values: Values) -> int:
    """The value of an index expression or condition; raises `NoTile` on impossible tiles."""
    kind = type(expr)
    if kind is tir.Const:
        return expr.value
    if kind is tir.Var:
        return values[expr]
    if kind in _BINARY:
        return _BINARY[kind](evaluate(expr.a, values), evaluate(expr.b, values))
    if kind is tir.Not:
        return not evaluate(expr.value, values)
    if kind is tir.Select:
        branches = evaluate(expr.if_true, values), evaluate(expr.if_false, values)
        return branches[0] if evaluate(expr.cond, values) else branches[1]
    assert isinstance(expr, tir.TileStart | tir.TileSize), kind
    return _tile(expr, values)


def _tile(expr: tir.TileStart | tir.TileSize, values: Values) -> int:
    tile, position = evaluate(expr.tile, values), 0
    segments = [(size, evaluate(count, values)) for size, count in expr.cover.segments]
    tiles = sum(count for _, count in segments)
    is_size = isinstance(expr, tir.TileSize)
    if not 0 <= tile <= tiles - is_size:
        raise NoTile
    for size, count in segments:
        if tile < count:
            return size if is_size else position + tile * size
        position, tile = position + count * size, tile - count
    return position


@dataclass(frozen=True)
class Scope:
    """Variables with extents, sizes that extents mention, and covers to take tiles of."""

    extents: dict[tir.Var, tir.Expr]
    sizes: tuple[tir.Var, ...]
    covers: tuple[tir.Cover, ...]

    @property
    def variables(self) -> list[tir.Var]:
        return [*self.extents, *self.sizes]

    def points(self, seed: int, count: int = 30) -> list[Values]:
        """Values inside the extents, their ends more often than the middle."""
        rng = random.Random(seed)
        found: list[Values] = []
        for _ in range(3 * count):
            values = {size: rng.randint(1, 14) for size in self.sizes}
            try:
                for var, extent in self.extents.items():
                    end = evaluate(extent, values)
                    values[var] = rng.choice((0, end - 1, rng.randrange(end)))
            except (NoTile, ValueError):  # an empty loop
                continue
            found.append(values)
        return found[:count]


@st.composite
def scopes(draw: st.DrawFn) -> Scope:
    """One to five variables: constant, symbolic, rounded, tiled and dependent extents."""
    n = tir.Var("n")
    covers = (
        cover.of((6, 3), (4, 2)),
        cover.of((8, 2), (4, 3), (2, 1)),
        cover.uniform(n, 4),
        tir.Cover(((6, n // 6), (4, tir.Const(2)))),
    )
    extents: dict[tir.Var, tir.Expr] = {}
    for name in "ijklt"[: draw(st.integers(1, 5))]:
        earlier = list(extents)
        kinds = [
            st.sampled_from((1, 2, 3, 4, 5, 6, 8)).map(tir.as_index),
            st.just(n),
            st.just((n + 3) // 4),
            st.sampled_from(covers).map(cover.count),
        ]
        if earlier:
            var = st.sampled_from(earlier)
            kinds.append(st.builds(tir.TileSize, st.sampled_from(covers), var))
            kinds.append(var.map(lambda v: tir.minimum(4, n - v)))
        extents[tir.Var(name)] = draw(st.one_of(kinds))
    mentioned = any("n" in repr(extent) for extent in extents.values())
    return Scope(extents, (n,) if mentioned else (), covers)


NUMBERS = st.sampled_from((-4, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16))


def expressions(scope: Scope, *, leaves: int = 8) -> st.SearchStrategy[tir.Expr]:
    """Index expressions over a scope."""
    variables = st.sampled_from(scope.variables)
    numbers = NUMBERS.map(tir.Const)
    leaf = st.one_of(variables, variables, numbers)

    def grow(inner: st.SearchStrategy[tir.Expr]) -> st.SearchStrategy[tir.Expr]:
        def pair(kind: type[tir.Binary], right: st.SearchStrategy[tir.Expr]) -> object:
            return st.builds(kind, inner, right)

        compare = st.builds(
            lambda k, a, b: k(a, b), st.sampled_from((tir.Lt, tir.Eq)), inner, inner
        )
        covers = st.sampled_from(scope.covers)
        return st.one_of(
            pair(tir.Add, inner),
            pair(tir.Sub, inner),
            pair(tir.Mul, numbers),
            pair(tir.FloorDiv, numbers),
            pair(tir.FloorMod, numbers),
            pair(tir.Add, inner),
            pair(tir.Mul, variables),
            pair(tir.FloorDiv, variables),
            pair(tir.FloorMod, variables),
            pair(tir.Min, inner),
            pair(tir.Max, inner),
            st.builds(tir.Select, compare, inner, inner),
            st.builds(tir.TileStart, covers, st.one_of(variables, inner)),
            st.builds(tir.TileSize, covers, st.one_of(variables, inner)),
        )

    return st.recursive(leaf, grow, max_leaves=leaves)


def conditions(scope: Scope, *, leaves: int = 5) -> st.SearchStrategy[tir.Expr]:
    """Comparisons of index expressions, and what is made from them."""
    side = expressions(scope, leaves=leaves)
    kinds = st.sampled_from((tir.Lt, tir.Le, tir.Eq, tir.Ne))
    leaf = st.builds(lambda kind, a, b: kind(a, b), kinds, side, side)

    def grow(inner: st.SearchStrategy[tir.Expr]) -> st.SearchStrategy[tir.Expr]:
        joined = st.builds(
            lambda kind, a, b: kind(a, b), st.sampled_from((tir.BitAnd, tir.BitOr)), inner, inner
        )
        return st.one_of(joined, st.builds(tir.Not, inner))

    return st.recursive(leaf, grow, max_leaves=3)
