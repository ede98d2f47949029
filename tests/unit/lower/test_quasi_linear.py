"""Sums of quotients: those that are linear become so, and no form changes its value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.graph.sizes import evaluate_size
from tilewright.lower import forms
from tilewright.lower.quasi_linear import MAX_PERIOD, QuasiLinear, linearised
from tilewright.tensor import ir as tir
from tilewright.tensor.build import size

N, M = size("n"), size("m")
LINEAR = st.builds(lambda k, c: N * k + c, st.integers(1, 9), st.integers(0, 9))
QUOTIENTS = st.recursive(
    LINEAR,
    lambda inner: st.builds(
        lambda a, c, k, b: a // c * k + b, inner, st.integers(2, 9), st.integers(1, 5), LINEAR
    ),
    max_leaves=3,
)


def linear_form(expr: tir.Expr) -> forms.Form:
    return linearised(forms.form_of(expr))


def test_tiles_of_a_cover_are_the_whole():
    large, rest = N // 13, N - N // 13 * 13
    middle = rest // 7
    small = rest - middle * 7
    assert linear_form(large * 13 + middle * 7 + small // 4 * 4 + (small - small // 4 * 4)) == {
        (N,): 1
    }


def test_a_product_of_sizes_is_an_argument_too():
    total = N * M * 50
    found = linear_form((total // 32 * 32 + (total - total // 32 * 32)) * M)
    assert found == forms.form_of(total * M)


def test_what_is_not_linear_stays():
    for expr in (N // 4 * 4, N // 4 + M // 4, (N + M) // 8 * 8, N // 4 * (M // 4)):
        assert linear_form(expr) == forms.form_of(expr)


def test_two_quotients_that_only_together_are_linear():
    assert linear_form(N // 2 + (N + 1) // 2) == {(N,): 1}


def test_a_period_that_is_too_long_is_not_looked_at():
    far = MAX_PERIOD + 1
    expr = N // far * far + (N - N // far * far) // 2 * 2
    assert linear_form(expr) == forms.form_of(expr)


@given(parts=st.lists(st.tuples(QUOTIENTS, st.sampled_from([tir.Const(1), M])), max_size=3))
def test_values_are_kept(parts):
    form: forms.Form = {}
    for quotient, factor in parts:
        form = forms.plus(form, forms.times(forms.form_of(quotient), forms.form_of(factor)))
    before, after = forms.expr_of(form), forms.expr_of(linearised(form))
    for n in range(0, 200, 7):
        known = {N: n, M: 3 + n % 5}
        assert evaluate_size(after, known) == evaluate_size(before, known)


@given(
    tiles=st.lists(st.integers(2, 13), max_size=4),
    factor=st.integers(1, 20),
    at=st.integers(-500, 500),
)
def test_functions_are_what_their_values_say(tiles, factor, at):
    function = QuasiLinear.identity()
    expected = at
    for tile in tiles:
        divided = function.quotient(tile)
        changed = divided.plus(function, factor) if divided is not None else None
        if changed is None:
            return
        function, expected = changed, expected // tile + factor * expected
    periods, place = divmod(at, function.period)
    assert function.values[place] + periods * function.step == expected
