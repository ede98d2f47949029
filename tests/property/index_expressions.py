"""Random index expressions in random scopes, and their plain evaluation: the oracle of `arith`."""

from __future__ import annotations

import operator
import random
from dataclasses import dataclass

from hypothesis import strategies as st

from tilewright.tensor import cover
from tilewright.tensor import ir as tir

Values = dict[tir.Var, int]
Covers = tuple[tir.Cover, ...]


class NoTile(Exception):  # noqa: N818 (a point to skip)
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


def _extent(rng: random.Random, earlier: list[tir.Var], n: tir.Var, covers: Covers) -> tir.Expr:
    choice = rng.randrange(8 if earlier else 6)
    if choice < 3:
        return tir.Const(rng.choice((1, 2, 3, 4, 5, 6, 8)))
    if choice == 3:
        return n
    if choice == 4:
        return (n + 3) // 4
    if choice == 5:
        return cover.count(rng.choice(covers))
    if choice == 6:
        return tir.TileSize(rng.choice(covers), rng.choice(earlier))
    return tir.minimum(4, n - rng.choice(earlier))


def scope_from(seed: int, variables: int) -> Scope:
    """Variables with constant, symbolic, rounded, tiled and dependent extents."""
    rng, n = random.Random(seed), tir.Var("n")
    covers = (
        cover.of((6, 3), (4, 2)),
        cover.of((8, 2), (4, 3), (2, 1)),
        cover.uniform(n, 4),
        tir.Cover(((6, n // 6), (4, tir.Const(2)))),
    )
    extents: dict[tir.Var, tir.Expr] = {}
    for name in "ijklt"[:variables]:
        extents[tir.Var(name)] = _extent(rng, list(extents), n, covers)
    mentioned = any("n" in repr(extent) for extent in extents.values())
    return Scope(extents, (n,) if mentioned else (), covers)


def scopes() -> st.SearchStrategy[Scope]:
    """Scopes of one to five variables. Only seeds and sizes are drawn: failures shrink fast."""
    return st.builds(scope_from, st.integers(0, 10_000), st.integers(1, 5))


NUMBERS = (-4, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16)


def expression_from(scope: Scope, seed: int, depth: int) -> tir.Expr:
    """An index expression over a scope."""
    return _Grower(scope, random.Random(seed)).index(depth)


def condition_from(scope: Scope, seed: int, depth: int) -> tir.Expr:
    """Comparisons of index expressions, and what is made from them."""
    return _Grower(scope, random.Random(seed)).condition(depth)


def expressions(scope: Scope) -> st.SearchStrategy[tir.Expr]:
    return st.builds(expression_from, st.just(scope), st.integers(0, 1 << 20), st.integers(1, 4))


def conditions(scope: Scope) -> st.SearchStrategy[tir.Expr]:
    return st.builds(condition_from, st.just(scope), st.integers(0, 1 << 20), st.integers(1, 3))


class _Grower:
    def __init__(self, scope: Scope, rng: random.Random) -> None:
        self.scope, self.rng = scope, rng

    def leaf(self) -> tir.Expr:
        rng = self.rng
        return rng.choice(self.scope.variables) if rng.random() < 0.8 else self.number()

    def number(self) -> tir.Expr:
        return tir.Const(self.rng.choice(NUMBERS))

    def index(self, depth: int) -> tir.Expr:
        rng = self.rng
        if depth == 0 or rng.random() < 0.1:
            return self.leaf()
        kind = rng.choice(KINDS)
        if kind in (tir.TileStart, tir.TileSize):
            tile = self.leaf() if rng.random() < 0.6 else self.index(depth - 1)
            return kind(rng.choice(self.scope.covers), tile)
        first = self.index(depth - 1)
        if kind is tir.Select:
            return tir.Select(self.condition(0), first, self.index(depth - 1))
        if kind in (tir.Mul, tir.FloorDiv, tir.FloorMod):
            plain = rng.random() < 0.85
            return kind(first, self.number() if plain else rng.choice(self.scope.variables))
        return kind(first, self.index(depth - 1))

    def condition(self, depth: int) -> tir.Expr:
        rng = self.rng
        choice = rng.random()
        if depth > 0 and choice < 0.25:
            join = rng.choice((tir.BitAnd, tir.BitOr))
            return join(self.condition(depth - 1), self.condition(depth - 1))
        if depth > 0 and choice < 0.35:
            return tir.Not(self.condition(depth - 1))
        compare = rng.choice((tir.Lt, tir.Le, tir.Eq, tir.Ne))
        return compare(self.index(depth), self.index(rng.randint(0, depth)))


KINDS = (tir.Add,) * 6 + (tir.Sub,) * 3 + (tir.Mul,) * 4 + (tir.FloorDiv,) * 4 + (tir.FloorMod,) * 4
KINDS += (tir.Min, tir.Max, tir.Select, tir.TileStart, tir.TileStart, tir.TileSize)
