"""Arithmetic on dimensions, which may be zero: a clamped slice is simple where it has elements."""

from __future__ import annotations

import pytest

from tests.expect import raises_code
from tilewright.graph.folding import TooLarge
from tilewright.graph.sizes import (
    as_shape,
    broadcast,
    count,
    dims_equal,
    evaluate_size,
    filled,
    fixed,
    is_one_or_none,
    length_of,
    never_exceeds,
    product,
    same_shape,
    sized,
    tidy,
    variables,
)
from tilewright.tensor import ir as tir

N, S = tir.Var("n"), tir.Var("s")
ONE = tir.Const(1)

SIMPLER = {
    "never negative": (tir.maximum(N, 0), N),
    "longer by one": (tir.minimum(ONE, N + 1), ONE),
    "not from the end": (tir.Select(N < 0, N + N, N), N),
    "never minus one": (tir.Select(N.eq(-1), ONE, N), N),
    "an exact quotient": (N * S * 768 // (N * S * 12), tir.Const(64)),
    "a quotient by a sum": ((N * S + N) // (S + 1), N),
    "half of two": ((S * 2) - tir.minimum(S, S * 2), S),
}


@pytest.mark.parametrize("name", SIMPLER)
def test_tidy(name: str) -> None:
    given, expected = SIMPLER[name]
    assert tidy(given) == tidy(expected)
    least = 1 if "quotient" in name else 0
    for n in (least, 1, 2, 5):
        for s in (least, 1, 3, 4):
            sizes = {N: n, S: s}
            assert evaluate_size(given, sizes) == evaluate_size(expected, sizes)


CLAMPED = {
    "at least one": tir.maximum(N, 1),
    "the last": tir.minimum(ONE, N),
    "the rest": tir.maximum(N - 1, 0),
    "from the end": tir.Select(N - 1 < 0, N - 1 + N, N - 1),
    "a condition": tir.Const(0) < N,
}


@pytest.mark.parametrize("name", CLAMPED)
def test_what_matters_to_a_size_of_zero_stays(name: str) -> None:
    given = CLAMPED[name]
    for n in (0, 1, 2, 5):
        assert evaluate_size(tidy(given), {N: n}) == evaluate_size(given, {N: n})


FILLED = {
    "the last": (tir.minimum(ONE, N), tir.minimum(ONE, N), ONE),
    "the rest": (tir.maximum(N - 1, 0), tir.maximum(N - 1, 0), N - 1),
    "every other one": (tir.maximum(N, 2), tir.maximum((N - 1) // 2, 0), N),
    "two slices": (tir.maximum(N - 3, 0), S * tir.maximum(tir.minimum(N - 2, S), 0), N - 3),
    "another size": (tir.maximum(N - 1, 0), S, tir.maximum(N - 1, 0)),
    "a sum": (tir.maximum(N - 1, 0), S + N, tir.maximum(N - 1, 0)),
}


@pytest.mark.parametrize("name", FILLED)
def test_sizes_where_a_tensor_has_elements(name: str) -> None:
    given, dim, expected = FILLED[name]
    known = filled(as_shape([dim]), [N, S])
    assert known.simplify(given) == known.simplify(expected)


def test_what_never_exceeds_another_size_in_a_tensor_with_elements() -> None:
    rest = tidy(tir.maximum(N - 1, 0))
    assert never_exceeds(tidy(rest + 1), N, (rest,))
    assert not never_exceeds(tidy(rest + 1), N, ())


def test_one_element_or_none() -> None:
    assert is_one_or_none(tidy(tir.minimum(ONE, N)))
    assert not any(map(is_one_or_none, (N, ONE, tir.Const(0), tidy(N - 1))))
    assert count(as_shape((4, tir.minimum(ONE, N))), symbolic=10) == 4


def test_dimensions_that_may_differ_are_not_equal() -> None:
    assert dims_equal(N * S, S * N)
    assert not dims_equal(N, S)
    assert not dims_equal(tir.maximum(N, 2), N)


def test_shapes_are_the_same_if_all_dimensions_are() -> None:
    assert same_shape(as_shape((N * S, 2)), as_shape((S * N, 2)))
    assert not same_shape(as_shape((N, 1)), as_shape((N,)))
    assert not same_shape(as_shape((N, S)), as_shape((S, N)))


BROADCASTS = {
    "ones": ([(N, 1), (1, 4)], (N, 4)),
    "ranks": ([(4,), (N, S, 1)], (N, S, 4)),
    "numbers say more": ([(N,), (4,)], (4,)),
    "the first of two symbols": ([(N,), (S,)], (N,)),
    "three": ([(), (1, 1, 1), (2, 1)], (1, 2, 1)),
    "nothing": ([], ()),
    "empty": ([(0, 1), (1, 3)], (0, 3)),
    "one or none": ([(tir.minimum(ONE, N), 3), (N, 3)], (N, 3)),
    "one or none alone": ([(tir.minimum(ONE, N), 3), (1, 1)], (tir.minimum(ONE, N), 3)),
}


@pytest.mark.parametrize("name", BROADCASTS)
def test_broadcast(name: str) -> None:
    shapes, expected = BROADCASTS[name]
    assert broadcast(*map(as_shape, shapes)) == as_shape(expected)


@pytest.mark.parametrize("shapes", [[(2, 3), (4, 3)], [(N, 2), (3,)], [(0,), (2,)]])
def test_shapes_that_cannot_be_broadcast(shapes: list[tuple[int, ...]]) -> None:
    with raises_code("G001"):
        broadcast(*map(as_shape, shapes))


def test_the_product_of_a_shape_is_one_expression() -> None:
    assert product(as_shape((2, N, 3))) == tidy(N * 6)
    assert product(()) == ONE
    assert product(as_shape((N, 0))) == tir.Const(0)


def test_numbers_and_symbols() -> None:
    assert (fixed(tir.Const(3)), fixed(N)) == (3, None)
    assert sized(as_shape((2, N - N + 3))) == (2, 3)
    assert sized(as_shape((2, N))) is None
    assert count(as_shape((2, N)), symbolic=10) == 20
    assert variables(as_shape((N * S, S, 2))) == (N, S)


def test_a_size_that_nobody_told_is_missed() -> None:
    assert evaluate_size(N // 2 + S, {N: 5, S: 1}) == 3
    with pytest.raises(KeyError, match="not all known"):
        evaluate_size(N + S, {N: 5})


def halved(times: int) -> tir.Expr:
    """Twice as long with each step."""
    size: tir.Expr = N
    for _ in range(times):
        size = size // 2 + size % 3
    return size


def test_sizes_of_very_many_steps_are_refused():
    assert length_of(N + S * 2) == 5
    assert tidy(halved(4)) is not None
    for long in (halved(12), halved(200)):
        with pytest.raises(TooLarge, match="too many steps"):
            tidy(long)


def test_sums_may_be_long():
    sizes = [tir.Var(f"n{k}") for k in range(200)]
    total = sum(sizes, tir.Const(0))
    assert variables([tidy(total)]) == tuple(sorted(sizes, key=lambda v: v.name))


def test_numbers_beyond_64_bits_are_refused():
    with pytest.raises(TooLarge, match=str(2**63)):
        tidy(N + 2**63)
    assert tidy(N + (2**63 - 1)) is not None
