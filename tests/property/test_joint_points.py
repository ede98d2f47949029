"""Any layout of the template with any loops computes what a layer means: points of a joint search.

A layer stands between others, so that it may read and write whatever it likes. Its kernel is that
of a model which chose the alternative, and its loops are a random point of the kernel's space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import event, given, note
from hypothesis import strategies as st

from tests.examples import examples
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph, Value, interpret
from tilewright.graph.ops.window import Conv, Pool
from tilewright.graph.ops.winograd import WinogradWeights
from tilewright.graph.sizes import fixed
from tilewright.layouts.alone import site_alone
from tilewright.layouts.costs import Machine
from tilewright.layouts.forms import Form
from tilewright.layouts.sites import Alternative, Settings, Site, sites_of
from tilewright.layouts.template import LayoutSpace
from tilewright.model.kernels import KernelTask
from tilewright.model.site_kernels import kernel_of
from tilewright.model.standalone import standalone
from tilewright.schedule.source import DRAFT, not_followed
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tuning.task import variant_of

TARGET = Target.host()
SETTINGS = Settings(Machine(TARGET, 1))


@dataclass(frozen=True)
class Layer:
    """A convolution or a pool: `taps` along each dimension of space, `groups` 0 for a pool."""

    space: tuple[int, ...]
    channels: int
    filters: int
    taps: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int
    pads: int

    def site(self) -> tuple[Graph, Site]:
        """The layer between two maps that are kernels of their own, with something behind it."""
        rank = len(self.space)
        b = Builder("layer")
        x = b.input("x", f32, (1, *self.space, self.channels))
        ones, none = (1,) * rank, (0,) * 2 * rank
        single = Pool(tir.Fold.MAX, ones, ones, ones, none)
        made = b.map(lambda v: v * 2.0, self._anchor(b, b.add(single, x)))
        graph = b.graph([b.add(single, made)])
        sites = sites_of(graph, SETTINGS)
        return graph, next(s for s in sites if made in s.results)

    def _anchor(self, b: Builder, x: Value) -> Value:
        pads = (self.pads,) * 2 * len(self.space)
        if not self.groups:
            fold = tir.Fold.MAX
            return b.add(Pool(fold, self.taps, self.strides, self.dilations, pads), x)
        rng = np.random.default_rng(1)
        shape = (self.filters, self.channels // self.groups, *self.taps)
        w = b.constant(rng.uniform(-1, 1, shape).astype(np.float32), "w")
        return b.add(Conv(self.strides, self.dilations, pads, self.groups, f32), x, w)


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    rank = draw(st.sampled_from([1, 2, 2]))
    space = tuple(draw(st.integers(8, 14)) for _ in range(rank))
    each = {"taps": (1, 3), "strides": (1, 2), "dilations": (1, 2)}
    own = {
        name: tuple(draw(st.integers(*ends)) for _ in range(rank)) for name, ends in each.items()
    }
    channels = draw(st.sampled_from([4, 8, 16, 24]))
    kind = draw(st.sampled_from(["dense", "dense", "grouped", "depthwise", "pool"]))
    groups = {"dense": 1, "grouped": 2, "depthwise": channels, "pool": 0}[kind]
    filters = channels if kind in ("depthwise", "pool") else draw(st.sampled_from([4, 16, 20]))
    event(kind)
    pads = draw(st.integers(0, 1)) if max(own["taps"]) > 1 else 0
    pads = min(pads, *((t - 1) * d for t, d in zip(own["taps"], own["dilations"], strict=True)))
    return Layer(space, channels, filters, groups=groups, pads=pads, **own)


def packed(array: np.ndarray, form: Form) -> np.ndarray:
    """An array as values of a form are stored."""
    shape = [tir.as_index(size) for size in array.shape]
    for step in form.steps(shape):
        array = step.pack(array)
    return np.ascontiguousarray(array)


def drawn(site: Site, rng: np.random.Generator) -> Alternative:
    space = LayoutSpace.of(site, SETTINGS.machine)
    (row,) = space.sample(rng, 1)
    found = space.at(row.tolist())
    assert found is not None
    return found


def weights_of(graph: Graph, site: Site, alternative: Alternative) -> dict[str, np.ndarray]:
    """The constants of a kernel by name, transformed where its algorithm wants them so."""
    made = site_alone(graph, site, alternative).graph
    found = {value.name: array for value, array in made.constants.items()}
    for node in made.nodes:
        if isinstance(node.op, WinogradWeights):
            arrays = [found[value.name] for value in node.inputs]
            (found[node.output.name],) = node.op.evaluate(arrays, lambda d: fixed(d) or 0)
    return found


def meant(graph: Graph, site: Site, data: np.ndarray) -> np.ndarray:
    """What the nodes of a site make of its data, plainly."""
    constants = {v: graph.constants[v] for v in site.reads if v in graph.constants}
    part = Graph("part", site.data, site.results, site.nodes, constants)
    (found,) = interpret(part, {site.data[0].name: data})
    return found


@given(layer=layers(), seed=st.integers(0, 1 << 30))
@examples(40)
def test_every_point_of_the_joint_space_computes_what_the_layer_means(layer: Layer, seed: int):
    graph, site = layer.site()
    rng = np.random.default_rng(seed)
    alternative = drawn(site, rng)
    note(alternative.key(len(layer.space) + 2))
    kernel = kernel_of(graph, site, alternative)
    assert kernel is not None
    for name, form in (("data", alternative.source), ("result", alternative.result)):
        if form.tiles:
            event(f"{name} in tiles{' that overlap' if form.overlap else ''}")
    assert_right(graph, site, alternative, kernel, rng)


@st.composite
def large_layers(draw: st.DrawFn) -> Layer:
    """As networks have them: schedules differ from those of small ones, costs decide."""
    taps, stride = draw(st.sampled_from([1, 3, 5, 7])), draw(st.integers(1, 2))
    size = draw(st.sampled_from([14, 28, 56, 112])) * stride
    channels = draw(st.sampled_from([3, 32, 64]))
    kind = draw(st.sampled_from(["dense", "dense", "depthwise", "pool"]))
    groups = {"dense": 1, "depthwise": channels, "pool": 0}[kind]
    filters = channels if groups != 1 else draw(st.sampled_from([16, 64]))
    event(f"{kind} {taps}x{taps} by {stride}")
    return Layer(
        (size, size), channels, filters, (taps,) * 2, (stride,) * 2, (1, 1), groups, taps // 2
    )


@given(layer=large_layers(), seed=st.integers(0, 1 << 30))
@examples(8)
def test_every_point_of_large_layers_is_followed(layer: Layer, seed: int):
    """Whether it computes the right thing is for small ones, which do not take long."""
    graph, site = layer.site()
    rng = np.random.default_rng(seed)
    for _ in range(10):
        alternative = drawn(site, rng)
        note(alternative.key(4))
        kernel = kernel_of(graph, site, alternative)
        assert kernel is not None
        variant = variant_of(kernel, TARGET, site.nodes)
        assert variant.decisions
        for row in variant.space.sample(rng, 2):
            points = variant.space.points(row)
            note(str(points))
            workload = kernel.with_points(points).workload(TARGET)
            assert not_followed(DRAFT.schedule(workload), workload, points) is None


def assert_right(
    graph: Graph,
    site: Site,
    alternative: Alternative,
    kernel: KernelTask,
    rng: np.random.Generator,
) -> None:
    """A kernel computes with random loops what its site means."""
    variant = variant_of(kernel, TARGET, site.nodes)
    rows = variant.space.sample(rng, 1)
    points = variant.space.points(rows[0]) if len(rows) else {}
    note(str(points))
    workload = kernel.with_points(points).workload(TARGET)
    assert not_followed(DRAFT.schedule(workload), workload, points) is None
    event(f"{'loops drawn' if points else 'drafted'}")
    (x,) = site.data
    shape = [tir.int_value(size) for size in x.shape]
    data = rng.uniform(-1, 1, shape).astype(np.float32)
    feeds = {"p0": packed(data, alternative.source)}
    made = standalone(kernel.with_points(points), TARGET)
    weights = weights_of(graph, site, alternative)
    pairs = zip(kernel.program.params, kernel.params, strict=True)
    feeds |= {param.name: weights[v.name] for param, v in pairs if v.name in weights}
    (found,) = made.run(feeds).values()
    wanted = packed(meant(graph, site, data), alternative.result)
    rounding = 1e-3 if alternative.algorithm.tiles is not None else 1e-5
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    np.testing.assert_allclose(
        found.reshape(wanted.shape), wanted, rtol=10 * rounding, atol=rounding * scale
    )
