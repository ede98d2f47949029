import pytest

from tilewright.dtypes import f32, i64
from tilewright.lower import fold
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import walk_stmts

X, J = tir.Var("x"), tir.Var("j")
A = tir.Buffer("A", (tir.Const(64),), f32)
FOUR = {X: tir.Const(4)}


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (X * 512 + 8, tir.Const(2056)),
        (J + X * 2 + 1, J + 9),
        ((X - 4) + J, J),
        (J * (X - 3), J),
        (J * (X - 4), tir.Const(0)),
        (J // (X - 3), J),
        (J % (X - 3), tir.Const(0)),
        (X < 5, tir.TRUE),
        ((X < 3) & (J < 2), fold.FALSE),
        ((X < 5) & (J < 2), J < 2),
        ((X.eq(4)) | (J < 2), tir.TRUE),
        (tir.Select(X < 5, J, X), J),
        (tir.Not(X < J), J <= 4),
        (tir.minimum(X, 3), tir.Const(3)),
        (tir.Ramp(X * 8, tir.Const(1), 8), tir.Ramp(tir.Const(32), tir.Const(1), 8)),
    ],
    ids=range(15),
)
def test_substitute_folds(expr, expected):
    assert fold.substitute(expr, FOUR) == expected


def test_data_is_not_folded():
    """64-bit data wraps, floats round: only what is exact on indices may be computed here."""
    large = tir.Const(2**62, i64)
    value = tir.Load(tir.Buffer("B", (tir.Const(1),), i64), (X,))
    assert fold.substitute(tir.Mul(large, tir.Mul(X, large)), FOUR) != tir.Const(2**126)
    made = fold.substitute(value * 1 + 0, FOUR)
    assert type(made) is tir.Load
    one = tir.Cast(f32, X) * tir.const(1.0, f32)
    assert fold.substitute(one, FOUR) == tir.Cast(f32, tir.Const(4)) * tir.const(1.0, f32)


def test_untouched_parts_stay_the_same_object():
    store = tir.Store(A, (J,), tir.Load(A, (J + 1,)))
    loop = tir.For(J, tir.Const(8), store)
    assert fold.substitute(loop, FOUR) is loop


def test_decided_statements_vanish():
    store = tir.Store(A, (J,), tir.const(0.0, f32))
    other = tir.Store(A, (J,), tir.const(1.0, f32))
    assert fold.substitute(tir.If(X < 9, store, other), FOUR) is store
    assert fold.substitute(tir.If(X < 3, store, other), FOUR) is other
    assert fold.substitute(tir.If(X < 3, store), FOUR) == fold.NOTHING
    assert fold.substitute(tir.For(J, X - 4, store), FOUR) == fold.NOTHING
    assert fold.substitute(tir.For(J, X - 3, store), FOUR) == tir.Store(
        A, (tir.Const(0),), tir.const(0.0, f32)
    )


def test_an_element_that_keeps_its_value_is_not_stored():
    store = tir.Store(A, (J,), tir.Select(X < 3, A[J] + 1.0, A[J]))
    assert fold.substitute(store, FOUR) == fold.NOTHING
    assert fold.substitute(store, {X: tir.Const(2)}) == tir.Store(A, (J,), A[J] + 1.0)


def test_copies_have_variables_and_buffers_of_their_own():
    inner = tir.Buffer("T", (tir.Const(1),), f32)
    body = tir.Seq(
        (
            tir.Store(inner, (tir.Const(0),), tir.Load(A, (X + J,))),
            tir.Store(A, (J,), tir.Load(inner, (tir.Const(0),))),
        )
    )
    nest = tir.For(J, tir.Const(8), tir.Alloc(inner, body))
    made = fold.copied(nest, FOUR)
    assert made.var is not J
    (alloc,) = [s for s in walk_stmts(made) if type(s) is tir.Alloc]
    assert alloc.buffer is not inner
    first, second = alloc.body.body
    assert first == tir.Store(alloc.buffer, (tir.Const(0),), tir.Load(A, (made.var + 4,)))
    assert second == tir.Store(A, (made.var,), tir.Load(alloc.buffer, (tir.Const(0),)))


def test_resolved_puts_in_what_is_known():
    store = tir.Store(A, (J,), tir.const(0.0, f32))
    stmt = tir.If((J < 3) & (X < 4), store)
    assert fold.resolved(stmt, {J < 3: tir.TRUE}) == tir.If(X < 4, store)
    assert fold.resolved(stmt, {J < 3: fold.FALSE}) == fold.NOTHING


@pytest.mark.parametrize(
    ("cond", "expected"),
    [(X < J, J <= X), (X <= J, J < X), (X.eq(J), X.ne(J)), (~(X.eq(J)), X.eq(J))],
    ids=range(4),
)
def test_negated(cond, expected):
    assert fold.negated(cond) == expected
