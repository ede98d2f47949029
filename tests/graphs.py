"""Random graphs for Hypothesis: a few nodes of every kind over tensors of rank up to four."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph, Value
from tilewright.graph.ops.window import Conv, Pool
from tilewright.graph.sizes import evaluate_size, fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call

__all__ = ["RandomGraph", "graphs"]

EXTENTS = (1, 2, 3, 4, 5, 8)
UNARY = (
    lambda v: tir.maximum(v, 0.0),
    lambda v: v * 0.5 + 0.25,
    lambda v: call("tanh", v),
    lambda v: call("sigmoid", v),
    lambda v: v * v,
)
BINARY = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b * 0.5,
    lambda a, b: a * b - a,
    tir.maximum,
)


@dataclass(frozen=True)
class RandomGraph:
    """A graph with values for its symbolic sizes."""

    graph: Graph
    sizes: dict[tir.Var, int]

    def feeds(self, seed: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        return {
            value.name: rng.standard_normal(
                [evaluate_size(d, self.sizes) for d in value.shape]
            ).astype(value.dtype.numpy)
            for value in self.graph.inputs
        }


@st.composite
def graphs(draw: st.DrawFn, nodes: int = 6) -> RandomGraph:
    """Graphs with one or two inputs, and every value that nobody reads as an output."""
    maker = _Maker(draw)
    for _ in range(draw(st.integers(1, nodes))):
        maker.add_node()
    return maker.finish()


class _Maker:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.b = Builder("random")
        self.batch = tir.Var("batch")
        self.sizes = {self.batch: draw(st.integers(0, 5))}
        self.values: list[Value] = []
        self.read: set[Value] = set()
        self.rng = np.random.default_rng(draw(st.integers(0, 1000)))
        for k in range(draw(st.integers(1, 2))):
            self.values.append(self.b.input(f"x{k}", f32, self._shape()))

    def _shape(self) -> list[int | tir.Expr]:
        rank = self.draw(st.integers(2, 4))
        dims: list[int | tir.Expr] = [self.draw(st.sampled_from(EXTENTS)) for _ in range(rank)]
        if self.draw(st.booleans()):
            dims[0] = self.batch
        return dims

    def pick(self) -> Value:
        value = self.draw(st.sampled_from(self.values))
        self.read.add(value)
        return value

    def constant(self, *shape: int) -> Value:
        return self.b.constant(self.rng.standard_normal(shape).astype(np.float32))

    def add_node(self) -> None:
        kinds = (
            self.unary, self.binary, self.reduce, self.transpose, self.reshape, self.slice,
            self.pad, self.edge, self.concat, self.product, self.softmax, self.norm, self.convolve,
            self.pool,
        )  # fmt: skip
        made = self.draw(st.sampled_from(kinds))()
        if made is not None:
            self.values.append(made)

    def unary(self) -> Value:
        return self.b.map(self.draw(st.sampled_from(UNARY)), self.pick())

    def binary(self) -> Value:
        x = self.pick()
        function = self.draw(st.sampled_from(BINARY))
        others = [v for v in self.values if v.type == x.type]
        kind = self.draw(st.sampled_from(("same", "vector", "scalar")))
        if kind == "same":
            other = self.draw(st.sampled_from(others))
            self.read.add(other)
            return self.b.map(function, x, other)
        width = fixed(x.shape[-1]) if x.rank else 1
        shape = (width,) if kind == "vector" and width is not None else ()
        return self.b.map(function, x, self.constant(*shape))

    def reduce(self) -> Value:
        x = self.pick()
        axes = self.draw(st.sets(st.integers(0, x.rank - 1), max_size=2)) if x.rank else set()
        fold = self.draw(st.sampled_from((tir.Fold.ADD, tir.Fold.MAX)))
        keep = self.draw(st.booleans())
        return self.b.reduce(fold, x, sorted(axes), keepdims=keep)

    def transpose(self) -> Value:
        x = self.pick()
        return self.b.transpose(x, self.draw(st.permutations(range(x.rank))))

    def reshape(self) -> Value:
        x = self.pick()
        if x.rank < 2:
            return self.b.reshape(x, (1, *x.shape))
        d = self.draw(st.integers(0, x.rank - 2))
        return self.b.reshape(x, (*x.shape[:d], x.shape[d] * x.shape[d + 1], *x.shape[d + 2 :]))

    def slice(self) -> Value | None:
        x = self.pick()
        widths = [d for d in range(x.rank) if (fixed(x.shape[d]) or 0) > 1]
        if not widths:
            return None
        d = self.draw(st.sampled_from(widths))
        shape = [*x.shape]
        shape[d] = tir.Const((fixed(x.shape[d]) or 0) - 1)
        return self.b.remap(x, shape, lambda *o: [i + 1 if k == d else i for k, i in enumerate(o)])

    def pad(self) -> Value | None:
        x = self.pick()
        if not x.rank:
            return None
        d = self.draw(st.integers(0, x.rank - 1))
        shape = [*x.shape]
        shape[d] = x.shape[d] + 2
        size = x.shape[d]
        return self.b.remap(
            x,
            shape,
            lambda *o: [i - 1 if k == d else i for k, i in enumerate(o)],
            lambda *o: (o[d] >= 1) & (o[d] <= size),
            0.5,
        )

    def edge(self) -> Value | None:
        """The first two places become one, and there is one more at the end: places are clamped."""
        x = self.pick()
        if not x.rank:
            return None
        d = self.draw(st.integers(0, x.rank - 1))
        if evaluate_size(x.shape[d], self.sizes) == 0:
            return None  # nothing could be repeated: a run refuses that
        shape = [*x.shape]
        shape[d] = x.shape[d] + 2
        last = x.shape[d] - 1
        return self.b.remap(
            x,
            shape,
            lambda *o: [
                tir.minimum(tir.maximum(i - 1, 0), last) if k == d else i for k, i in enumerate(o)
            ],
        )

    def concat(self) -> Value | None:
        x = self.pick()
        others = [v for v in self.values if v.type == x.type]
        other = self.draw(st.sampled_from(others))
        self.read.add(other)
        return self.b.concat([x, other], self.draw(st.integers(0, x.rank - 1))) if x.rank else None

    def product(self) -> Value | None:
        x = self.pick()
        width = fixed(x.shape[-1]) if x.rank else None
        if width is None:
            return None
        return self.b.matmul(x, self.constant(width, self.draw(st.sampled_from(EXTENTS))))

    def softmax(self) -> Value:
        x, b = self.pick(), self.b
        axes = (x.rank - 1,) if x.rank else ()
        peak = b.reduce(tir.Fold.MAX, x, axes)
        power = b.map(lambda v, m: call("exp", v - m), x, peak)
        total = b.reduce(tir.Fold.ADD, power, axes)
        return b.map(lambda v, s: v / s, power, total)

    def norm(self) -> Value:
        x, b = self.pick(), self.b
        axes = (x.rank - 1,) if x.rank else ()
        count = float(fixed(x.shape[-1]) or 1) if x.rank else 1.0
        mean = b.map(lambda s: s / count, b.reduce(tir.Fold.ADD, x, axes))
        centred = b.map(lambda v, m: v - m, x, mean)
        square = b.reduce(tir.Fold.ADD, b.map(lambda v: v * v, centred), axes)
        scale = b.map(lambda s: 1.0 / call("sqrt", s + 0.5), square)
        return b.map(lambda v, s: v * s, centred, scale)

    def convolve(self) -> Value | None:
        x = self.pick()
        if (
            x.rank != 4
            or any((fixed(d) or 0) < 2 for d in x.shape[1:3])
            or fixed(x.shape[3]) is None
        ):
            return None
        window = self.draw(st.sampled_from((1, 2, 3)))
        pad = window // 2 if window > 1 else 0
        stride = self.draw(st.sampled_from((1, 2)))
        filters = self.draw(st.sampled_from(EXTENTS))
        weights = self.constant(filters, fixed(x.shape[3]) or 1, window, window)
        op = Conv((stride, stride), (1, 1), (pad,) * 4, 1, f32)
        moved = self.draw(st.booleans())
        y = self.b.add(op, x, weights)
        return self.b.transpose(y, (0, 3, 1, 2)) if moved else y

    def pool(self) -> Value | None:
        x = self.pick()
        if x.rank != 4 or any((fixed(d) or 0) < 2 for d in x.shape[1:3]):
            return None
        fold = self.draw(st.sampled_from((tir.Fold.MAX, tir.Fold.ADD)))
        return self.b.add(Pool(fold, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0)), x)

    def finish(self) -> RandomGraph:
        outputs = [v for v in self.values if v not in self.read] or self.values[-1:]
        names = [f"y{k}" for k in range(len(outputs))]  # a value may be there twice
        return RandomGraph(self.b.graph(outputs, names), self.sizes)
