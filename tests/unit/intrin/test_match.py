"""Matching a tile with an instruction: what is found, and the reason that is reported."""

import pytest

from tilewright.dtypes import f32
from tilewright.intrin import lookup
from tilewright.intrin.match import Match, Mismatch, TileLoop, linear_form, match
from tilewright.tensor import ir as tir
from tilewright.tensor.build import placeholder

S, R = tir.IterKind.SPATIAL, tir.IterKind.REDUCE


def variables(*names: str) -> list[tir.Var]:
    return [tir.Var(name) for name in names]


def test_linear_form_separates_loops_from_the_rest():
    i, j, v = variables("i", "j", "v")
    form = linear_form((v * 4 + i) * 2 - j * 3 + 7, {i, j})
    assert form is not None
    assert form.factors == {i: 2, j: -3}
    assert form.rest == v * 4 * 2 + 7


@pytest.mark.parametrize("bad", ["product", "quotient", "remainder"])
def test_linear_form_refuses_what_is_not_linear(bad):
    i, j = variables("i", "j")
    expr = {"product": i * j, "quotient": i // 2, "remainder": (i + j) % 4}[bad]
    assert linear_form(expr, {i, j}) is None


def test_linear_form_drops_what_cancels():
    (i,) = variables("i")
    form = linear_form(i * 3 - i * 3 + 1, {i})
    assert form is not None
    assert form.factors == {}


def gemm_store(*, transposed: bool = False) -> tuple[list[TileLoop], tir.Store]:
    p, q, r, v = variables("p", "q", "r", "v")
    a, b = placeholder("A", (64, 64)), placeholder("B", (64, 64))
    c = tir.Buffer("C", (tir.Const(64), tir.Const(64)), f32)
    where = (v * 4 + p, q)
    element = b[q, r] if transposed else b[r, q]
    value = tir.Load(c, where) + a[v * 4 + p, r] * element
    loops = [TileLoop(r, 8, R), TileLoop(q, 16, S), TileLoop(p, 4, S)]
    return loops, tir.Store(c, where, value)


def test_match_places_the_operands():
    loops, store = gemm_store()
    chosen = lookup("f32.gemm(4,16,8)")
    assert chosen is not None
    found = match(chosen, loops, store)
    assert isinstance(found, Match)
    a = found.placed[chosen.operands[0].buffer]
    assert a.buffer.name == "A"
    assert a.steps == ((1, 0), (0, 1))
    x, y = variables("x", "y")
    v = next(iter(_variables(a.base[0])))
    assert a.at((x, y)) == (v * 4 + x, y)
    ramp = tir.Ramp(y, tir.Const(1), 8)
    assert a.at((x, ramp))[1] == tir.Ramp(y, tir.Const(1), 8)


def _variables(expr: tir.Expr) -> set[tir.Var]:
    from tilewright.tensor.visit import free_vars

    return free_vars(expr)


@pytest.mark.parametrize(
    ("name", "transposed", "reason"),
    [
        ("f32.gemm(4,16,4)", False, "axes"),
        ("f32.gemm(4,16,8)", True, "dense"),
        ("f32.dot(8)", False, "axes"),
        ("i32.dot4(8)", False, "dtype"),
    ],
)
def test_match_reports_the_reason_of_the_best_attempt(name, transposed, reason):
    loops, store = gemm_store(transposed=transposed)
    chosen = lookup(name)
    assert chosen is not None
    found = match(chosen, loops, store)
    assert isinstance(found, Mismatch)
    assert found.reason == reason


def test_match_ignores_loops_of_one_iteration():
    loops, store = gemm_store()
    chosen = lookup("f32.gemm(4,16,8)")
    assert chosen is not None
    (unit,) = variables("unit")
    found = match(chosen, [*loops, TileLoop(unit, 1, S)], store)
    assert isinstance(found, Match)
