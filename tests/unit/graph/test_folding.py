"""What is computed while a model is compiled: in proportion to its weights and to what it costs."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.dtypes import f32
from tilewright.graph import Builder, interpret
from tilewright.graph.folding import FREE_ELEMENTS, Purse
from tilewright.graph.ops import ArgReduce, Cumulate
from tilewright.tensor import ir as tir

LARGE = 1 << 20


def held(b: Builder, value) -> bool:
    return b.contents(value) is not None


def weights(b: Builder, name: str) -> object:
    b.purse.fill(LARGE)
    return b.constant(np.arange(LARGE, dtype=np.float32).reshape(2048, 512), name)


@pytest.mark.parametrize(
    "make",
    [
        lambda b, x, y: b.concat([x, y, x], 0),
        lambda b, x, y: b.concat([x, y], 1),
        lambda b, x, _: b.transpose(x, (1, 0)),
        lambda b, x, y: b.map(lambda v, w: v * w, x, y),
        lambda b, x, _: b.reduce(tir.Fold.ADD, x, (0,)),
        lambda b, x, _: b.add(ArgReduce(tir.Fold.MAX, 1), x),
        lambda b, x, _: b.add(Cumulate(tir.Fold.ADD, 1), x),
    ],
    ids=["rows", "columns", "transposed", "product", "sum", "greatest", "running sum"],
)
def test_what_costs_as_much_as_reading_weights_is_folded(make):
    """Weights of recurrent layers are joined out of parts, for example."""
    b = Builder("weights")
    assert held(b, make(b, weights(b, "x"), weights(b, "y")))


def test_a_product_of_large_weights_is_left_to_the_run():
    b = Builder("product")
    x, y = (b.reshape(weights(b, name), (1024, 1024)) for name in "xy")
    assert not held(b, b.matmul(x, y))


def test_few_elements_do_not_become_very_many():
    b = Builder("bomb")
    one = b.constant(np.float32(1), "one")
    assert held(b, b.expand(one, (FREE_ELEMENTS // 2,)))
    assert not held(b, b.expand(one, (FREE_ELEMENTS,))), "the rest of the purse is less"
    assert not held(b, b.expand(one, (1 << 40,)))


def test_a_purse_pays_until_it_is_empty():
    purse = Purse()
    assert purse.spends(FREE_ELEMENTS)
    assert not purse.spends(1)
    purse.fill(1)
    assert purse.spends(16)
    assert not purse.spends(1)


def test_sizes_that_become_too_long_are_data():
    b = Builder("long")
    x = b.input("x", f32, (tir.Var("n"),))
    size = b.sizes(x.shape)
    known = []
    for _ in range(10):
        size = b.map(lambda d: d // 2 + d % 3, size)
        known.append(held(b, size))
    assert known[:4] == [True] * 4
    assert known[-1] is False
    graph = b.graph([size])
    n = right = 1000
    for _ in range(10):
        right = right // 2 + right % 3
    (found,) = interpret(graph, {"x": np.zeros(n, np.float32)})
    assert found.tolist() == [right]


def test_sizes_are_paid_for():
    b = Builder("paid", Purse(work=1000))
    size = b.sizes([tir.Var("n")])
    assert held(b, b.map(lambda d: d + 1, size))
    assert not held(b, b.map(lambda d: d * 2 + 1, size))
    assert not held(b, b.map(lambda d: d - 3, size))
