"""From boxes of a buffer to iterations of a block: digits, sums, and accesses of one form."""

from __future__ import annotations

import pytest

from tilewright.dtypes import f32
from tilewright.schedule.domains import iterations, matched, solved
from tilewright.schedule.footprints import Span, hull, is_whole, swept
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.regions import point

V, W, X, Y = (tir.Var(name) for name in "vwxy")
T, J = tir.Var("t"), tir.Var("j")
ITERS = {V: tir.Const(24), W: tir.Const(8)}
KNOWN = Analyzer({X: 24, Y: 8})


def region(*indices: tir.Expr) -> tir.Region:
    return point(tir.Buffer("B", tuple(tir.Const(999) for _ in indices), f32), indices)


def span(lo: tir.Lift, length: int) -> Span:
    return Span(tir.as_index(lo), tir.Const(length))


def numbers(part: Span) -> tuple[int | None, int | None]:
    return tir.int_value(part.lo), tir.int_value(part.length)


@pytest.mark.parametrize(
    ("mine", "theirs", "found"),
    [
        ((V, W), (X + 1, Y), {V: X + 1, W: Y}),
        ((V + 2,), (X + 3,), {V: X + 1}),
        ((V // 4, V % 4), ((X + 1) // 4, (X + 1) % 4), {V: X + 1}),
        ((V * 8 + W,), (X * 8 + Y,), {V: X, W: Y}),
        ((V, tir.Const(0)), (X, tir.Const(0)), {V: X}),
        ((V // 4, V % 4), (X // 4, Y % 4), None),
        ((V * 8 + W,), (Y * 8 + X,), None),  # x reaches 23: it is no digit below 8
        ((V, tir.Const(0)), (X, Y), None),
    ],
    ids=str,
)
def test_accesses_of_one_form(mine, theirs, found):
    assert matched(ITERS, region(*mine), region(*theirs), KNOWN) == found


@pytest.mark.parametrize(
    ("indices", "box", "expected", "exact"),
    [
        ((V,), [(3, 5)], (3, 5), True),
        ((V - 2,), [(3, 5)], (5, 5), True),
        ((V * 3,), [(3, 7)], (1, 3), True),
        ((V // 4, V % 4), [(2, 3), (0, 4)], (8, 12), True),
        ((V // 4, V % 4), [(2, 1), (1, 2)], (9, 2), True),
        ((V // 4, V % 4), [(2, 2), (1, 2)], (9, 6), False),
        ((V // 4 + 1, V % 4 + 5), [(3, 1), (6, 2)], (9, 2), True),
        ((V // 8, V // 2 % 4, V % 2), [(1, 2), (0, 4), (0, 2)], (8, 16), True),
        ((V // 4,), [(2, 3)], (8, 12), True),
    ],
    ids=str,
)
def test_spans_of_digits(indices, box, expected, exact):
    parts, understood = iterations(ITERS, region(*indices), [span(*b) for b in box], KNOWN)
    assert understood
    assert (numbers(parts[V].span), parts[V].exact) == (expected, exact)


def test_fused_iterators_are_taken_apart():
    parts, understood = iterations(ITERS, region(V * 8 + W), [span(16, 24)], KNOWN)
    assert understood
    assert numbers(parts[V].span) == (2, 3)
    assert parts[V].exact
    assert W not in parts
    parts, _ = iterations(ITERS, region(V * 8 + W), [span(18, 3)], KNOWN)
    assert (numbers(parts[V].span), numbers(parts[W].span)) == ((2, 1), (2, 3))


def test_index_that_cannot_be_read_is_told():
    _, understood = iterations(ITERS, region(V * V), [span(0, 4)], KNOWN)
    assert not understood


def test_element_tells_the_iterators():
    found = solved(ITERS, region(V // 4, W, V % 4), (X // 4, Y, X % 4), KNOWN)
    assert found == {V: X, W: Y}
    assert solved(ITERS, region(V), (X,), KNOWN) is None  # w is not told
    assert solved({V: tir.Const(8)}, region(V * 2), (X,), KNOWN) is None  # odd ones are not written


def test_span_of_a_tile_keeps_the_cover():
    tiles = covers.of((8, 1), (6, 2))
    loop = tir.For(J, covers.size(tiles, T), tir.Seq(()))
    found = swept(covers.start(tiles, T) + J, [loop], Analyzer({T: 3, J: loop.extent}))
    assert found == Span(covers.start(tiles, T), covers.size(tiles, T))
    outer = tir.For(T, tir.Const(3), loop)
    everything = swept(covers.start(tiles, T) + J, [outer, loop], Analyzer({T: 3, J: loop.extent}))
    assert is_whole(everything, tir.Const(20), Analyzer())


def test_hull():
    both = hull(span(X + 1, 4), span(X, 3), KNOWN)
    assert both == Span(X, tir.Const(5))
