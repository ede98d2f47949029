"""Which results may be written over an input: elements that are read where they are written."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.lowered import flat, ramp
from tilewright.dtypes import f32
from tilewright.graph.sizes import evaluate_size
from tilewright.lower import forms, lower
from tilewright.lower.counts import counted, settled
from tilewright.lower.in_place import _stores, in_place
from tilewright.schedule.draft import draft
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, seq, size, sum_over
from tilewright.tensor.evaluate import Memory
from tilewright.tensor.interpret import _Machine
from tilewright.tensor.parser import parse
from tilewright.tensor.visit import free_vars

V3 = Target.named("x86-64-v3")
WIDTHS = ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"]
ONCE = """
    def f(X: f32[24], Z: f32[24], Y: f32[24]):
        for i in range(24):
            Y[i] = X[i] + Z[23 - i]
"""


def pairs(text: str) -> tuple[tuple[int, int], ...]:
    return in_place(parse(text))


def drafted(
    program: tir.Func, threads: int = 1, target: Target = V3
) -> tuple[tuple[int, int], ...]:
    return in_place(lower(draft(program, target, threads, frozenset()).func, target).func)


def test_what_is_read_where_it_is_written_may_be_overwritten():
    assert pairs(ONCE) == ((0, 2),)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("X[i]", "X[23 - i]"),  # another element
        ("X[i] +", "X[i] + X[0] +"),  # one more
        ("range(24)", "range(23)"),  # as many stores as elements is all that is counted
        ("    Y[i] =", "    Y[i // 2] ="),
        ("X: f32[24]", "X: f32[25]"),
        ("Y[i] = X[i] + Z[23 - i]", "Y[i] = 0.0\n            Y[i] = X[i] + Z[23 - i]"),
        ("            Y[i]", "            if i < 12:\n                Y[i]"),
    ],
)
def test_anything_else_is_kept_apart(old, new):
    text = ONCE.replace(old, new)
    assert text != ONCE
    assert pairs(text) == ()


def test_tiles_that_overlap_compute_some_elements_twice():
    """The second time, the input is gone."""
    text = """
    def f(X: f32[12], Y: f32[12]):
        for i in range({tiles}):
            for j in range({width}):
                Y[i * 4 + j] = X[i * 4 + j] * 2.0
    """
    assert pairs(text.format(tiles=3, width=4)) == ((0, 1),)
    assert pairs(text.format(tiles=2, width=8)) == ()


def test_both_ways_of_a_condition_write_as_much():
    text = """
    def f(X: f32[8], Z: f32[8], Y: f32[8]):
        for i in range(8):
            if Z[i] < 1.0:
                Y[i] = X[i]
            else:
                Y[i] = X[i] * 2.0
    """
    assert pairs(text) == ((0, 2),)
    assert pairs(text.replace("Y[i] = X[i] * 2.0", "Y[i] = X[0]")) == ()


def test_iterations_that_a_condition_shares_out():
    text = """
    def f(X: f32[n], Y: f32[n]):
        for i in range(n // 8 + n % 8):
            if i < n // 8:
                Y[ramp(i * 8, 1, 8)] = X[ramp(i * 8, 1, 8)]
            else:
                Y[n // 8 * 7 + i] = X[n // 8 * 7 + i]
    """
    assert pairs(text) == ((0, 1),)
    assert pairs(text.replace("i < n // 8", "i < n // 8 + 1")) == ()
    assert pairs(text.replace("i < n // 8", "i < n - 8")) == ()


def test_iterations_of_fused_loops_that_a_condition_shares_out():
    text = """
    def f(X: f32[36], Y: f32[36]):
        for i in range(6):
            if i // 3 < 1:
                Y[ramp(i % 3 * 8, 1, 8)] = X[ramp(i % 3 * 8, 1, 8)]
            else:
                Y[ramp(i % 3 * 4 + 24, 1, 4)] = X[ramp(i % 3 * 4 + 24, 1, 4)]
    """
    assert pairs(text) == ((0, 1),)
    assert pairs(text.replace("i // 3 < 1", "i // 2 < 1")) == ()


def test_two_results_of_one_input():
    text = """
    def f(X: f32[8], Y: f32[8], W: f32[8]):
        for i in range(8):
            Y[i] = X[i] * 2.0
            W[i] = X[i] + 1.0
    """
    assert pairs(text) == ()
    assert pairs(text.replace("W[i] = X[i] + 1.0", "W[i] = 1.0")) == ((0, 1),)


def test_elements_that_data_choose():
    text = """
    def f(I: i64[8], X: f32[8], Y: f32[8]):
        for i in range(8):
            Y[I[i]] = X[I[i]]
    """
    assert pairs(text) == ()


def test_elements_of_another_type_need_as_many_bytes():
    text = """
    def f(X: i32[8], Y: f32[8]):
        for i in range(8):
            Y[i] = f32(X[i])
    """
    assert pairs(text) == ((0, 1),)
    assert pairs(text.replace("i32", "i64")) == ()


N = size("n")


def added(rows: tir.Expr | int, columns: tir.Expr | int) -> tir.Func:
    x, y = (placeholder(name, (rows, columns), f32) for name in "XZ")
    total = compute("Y", (rows, columns), lambda i, j: tir.maximum(x[i, j] + y[i, j], 0.0))
    return func("add", [x, y], [total])


def product_and_summand(rows: tir.Expr | int, columns: tir.Expr | int) -> tir.Func:
    x, w = placeholder("X", (rows, 24), f32), placeholder("W", (24, columns), f32)
    r, k = placeholder("R", (rows, columns), f32), reduce_axis(24)
    product = compute("T", (rows, columns), lambda i, j: sum_over(x[i, k] * w[k, j], k))
    total = compute("Y", (rows, columns), lambda i, j: product[i, j] + r[i, j])
    return func("added", [x, w, r], [total])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [N, 7, 1000], ids=["n", "7", "1000"])
def test_drafted_maps(n, threads):
    assert drafted(added(n, 50), threads) == ((0, 2), (1, 2))


M = size("m")
ROWS, COLUMNS = (st.one_of(st.integers(1, 70), st.just(size)) for size in (M, N))


@pytest.mark.parametrize("name", WIDTHS)
@given(rows=ROWS, columns=COLUMNS, threads=st.integers(1, 3))
@examples(10)
def test_every_vector_width_and_tiling(name, rows, columns, threads):
    """Tiles, what is left over and the threads that share them differ; what may be one does not."""
    target = Target.named(name)
    assert drafted(added(rows, columns), threads, target) == ((0, 2), (1, 2))
    assert drafted(product_and_summand(rows, columns), threads, target) == ((2, 3),)


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("make", [added, product_and_summand])
def test_lanes_that_are_on_are_counted(name, make):
    """As many elements are written as the count says, for every size, and none of them twice."""
    target = Target.named(name)
    made = lower(draft(make(M, N), target, 2, frozenset()).func, target).func
    result = made.params[-1]
    stores = settled(_stores(made.body, result))
    for m, n in ((1, 1), (2, 8), (3, 13), (5, 16), (4, 21), (7, 37)):
        written = Counter(_written(made, result, {M: m, N: n}))
        assert evaluate_size(forms.expr_of(stores), {M: m, N: n}) == written.total() == m * n
        assert max(written.values()) == 1


def _written(func: tir.Func, result: tir.Buffer, sizes: dict[tir.Var, int]) -> list[int]:
    """The places of a result that a program writes, in order."""
    places: list[int] = []

    class Watched(np.ndarray):
        def __setitem__(self, where, value):
            places.extend(np.atleast_1d(where[0]).tolist())
            super().__setitem__(where, value)

    machine = _Machine(func, None)
    machine.values.update({var: np.int64(value) for var, value in sizes.items()})
    for param in func.params:
        data = np.ones(machine.shape(param), param.dtype.numpy)
        machine.memory[param] = Memory(data.view(Watched) if param is result else data, None)
    machine.run(func.body)
    return places


def test_a_map_that_reads_one_input_backwards():
    x, z = placeholder("X", (N, 48), f32), placeholder("Z", (N, 48), f32)
    turned = compute("Y", (N, 48), lambda i, j: x[N - 1 - i, j] + z[i, j])
    assert drafted(func("turned", [x, z], [turned])) == ((1, 2),)


@pytest.mark.parametrize("n", [N, 45], ids=["n", "45"])
def test_the_summand_of_a_product(n):
    """The operands are read again and again, what is added to the product once."""
    assert drafted(product_and_summand(n, 24)) == ((2, 3),)


def test_rows_that_are_normalised():
    """All of a row is read before any of it is written, which is not looked at."""
    assert drafted(library.softmax(N, 24)) == ()


# ---- counting

COUNTS = st.recursive(
    st.one_of(st.integers(0, 40).map(tir.Const), st.sampled_from([N, M])),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, c: a * c, inner, st.integers(0, 20)),
        st.builds(lambda a, c: a // c, inner, st.integers(1, 20)),
        st.builds(lambda a, c: a % c, inner, st.integers(1, 20)),
    ),
    max_leaves=8,
)


@given(expr=COUNTS, values=st.tuples(st.integers(0, 100), st.integers(0, 100)))
def test_counts_keep_their_value(expr, values):
    names = sorted(free_vars(expr), key=lambda v: v.name)
    known = dict(zip(names, values, strict=False))
    assert evaluate_size(forms.expr_of(counted(expr)), known) == evaluate_size(expr, known)


@given(
    tiles=st.lists(
        st.sampled_from([32, 16, 14, 13, 12, 8, 7, 5, 4, 3, 2]), max_size=5, unique=True
    ),
    factor=st.integers(1, 40),
)
def test_all_tiles_of_a_cover_are_the_whole(tiles, factor):
    """`n//8*8 + n%8//2*2 + n%8%2` is `n`, however it was simplified on the way."""
    rest, total = N * factor, tir.Const(0)
    for tile in sorted(tiles, reverse=True):
        total = total + rest // tile * tile
        rest = rest % tile
    assert counted(total + rest) == counted(N * factor)
    assert counted(forms.tidy(total) + forms.tidy(rest)) == counted(N * factor)


# ---- for all programs

ELEMENTS = 12


@st.composite
def programs(draw: st.DrawFn) -> tir.Func:
    """A few loops over vectors of X and Z that write parts of Y, in no order and maybe twice."""
    x, z, y = (flat(name, ELEMENTS, f32) for name in "XZY")
    loops: list[tir.Stmt] = []
    for k in range(draw(st.integers(1, 3))):
        var, lanes = tir.Var(f"i{k}"), draw(st.sampled_from([1, 2, 4]))
        step, count = draw(st.integers(1, 4)), draw(st.integers(1, ELEMENTS // lanes))
        room = ELEMENTS - lanes - step * (count - 1)
        if room < 0:
            count, room = 1, ELEMENTS - lanes
        at = var * step + draw(st.integers(0, room))
        other = draw(st.sampled_from([at, tir.Const(0)]))
        source = draw(st.sampled_from([x, z]))
        value = tir.Load(x, (ramp(at, lanes),)) * 3.0 + tir.Load(source, (ramp(other, lanes),))
        store = tir.Store(y, (ramp(at, lanes),), value)
        loops.append(tir.For(var, tir.Const(count), store))
    return tir.Func("f", (x, z, y), seq(*loops))


def run(program: tir.Func, memory: dict[str, np.ndarray]) -> np.ndarray:
    """Stores in order, with the arrays as they are given; how often each element is written."""
    written = np.zeros(ELEMENTS, int)
    loops = program.body.body if isinstance(program.body, tir.Seq) else (program.body,)
    for loop in loops:
        store = loop.body
        tripled, added = store.value.a.a, store.value.b
        for i in range(loop.extent.value):
            target, first, second = (
                elements(access.indices[0], {loop.var: i}) for access in (store, tripled, added)
            )
            value = memory["X"][first] * np.float32(3) + memory[added.buffer.name][second]
            memory["Y"][target] = value
            written[target] += 1
    return written


def elements(index: tir.Expr, known: dict[tir.Var, int]) -> np.ndarray:
    base, count = (index.base, index.lanes) if isinstance(index, tir.Ramp) else (index, 1)
    return evaluate_size(base, known) + np.arange(count)


@given(program=programs())
def test_overwriting_changes_nothing_where_it_is_allowed(program):
    note(str(program))
    start = np.arange(1, ELEMENTS + 1, dtype=np.float32)
    arrays = {name: start * k for k, name in enumerate("YXZ")}
    apart = {name: array.copy() for name, array in arrays.items()}
    if not run(program, apart).all():
        return  # results are always filled
    for source, result in in_place(program):
        assert result == 2
        together = {name: array.copy() for name, array in arrays.items()}
        together["Y"] = together[program.params[source].name]
        run(program, together)
        np.testing.assert_array_equal(together["Y"], apart["Y"])
