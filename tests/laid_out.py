"""Graphs whose inner values have layouts: random images and windows, random steps that fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from hypothesis import strategies as st

from tests.graphs import RandomGraph
from tilewright.dtypes import f16, f32
from tilewright.graph import Builder, Graph, Value, verify_graph
from tilewright.graph.groups import Group
from tilewright.graph.ops.window import Conv, ConvTranspose, Pool
from tilewright.graph.sizes import count, fixed
from tilewright.model.assemble import Assembled, assemble
from tilewright.model.module import Module, parts_of
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import call
from tilewright.tensor.layout import Fuse, LayoutStep, Pad, Reorder, Split, Unfold
from tilewright.tensor.stored import stored_shape

Steps = Sequence[LayoutStep]

MAX_ELEMENTS = 20_000

NCHW = (Reorder((0, 3, 1, 2)),)
"""Channels first: logically, images are (batch, height, width, channels)."""

HALO = (Pad(1, 1, 1), Pad(2, 1, 1))
"""One line and column of zeros on every side."""


def blocked(size: int) -> tuple[LayoutStep, ...]:
    """Channels first, in blocks of so many that lie innermost."""
    return (Split(3, size), Reorder((0, 3, 1, 2, 4)))


def with_layouts(graph: Graph, layouts: Mapping[str, Steps]) -> Graph:
    """The graph with the values of these names stored otherwise."""
    new: dict[Value, Value] = {}

    def value(old: Value) -> Value:
        if old.name not in layouts:
            return old
        kind = dataclasses.replace(old.type, layout=tuple(layouts[old.name]))
        return new.setdefault(old, Value(old.name, kind))

    nodes = [
        dataclasses.replace(
            n, inputs=tuple(map(value, n.inputs)), outputs=tuple(map(value, n.outputs))
        )
        for n in graph.nodes
    ]
    return verify_graph(graph.with_nodes(nodes))


def compiled(
    graph: Graph, threads: int = 1, groups: Sequence[Group] | None = None
) -> tuple[Module, Assembled]:
    """A graph as it is, compiled for this machine; `groups` are its kernels, if they are known."""
    target = Target.host()
    made = assemble(graph, target, threads, groups=groups)
    return Module.of(made, parts_of(made, target, {}), threads, graph), made


@st.composite
def random_layouts(draw: st.DrawFn, graph: Graph) -> dict[str, Steps]:
    """Layouts of up to four steps for inner values."""
    inner = [v for n in graph.nodes for v in n.outputs if v not in graph.outputs]
    return {v.name: draw(layouts(v.shape)) for v in inner}


@st.composite
def layouts(draw: st.DrawFn, shape: Sequence[tir.Expr]) -> tuple[LayoutStep, ...]:
    """Steps that fit a shape one after the other."""
    steps: list[LayoutStep] = []
    dims = tuple(shape)
    for _ in range(draw(st.integers(0, 4))):
        kinds = (_split, _split, _reorder, _reorder, _fuse, _pad, _unfold)
        step = draw(st.sampled_from(kinds))(draw, dims) if dims else None
        if step is not None and count(stored_shape(dims, (step,)), symbolic=6) <= MAX_ELEMENTS:
            steps.append(step)
            dims = stored_shape(dims, (step,))
    return tuple(steps)


def _split(draw: st.DrawFn, dims: Sequence[tir.Expr]) -> LayoutStep | None:
    dim = draw(st.integers(0, len(dims) - 1))
    whole = Analyzer().divisor(dims[dim])
    return Split(
        dim, draw(st.sampled_from([f for f in range(1, whole + 1) if whole % f == 0] or [1]))
    )


def _reorder(draw: st.DrawFn, dims: Sequence[tir.Expr]) -> LayoutStep | None:
    return Reorder(tuple(draw(st.permutations(range(len(dims))))))


def _fuse(draw: st.DrawFn, dims: Sequence[tir.Expr]) -> LayoutStep | None:
    if len(dims) < 2:
        return None
    dim = draw(st.integers(0, len(dims) - 2))
    size = draw(st.integers(2, min(3, len(dims) - dim)))
    return Fuse(dim, tuple(n if (n := fixed(d)) is not None else d for d in dims[dim : dim + size]))


def _pad(draw: st.DrawFn, dims: Sequence[tir.Expr]) -> LayoutStep | None:
    return Pad(
        draw(st.integers(0, len(dims) - 1)), draw(st.integers(0, 2)), draw(st.integers(0, 2))
    )


def _unfold(draw: st.DrawFn, dims: Sequence[tir.Expr]) -> LayoutStep | None:
    dim = draw(st.integers(0, len(dims) - 1))
    extent = fixed(dims[dim])
    if not extent:
        return None
    tile = draw(st.integers(1, extent))
    return Unfold(dim, tile, draw(st.integers(1, tile)), extent)


@st.composite
def images(draw: st.DrawFn, nodes: int = 4) -> RandomGraph:
    """Networks on images: windows of every kind, maps, joins, movements and sums between them.

    Images have one to three dimensions of space, mostly two.
    """
    maker = _Images(draw)
    for _ in range(draw(st.integers(2, nodes))):
        maker.add()
    return maker.finish()


class _Images:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.b = Builder("images")
        batch = tir.Var("batch")
        self.sizes = {batch: draw(st.integers(1, 3))}
        first: int | tir.Expr = draw(st.sampled_from((1, 2, batch)))
        self.rank: int = draw(st.sampled_from((2, 2, 1, 3)))
        sides = st.integers(4, {1: 24, 2: 9, 3: 6}[self.rank])
        side = [draw(sides) for _ in range(self.rank)]
        self.dtype = draw(st.sampled_from((f32, f32, f32, f16)))
        channels = draw(st.sampled_from((3, 4, 8, 12, 16, 17)))
        x = self.b.input("x", self.dtype, (first, *side, channels))
        self.rng = np.random.default_rng(draw(st.integers(0, 1000)))
        self.values = [self.b.map(lambda v: v * 0.5, x)]

    def add(self) -> None:
        kinds = (
            *[self.conv] * 5, self.pool, self.transposed, self.relu, self.bias, self.join,
            self.concat, self.crop, self.total, self.softmax, self.flat, self.shuffle,
            self.classifier,
        )  # fmt: skip
        made = self.draw(st.sampled_from(kinds))()
        if made is not None and 0 < prod(fixed(d) or 3 for d in made.shape) <= MAX_ELEMENTS:
            self.values.append(made)

    def pick(self) -> Value:
        return self.draw(st.sampled_from(self.values[-2:]))

    def weights(self, *shape: int) -> Value:
        return self.b.constant((self.rng.standard_normal(shape) * 0.3).astype(self.dtype.numpy))

    @property
    def space(self) -> tuple[int, ...]:
        """The dimensions between batch and channels."""
        return tuple(range(1, 1 + self.rank))

    def each(self, *choices: int) -> tuple[int, ...]:
        """One of them for each dimension of space."""
        return tuple(self.draw(st.sampled_from(choices)) for _ in self.space)

    def groups(self, *sizes: int) -> int:
        return self.draw(
            st.sampled_from([g for g in (1, 1, 2, 4, sizes[0]) if not any(s % g for s in sizes)])
        )

    def window(self, x: Value) -> tuple[tuple[int, ...], ...] | None:
        """(kernel, strides, dilations, pads) that fit."""
        kernel, strides, dilations = (
            self.each(1, 2, 3, 3),
            self.each(1, 1, 2),
            self.each(1, 1, 1, 2),
        )
        reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
        lead, tail = (  # every window sees x
            [min(p, r) for p, r in zip(self.each(0, 1, 1), reach, strict=True)] for _ in range(2)
        )
        sizes = [fixed(x.shape[d]) or 0 for d in self.space]
        if any(s + a + b <= r for s, a, b, r in zip(sizes, lead, tail, reach, strict=True)):
            return None
        return kernel, strides, dilations, (*lead, *tail)

    def conv(self) -> Value | None:
        x = self.pick()
        found, channels = self.window(x), fixed(x.shape[-1]) or 1
        if found is None:
            return None
        kernel, *geometry = found
        filters = self.draw(st.sampled_from((1, 4, 8, 13, 16, 24, channels)))
        groups = self.groups(channels, filters)
        weights = self.weights(filters, channels // groups, *kernel)
        return self.b.add(Conv(*geometry, groups, self.dtype), x, weights)

    def transposed(self) -> Value | None:
        x = self.pick()
        channels = fixed(x.shape[-1]) or 1
        kernel, strides = self.each(1, 2, 3, 4), self.each(1, 2, 2)
        dilations, pads = self.each(1, 1, 1, 2), (*self.each(0, 0, 1), *self.each(0, 0, 1))
        extra = tuple(min(e, s - 1) for e, s in zip(self.each(0, 0, 1), strides, strict=True))
        groups = self.groups(channels)
        weights = self.weights(channels, self.draw(st.sampled_from((1, 4, 5))), *kernel)
        op = ConvTranspose(strides, dilations, pads, extra, groups, self.dtype)
        if any((fixed(d) or 0) < 1 for d in op.space(x.shape[1:-1], kernel)):
            return None
        return self.b.add(op, x, weights)

    def pool(self) -> Value | None:
        x = self.pick()
        found = self.window(x)
        fold = self.draw(st.sampled_from((tir.Fold.MAX, tir.Fold.ADD)))
        return None if found is None else self.b.add(Pool(fold, *found), x)

    def relu(self) -> Value:
        return self.b.map(lambda v: tir.maximum(v, 0.0), self.pick())

    def bias(self) -> Value:
        x = self.pick()
        of_lines = (1, fixed(x.shape[1]) or 1, *(1,) * self.rank)
        shape = self.draw(st.sampled_from(((fixed(x.shape[-1]) or 1,), of_lines)))
        return self.b.map(lambda v, c: v + c, x, self.weights(*shape))

    def join(self) -> Value:
        x = self.pick()
        others = [v for v in self.values if v.shape == x.shape]
        return self.b.map(lambda v, w: v - w, x, self.draw(st.sampled_from(others)))

    def concat(self) -> Value:
        x = self.pick()
        others = [v for v in self.values if v.shape[:-1] == x.shape[:-1]]
        return self.b.concat([x, self.draw(st.sampled_from(others))], 1 + self.rank)

    def crop(self) -> Value | None:
        x = self.pick()
        d = self.draw(st.integers(1, 1 + self.rank))
        size = fixed(x.shape[d]) or 0
        if size < 3:
            return None
        shape = [*x.shape]
        shape[d] = tir.Const(size - 2)
        return self.b.remap(x, shape, lambda *o: [i + 1 if k == d else i for k, i in enumerate(o)])

    def total(self) -> Value:
        axes = self.draw(st.sampled_from((self.space, (1 + self.rank,), (1,))))
        x = self.pick()
        return self.b.map(lambda v, s: v + s, x, self.b.reduce(tir.Fold.ADD, x, axes))

    def softmax(self) -> Value:
        x, b = self.pick(), self.b
        last = (1 + self.rank,)
        axes = self.draw(st.sampled_from((last, self.space, (*self.space, *last))))
        power = b.map(lambda v, m: call("exp", v - m), x, b.reduce(tir.Fold.MAX, x, axes))
        return b.map(lambda v, s: v / s, power, b.reduce(tir.Fold.ADD, power, axes))

    def flat(self) -> Value:
        """All places in one dimension, and back."""
        x = self.pick()
        places = prod(fixed(d) or 1 for d in x.shape[1:-1])
        return self.b.reshape(self.b.reshape(x, (x.shape[0], places, x.shape[-1])), x.shape)

    def shuffle(self) -> Value:
        x = self.pick()
        channels = fixed(x.shape[-1]) or 1
        groups = self.groups(channels)
        parts = self.b.reshape(x, (*x.shape[:-1], groups, channels // groups))
        order = (0, *self.space, 2 + self.rank, 1 + self.rank)
        return self.b.reshape(self.b.transpose(parts, order), x.shape)

    def classifier(self) -> Value:
        """A product with all elements of an image, channels first or last."""
        x = self.pick()
        last = 1 + self.rank
        orders = (0, *self.space, last), (0, last, *self.space)
        moved = self.b.transpose(x, self.draw(st.sampled_from(orders)))
        row = prod(fixed(d) or 1 for d in x.shape[1:])
        flat = self.b.reshape(moved, (x.shape[0], row))
        made = self.b.contract("mk", "nk", "mn", flat, self.weights(4, row))
        return self.b.reshape(made, (x.shape[0], *(1,) * self.rank, 4))

    def finish(self) -> RandomGraph:
        """The last value is a result, and perhaps one that others read, too: a convolution, say."""
        result = self.b.map(lambda v: v + 1.0, self.values[-1])
        graph = self.b.graph([result])
        inner = [n.inputs[0] for n in graph.nodes if isinstance(n.op, Conv)] or self.values
        read = self.draw(st.sampled_from(((), *((v,) for v in inner))))
        return RandomGraph(self.b.graph([result, *read]), self.sizes)
