"""Bounds are compared with the values that an index really takes, and boxes with the points."""

from itertools import product

import numpy as np
import pytest

from tilewright.lower import forms
from tilewright.lower.extremes import extremes, fills_box
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.evaluate import Evaluator

X, J, K, T = (tir.Var(name) for name in "xjkt")
REGULAR, IRREGULAR = covers.of((6, 2), (4, 1)), covers.of((3, 2), (2, 3), (1, 1))
LARGER = covers.of((2, 1), (5, 1))
FOUR, FIVE = tir.Const(4), tir.Const(5)


def tiles(cover: tir.Cover) -> list[tuple[tir.Var, tir.Expr]]:
    return [(T, covers.count(cover)), (J, covers.size(cover, T))]


CASES = [
    ([(J, FOUR)], (X * 4 + J,), True),
    ([(J, FOUR), (K, FIVE)], (J * 5 + K,), True),
    ([(J, FOUR), (K, FIVE)], (J * 3 + K,), True),
    ([(J, FOUR), (K, FIVE)], (J * 6 + K,), False),
    ([(J, FOUR), (K, FIVE)], (J, K), True),
    ([(J, FOUR), (K, FIVE)], (J, J + K), False),
    ([(J, FOUR)], (J, J), False),
    ([(J, FOUR)], (J * 2,), False),
    ([(J, FOUR)], (7 - J,), True),
    ([(J, FOUR), (K, J + 1)], (K,), False),
    (tiles(REGULAR), (covers.start(REGULAR, T) + J + X,), True),
    (tiles(IRREGULAR), (covers.start(IRREGULAR, T) + J,), True),
    (tiles(LARGER), (covers.start(LARGER, T) + J,), True),
    (tiles(IRREGULAR), (T, J), False),
    ([(J, covers.size(REGULAR, X))], (X * 6 + J,), True),
    ([(J, FOUR), (K, FIVE)], ((J * 5 + K) // 3,), False),
    ([(J, FOUR), (K, FIVE)], ((J * 5 + K) % 3,), False),
    ([(J, FOUR)], (tir.minimum(J + X, 2),), False),
    ([(J, FOUR)], (tir.Select(J < 2, J, X),), False),
    ([(T, covers.count(IRREGULAR))], (tir.TileStart(IRREGULAR, T),), False),
    (
        [(T, covers.count(IRREGULAR))],
        (tir.TileStart(IRREGULAR, T) + tir.TileSize(IRREGULAR, T),),
        False,
    ),
]


def points(loops, indices, i):
    """All values of the indices while the loops run."""
    machine = Evaluator(tir.Func("f", (), tir.Seq(())))
    machine.values[X] = np.int64(i)

    def run(rest):
        if not rest:
            yield tuple(int(machine.value(e)) for e in indices)
            return
        (var, extent), *inner = rest
        for value in range(int(machine.value(extent))):
            machine.values[var] = np.int64(value)
            yield from run(inner)

    return list(run(loops))


@pytest.mark.parametrize(("loops", "indices", "full"), CASES, ids=range(len(CASES)))
def test_bounds_hold_and_boxes_are_full(loops, indices, full):
    wanted = [forms.form_of(e) for e in indices]
    bounds = [extremes(form, loops) for form in wanted]
    assert fills_box(wanted, loops) is full
    for i in range(3):
        found = points(loops, indices, i)
        machine = Evaluator(tir.Func("f", (), tir.Seq(())))
        machine.values[X] = np.int64(i)
        ends = [[int(machine.value(forms.expr_of(f))) for f in b] for b in bounds]
        for d, (lo, hi) in enumerate(ends):
            values = [p[d] for p in found]
            assert lo <= min(values)
            assert max(values) <= hi
            if full:
                assert (lo, hi) == (min(values), max(values))
        if full:
            box = set(product(*(range(lo, hi + 1) for lo, hi in ends)))
            assert set(found) == box


def test_values_from_memory_have_no_bounds():
    load = tir.Load(tir.Buffer("A", (FOUR,), tir.index), (J,))
    assert extremes(forms.form_of(load + X), [(J, FOUR)]) is None


def test_symbolic_extents():
    n = tir.Var("n")
    lo, hi = extremes(forms.form_of(J * 4 + K + X), [(J, n), (K, FOUR)])
    assert lo == forms.form_of(X)
    assert hi == forms.form_of(X + n * 4 - 1)


def test_tiles_of_symbolic_covers_fill_the_extent():
    n = tir.Var("n")
    cover = covers.uniform(n, 6)
    form = forms.form_of(covers.start(cover, T) + J)
    loops = [(T, covers.count(cover)), (J, covers.size(cover, T))]
    lo, hi = extremes(form, loops)
    assert (lo, forms.expr_of(hi)) == ({}, forms.tidy(covers.total(cover) - 1))
    assert fills_box([form], loops)
