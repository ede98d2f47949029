"""Random networks with shuffles and slices of channels: the same numbers, and no more copies."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.rewriting import feeds_of
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph, Value, interpret, verify_graph
from tilewright.graph.ops import Gather, Transpose
from tilewright.graph.ops.window import Conv, Pool
from tilewright.graph.passes.rewrite import rewrite_graph
from tilewright.graph.passes.shuffles import sink_shuffles
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir

MAX_ELEMENTS = 4000


class _Network:
    """Steps on images of few channels; all numbers are small and whole, so that sums are exact."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw, self.b = draw, Builder("shuffled")
        self.rng = np.random.default_rng(draw(st.integers(0, 1000)))
        channels = draw(st.sampled_from((4, 6, 8, 12, 16)))
        self.values = [self.b.input("x", f32, (draw(st.sampled_from((1, 2))), 3, 4, channels))]

    def graph(self) -> Graph:
        kinds = (
            *[self.shuffle] * 4, *[self.slice] * 2, self.depthwise, self.depthwise, self.dense,
            self.grouped, self.pool, self.larger, self.crop, self.relu, self.scale,
            *[self.join] * 3, *[self.concat] * 3, self.mean, self.total, self.product,
        )  # fmt: skip
        for _ in range(self.draw(st.integers(2, 9))):
            made = self.draw(st.sampled_from(kinds))()
            if prod(map(size, made.shape)) <= MAX_ELEMENTS:
                self.values.append(made)
        last = self.values[-1]
        if self.draw(st.integers(0, 3)):
            return self.b.graph([self.conv(last, 4, 1, 1)])
        return self.b.graph([last, self.dense()])

    def pick(self) -> Value:
        return self.draw(st.sampled_from(self.values[-3:]))

    def weights(self, *shape: int) -> Value:
        return self.b.constant(self.rng.integers(-2, 3, shape).astype(np.float32))

    def shuffle(self) -> Value:
        x = self.pick()
        channels = size(x.shape[-1])
        groups = self.draw(st.sampled_from(divisors(channels)))
        inner = self.draw(st.sampled_from(divisors(channels // groups)))
        digits = [groups, inner, channels // groups // inner]
        moved = self.draw(st.permutations(range(3)))
        parts = self.b.reshape(x, (*x.shape[:3], *digits))
        turned = self.b.transpose(parts, (0, 1, 2, *(3 + d for d in moved)))
        return self.b.reshape(turned, x.shape)

    def slice(self) -> Value:
        x = self.pick()
        channels = size(x.shape[-1])
        parts = self.draw(st.sampled_from(divisors(channels)))
        some = channels // parts
        start = self.draw(st.integers(0, channels - some))
        start -= start % some if self.draw(st.booleans()) else 0
        return self.b.remap(x, (*x.shape[:3], some), lambda n, h, w, c: [n, h, w, c + start])

    def conv(self, x: Value, filters: int, groups: int, taps: int, pads: int = 0) -> Value:
        weights = self.weights(filters, size(x.shape[-1]) // groups, taps, taps)
        return self.b.add(Conv((1, 1), (1, 1), (pads,) * 4, groups, f32), x, weights)

    def depthwise(self) -> Value:
        x = self.pick()
        return self.conv(x, size(x.shape[-1]), size(x.shape[-1]), 3, 1)

    def dense(self) -> Value:
        return self.conv(self.pick(), self.draw(st.sampled_from((4, 6, 8))), 1, 1)

    def grouped(self) -> Value:
        x = self.pick()
        groups = self.draw(st.sampled_from(divisors(size(x.shape[-1]))))
        return self.conv(x, groups * self.draw(st.integers(1, 2)), groups, 1)

    def pool(self) -> Value:
        return self.b.add(Pool(tir.Fold.MAX, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)), self.pick())

    def larger(self) -> Value:
        x = self.pick()
        shape = (x.shape[0], x.shape[1] * 2, *x.shape[2:])
        return self.b.remap(x, shape, lambda n, h, w, c: [n, h // 2, w, c])

    def crop(self) -> Value:
        x = self.pick()
        return self.b.remap(x, (x.shape[0], 1, *x.shape[2:]), lambda n, h, w, c: [n, h, w, c])

    def relu(self) -> Value:
        return self.b.map(lambda v: tir.maximum(v, 0.0), self.pick())

    def scale(self) -> Value:
        x = self.pick()
        shape = self.draw(st.sampled_from(((size(x.shape[-1]),), (2, *map(size, x.shape[1:3]), 1))))
        return self.b.map(lambda v, c: v * c, x, self.weights(*shape))

    def join(self) -> Value:
        x = self.pick()
        alike = [v for v in self.values if v.shape == x.shape]
        return self.b.map(lambda v, w: v - w, x, self.draw(st.sampled_from(alike)))

    def concat(self) -> Value:
        x = self.pick()
        alike = [v for v in self.values if v.shape[:3] == x.shape[:3]]
        return self.b.concat([x, self.draw(st.sampled_from(alike))], 3)

    def mean(self) -> Value:
        return self.b.reduce(tir.Fold.ADD, self.pick(), (1, 2))

    def total(self) -> Value:
        x = self.pick()
        return self.b.map(lambda v, s: v + s, x, self.b.reduce(tir.Fold.ADD, x, (3,)))

    def product(self) -> Value:
        x = self.pick()
        return self.b.contract("nhwk", "ko", "nhwo", x, self.weights(size(x.shape[-1]), 4))


def size(dim: tir.Expr) -> int:
    return fixed(dim) or 1


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    return _Network(draw).graph()


def moved(graph: Graph) -> int:
    """Elements that shuffles copy."""
    made = (n.output for n in graph.nodes if isinstance(n.op, Transpose))
    return sum(prod(map(size, value.shape)) for value in made)


@given(networks())
def test_shuffles_keep_every_number_and_copy_no_more(graph):
    after = graph
    for _ in range(3):
        after = verify_graph(rewrite_graph(after, sink_shuffles))
    feeds = {name: np.round(array) for name, array in feeds_of(graph).items()}
    for found, wanted in zip(interpret(after, feeds), interpret(graph, feeds), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert moved(after) <= moved(graph)


@given(networks())
def test_an_order_that_is_no_shuffle_is_taken_in_by_something(graph):
    """Looking ahead promised that."""
    after = rewrite_graph(graph, sink_shuffles)
    assert not any(isinstance(node.op, Gather) for node in after.nodes)
