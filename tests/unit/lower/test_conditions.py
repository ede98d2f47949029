"""Where a comparison holds is compared with asking every iteration."""

import pytest

from tilewright.lower import fold, forms
from tilewright.lower.conditions import comparisons, spans
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.parser import parse

V, J, N = (tir.Var(name) for name in "vjn")
LOOP = tir.For(V, tir.Const(9), tir.Seq(()))
INNER = [(J, tir.Const(4))]

COMPARISONS = [
    kind(a, b)
    for kind in (tir.Lt, tir.Le, tir.Eq, tir.Ne)
    for a, b in [
        (V, N),
        (V * 3, N),
        (N - V * 2, tir.Const(3)),
        (V * 4 + J, N),
        (N, V * 2 + J * 3),
        (J, V),
        (V * 3 - J, N - V),
    ]
]


@pytest.mark.parametrize("comparison", COMPARISONS, ids=range(len(COMPARISONS)))
def test_spans_agree_with_every_iteration(comparison):
    found = spans(comparison, LOOP, INNER)
    for n in range(-2, 20):
        borders = [_number(border, n) for border in found.borders]
        assert borders == sorted(borders)
        for v in range(9):
            inside = [
                x
                for x, lo, hi in zip(found.values, [-99, *borders], [*borders, 99], strict=True)
                if lo <= v < hi
            ]
            truth = {_holds(comparison, v, j, n) for j in range(4)}
            assert len(inside) == 1
            assert inside[0] is None or truth == {inside[0]}


def _number(form, n):
    return tir.int_value(fold.substitute(forms.expr_of(form), {N: tir.Const(n)}))


def _holds(comparison, v, j, n):
    at = {V: tir.Const(v), J: tir.Const(j), N: tir.Const(n)}
    return fold.substitute(comparison, at).value


def test_exact_comparisons_have_no_part_between():
    found = spans(tir.Lt(V * 4, tir.Const(10)), LOOP, INNER)
    assert found.borders == (forms.constant(3), forms.constant(3))


def test_extents_that_depend_on_the_loop_are_bounded():
    inner = [(J, covers.size(covers.of((6, 2), (2, 1)), V))]
    found = spans(tir.Lt(V * 6 + J, tir.Const(14)), LOOP, inner)
    assert [forms.const_of(b) for b in found.borders] == [2, 3]


@pytest.mark.parametrize("a", [V // 2, V * V, V % 3])
def test_what_is_not_affine_has_no_spans(a):
    assert spans(tir.Lt(a, tir.Const(3)), LOOP, INNER) is None


def test_comparisons_that_decide_what_runs():
    func = parse("""
        def f(A: f32[8], B: i64[8], C: f32[8]):
            for i in range(8):
                C[i] = 0.0
                if i < 4 and B[i] < 3:
                    for j in range(4):
                        C[i] = select(i + j < 5, A[i], 1.0) + select(j < 2, 1.0, 2.0)
    """)
    found = [(str(c), [v.name for v, _ in loops]) for c, loops in comparisons(func.body)]
    assert [loops for _, loops in found] == [["i"], ["i", "j"]]
