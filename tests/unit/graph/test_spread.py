"""Broadcasting where only a run tells which sizes are one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tilewright.dtypes import f32
from tilewright.graph import Builder
from tilewright.graph.interpret import interpret
from tilewright.graph.sizes import as_shape, evaluate_size
from tilewright.graph.spread import broadcast_shape, onto, spread_shape
from tilewright.tensor import ir as tir

N, M, K = tir.Var("n"), tir.Var("m"), tir.Var("k")


def test_shapes_for_every_size() -> None:
    (wide,) = spread_shape(as_shape([N]), as_shape([M]), as_shape([K]))
    for sizes in product(range(4), repeat=3):
        try:
            (wanted,) = np.broadcast_shapes(*((size,) for size in sizes))
        except ValueError:
            continue
        assert evaluate_size(wide, dict(zip((N, M, K), sizes, strict=True))) == wanted


def test_numbers_say_more_than_symbols() -> None:
    assert spread_shape(as_shape([N, 1, M]), as_shape([4, 1])) == as_shape([N, 4, M])
    assert spread_shape(as_shape([1]), as_shape([1])) == as_shape([1])


def test_the_meaning_of_a_graph_that_spreads() -> None:
    b = Builder()
    b.spreads = True
    x, z = b.input("x", f32, [N, 2]), b.input("z", f32, [M, 2])
    graph = b.graph(
        [b.map(lambda v, w: v - w, x, z), b.expand(x, broadcast_shape(b, x.shape, z.shape))]
    )
    for n, m in ((1, 3), (3, 1), (2, 2), (0, 1), (1, 0)):
        one, two = (np.random.default_rng(k).random((k, 2), np.float32) for k in (n, m))
        difference, wide = interpret(graph, {"x": one, "z": two})
        assert np.array_equal(difference, one - two)
        assert np.array_equal(wide, np.broadcast_to(one, (one - two).shape))


def test_one_direction() -> None:
    b = Builder()
    x = b.input("x", f32, [N])
    assert onto(b, x, as_shape([2, M])) is x
    assert onto(b, x, as_shape([2, 1])).shape == as_shape([1])
    with pytest.raises(ValueError, match="3 elements cannot be broadcast to one"):
        onto(b, b.input("y", f32, [3]), as_shape([1]))
