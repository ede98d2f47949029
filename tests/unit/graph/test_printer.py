"""The listing of a graph."""

from __future__ import annotations

import numpy as np

from tilewright.dtypes import f32, i64
from tilewright.graph import Builder
from tilewright.graph.loops import Turn, branch, loop
from tilewright.graph.ops.window import Conv
from tilewright.tensor import ir as tir

N = tir.Var("n")


def test_every_kind_of_line(golden):
    b = Builder("listing")
    x, limit = b.input("x", f32, (N, 4, 4, 2)), b.input("limit", i64, ())
    weights = b.constant(np.ones((3, 2, 3, 3), np.float32), "weights")
    b.label = "/conv"
    y = b.add(Conv((2, 1), (1, 1), (1, 1, 1, 1), 1, f32), x, weights)
    b.label = "/relu"
    y = b.map(lambda v, s: tir.maximum(v, 0.0) * s, y, b.constant(np.float32(0.5), "half"))
    b.label = ""
    mean = b.reduce(tir.Fold.ADD, b.transpose(y, (0, 3, 1, 2)), (2, 3), keepdims=False)
    padded = b.remap(mean, (N, 5), lambda i, j: [i, j - 1], lambda _, j: (j >= 1) & (j < 4), 1.5)
    wide = b.expand(b.reshape(padded, (1, N, 5)), (2, N, 5))

    def double(inner, _step, carried, _outside):
        return Turn([inner.map(lambda v: v + v, carried[0])])

    (last,) = loop(b, double, limit, [wide])
    (chosen,) = branch(
        b,
        b.map(lambda v: v > 3, limit),
        lambda _, outside: [outside(last)],
        lambda inner, outside: [inner.map(lambda v: -v, outside(last))],
    )
    shape = b.sizes((N, N * 5))
    assert golden == b.graph([b.concat([chosen, wide], 0), shape], ["y", "shape"])
