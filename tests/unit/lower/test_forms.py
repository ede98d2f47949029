from itertools import product
from math import prod

import numpy as np
import pytest

from tilewright.lower import forms
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.evaluate import Evaluator
from tilewright.tensor.visit import free_vars, substitute

X, J, N = (tir.Var(name) for name in "xjn")
COVER = covers.of((3, 2), (2, 3), (1, 1))

EXPRESSIONS = [
    (X * 6 + J) * 4 - X * 24,
    (X + J) * (X - J),
    (X * 8 + J + 11) // 4,
    (X * 8 + J * 4 + 3) % 4,
    (X * 8 + J + 5) % 8 + X // 1,
    tir.minimum(X + 3, X + 5) + tir.maximum(J, X),
    tir.Select(tir.TRUE, X, J) * 2,
    tir.TileStart(COVER, X) * 2 + tir.TileSize(COVER, X),
    (X - J * 3) // 3 + (X - J * 3) % 3,
    8 - X - J,
    X * N + J * N - N * 2,
]


def borders(rank):
    """How many elements a tensor with a border along each dimension has."""
    total = tir.Const(1)
    for k in range(rank):
        total = total * (tir.Var(f"n{k}") + 2)
    return total


@pytest.mark.parametrize("rank", [2, 4, 5, 20])
def test_products_of_many_sums_stay_short(rank):
    whole = borders(rank)
    form = forms.form_of(whole)
    assert len(form) <= forms.MAX_TERMS
    values = {var: k + 1 for k, var in enumerate(free_vars(whole))}
    found = substitute(forms.expr_of(form), {v: tir.Const(n) for v, n in values.items()})
    assert forms.const_of(forms.form_of(found)) == prod(n + 2 for n in values.values())
    assert forms.form_of(forms.expr_of(form)) == form


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=range(len(EXPRESSIONS)))
def test_normal_form_has_the_same_value(expr):
    machine = Evaluator(tir.Func("f", (), tir.Seq(())))
    tidy = forms.tidy(expr)
    for i, j, n in product(range(6), range(5), (2, 7)):
        machine.values.update({X: np.int64(i), J: np.int64(j), N: np.int64(n)})
        assert machine.value(tidy) == machine.value(expr)


def test_equal_sums_have_equal_forms():
    a, b = forms.form_of((X + J) * 4 + N * X), forms.form_of(J * 4 + X * (N + 4))
    assert a == b
    assert forms.minus(a, b) == {}


def test_split_finds_the_factor_of_a_variable():
    factor, rest = forms.split(forms.form_of((X * 4 + J) * N + 3), X)
    assert factor == forms.form_of(N * 4)
    assert rest == forms.form_of(J * N + 3)
    assert forms.split(forms.form_of(X // 2), X) is None
    assert forms.split(forms.form_of(X * X), X) is None


def test_put_replaces_also_inside_of_atoms():
    form = forms.form_of((X + J) // 2 + X * 3)
    assert forms.put(form, {X: forms.form_of(J)}) == forms.form_of(J * 4)


def test_terms_follow_the_order_of_loops():
    form = forms.form_of(J * 2 + X + 5)
    assert forms.expr_of(form, {X: 0, J: 1}) == X + J * 2 + 5
    assert forms.expr_of(form, {X: 1, J: 0}) == J * 2 + X + 5


def test_tidy_leaves_variables_and_numbers_alone():
    number = tir.Const(3)
    assert forms.tidy(X) is X
    assert forms.tidy(number) is number


def test_a_remainder_keeps_the_dividend_of_its_quotient():
    assert forms.tidy((X * 32 + J) % 14) == (X * 32 + J) % 14
    assert forms.tidy((X * 28 + J) % 14) == J % 14


def test_products_of_atoms_are_written_alike_whatever_their_hashes_are():
    for _ in range(20):  # variables with new identities, and so new hashes
        h, w = tir.Var("h"), tir.Var("w")
        first, second = (h + 1) // 2, (w + 1) // 2
        assert forms.tidy(second * first) == first * second
        assert forms.tidy(first * second) == first * second
