"""Every rule about starts and sizes of tiles, on all small covers and every tile of them.

These rules have no law that z3 could prove: a cover is not arithmetic. They are run on forms of all
shapes that they look for, and compared with plain evaluation at each tile.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.property.index_expressions import NoTile, Values, evaluate
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.linear import Kind, Linear
from tilewright.tensor.arith.rebuild import expression
from tilewright.tensor.arith.sweep import region_bounds
from tilewright.tensor.arith.tiles import (
    divided,
    start_bounds,
    tile_end,
    tile_normal,
    tile_start,
    tile_step,
)

T, U, N = tir.Var("t"), tir.Var("u"), tir.Var("n")

CONSTANT = [
    tir.Cover(tuple((size, tir.Const(n)) for size, n in segments))
    for length in (1, 2, 3)
    for segments in itertools.product(itertools.product((1, 2, 4, 6), (1, 2)), repeat=length)
    if all(a[0] != b[0] for a, b in itertools.pairwise(segments))
    and (length < 3 or sum(s for s, _ in segments) < 9)
]
SYMBOLIC = [
    covers.uniform(N, 4),
    tir.Cover(((6, N // 6), (4, tir.Const(2)))),
    tir.Cover(((4, N), (2, tir.Const(1)))),
    tir.Cover(((6, N // 6), (4, N % 6 // 4), (1, N % 6 % 4))),
]


def scopes(cover: tir.Cover) -> Iterator[tuple[Analyzer, list[tir.Expr]]]:
    """Analyzers that know a tile number, by itself or as a sum, and forms of that number."""
    count = covers.count(cover)
    yield Analyzer({T: count}), [T]
    yield Analyzer({T: count}).assume(count > T + 1), [T, T + 1]
    yield Analyzer({U: tir.Const(2), T: count}).assume(count > T + U), [T, T + U]


def forms(cover: tir.Cover) -> Iterator[tuple[Analyzer, Linear]]:
    """Sums of starts and sizes with numbers that tile rules may find."""
    for space, tiles in scopes(cover):
        for tile in tiles:
            begin, length = tir.TileStart(cover, tile), tir.TileSize(cover, tile)
            step = cover.segments[0][0]
            for k, q in itertools.product((-2, -1, 1, 2), repeat=2):
                for more in (tir.Const(0), T * step, tir.TileStart(cover, T) * -k):
                    yield space, space.linear(begin * k + length * q + more + 3)


def points(space: Analyzer, cover: tir.Cover) -> Iterator[Values]:
    """All values of the variables, for a few values of the size."""
    symbolic = any(tir.int_value(n) is None for _, n in cover.segments)
    for n in range(1, 14) if symbolic else (1,):
        for u in range(2):
            for t in range(evaluate(covers.count(cover), {N: n})):
                values = {N: n, T: t, U: u}
                if all(evaluate(expression(fact), values) >= 0 for fact in space.facts):
                    yield values


Check = Callable[[int, int], bool]


def compare(rule: Callable[[Analyzer, Linear], Linear | None], check: Check, least: int) -> None:
    """Run a rule on all forms; where it answers, `check` must hold between before and after."""
    answered = 0
    for cover in (*CONSTANT, *SYMBOLIC):
        for space, form in forms(cover):
            after = rule(space, form)
            if after is None or after is form:
                continue
            answered += 1
            old, new = expression(form), expression(after)
            for values in points(space, cover):
                try:
                    before = evaluate(old, values)
                except NoTile:
                    continue
                assert check(before, evaluate(new, values)), (old, new, values)
    assert answered >= least, f"the rule answered {answered} times: it is not tested"


def test_size_is_the_distance_of_starts():
    compare(tile_step, lambda before, after: before == after, 500)


def test_no_tile_ends_behind_the_extent():
    compare(tile_end, lambda before, after: after <= before, 500)


def test_normal_form_is_equal():
    compare(tile_normal, lambda before, after: before == after, 500)


@pytest.mark.parametrize("factor", [1, 2, 3, 4])
def test_starts_and_sizes_divided(factor):
    answered = 0
    for cover in (*CONSTANT, *SYMBOLIC):
        space = Analyzer({T: covers.count(cover)})
        for part, k in itertools.product((tir.TileStart, tir.TileSize), (1, 2, 3)):
            form = space.linear(part(cover, T))
            for atom in form.terms:
                if atom.kind is not Kind.START and atom.kind is not Kind.SIZE:
                    continue
                found = divided(space, atom, k, factor)
                if found is None:
                    continue
                answered += 1
                for values in points(space, cover):
                    whole = evaluate(atom.expr, values) * k
                    assert evaluate(expression(found), values) * factor == whole
    assert answered >= 10


@pytest.mark.parametrize("upper", [False, True])
def test_bounds_of_starts(upper):
    answered = 0
    for cover in (*CONSTANT, *SYMBOLIC):
        space = Analyzer({T: covers.count(cover)})
        form = tile_start(space, cover, space.linear(T))
        for atom in form.terms:
            for bound in start_bounds(space, atom, upper=upper) if atom.kind is Kind.START else ():
                answered += 1
                for values in points(space, cover):
                    value, end = evaluate(atom.expr, values), evaluate(expression(bound), values)
                    assert value <= end if upper else end <= value
    assert answered >= 50


def test_what_a_tile_sweeps():
    """The box of `start(t) + j` over tiles with their insides, also over some of the tiles."""
    inside = tir.Var("j")
    for cover in (*CONSTANT, *SYMBOLIC):
        position, inner = tir.TileStart(cover, T) + inside, [(inside, tir.TileSize(cover, T))]
        for loops in (inner, [(T, covers.count(cover)), *inner]):
            outer = {} if len(loops) > 1 else {T: covers.count(cover)}
            (span,) = region_bounds((position,), loops, Analyzer(outer))
            assert span is not None
            for values in points(Analyzer({T: covers.count(cover)}), cover):
                begin = evaluate(span.start, values)
                end = begin + evaluate(span.extent, values)
                for j in range(evaluate(tir.TileSize(cover, T), values)):
                    assert begin <= evaluate(position, {**values, inside: j}) < end
