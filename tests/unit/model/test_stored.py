"""Kernels and memory of values that have layouts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.laid_out import HALO, NCHW, Steps, blocked, compiled, with_layouts
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph, interpret
from tilewright.graph.grouping import group_nodes
from tilewright.graph.groups import is_view
from tilewright.graph.ops.window import Conv
from tilewright.layouts.forms import Form
from tilewright.model.kernels import task_of
from tilewright.model.sizing import SizeTable
from tilewright.model.stored import stored_program
from tilewright.runtime.sizes import evaluate
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder
from tilewright.tensor.layout import Fuse, Pad, Split
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.visit import find, walk

SHAPE = (1, 6, 5, 16)


def network(batch: int | tir.Expr = 1) -> Graph:
    """x → a → conv → b → c, where a, b and c are maps."""
    b = Builder("network")
    x = b.input("x", f32, (batch, *SHAPE[1:]))
    w = b.constant(np.linspace(-1, 1, 16 * 16 * 9, dtype=np.float32).reshape(16, 16, 3, 3))
    a = b.map(lambda v: v * 0.5, x)
    y = b.add(Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, f32), a, w)
    flat = b.reshape(y, (batch, 30, 16))
    return b.graph([b.map(lambda v: tir.maximum(v, 0.0), flat)])


def stored(graph: Graph, **layouts: Steps) -> Graph:
    return with_layouts(graph, layouts)


def parameter_shapes(graph: Graph, layouts: dict[str, Steps]) -> list[tuple[int | None, ...]]:
    changed = with_layouts(graph, layouts)
    consumers = changed.consumers()
    group = next(g for g in group_nodes(changed) if any(n.op.name == "conv" for n in g.nodes))
    task = task_of(group, group.outputs(changed, consumers), changed.constants, 1)
    return [tuple(tir.int_value(d) for d in p.shape) for p in task.program.params]


def test_parameters_have_stored_shapes():
    shapes = parameter_shapes(network(), {"map": (*HALO, *blocked(8)), "conv": NCHW})
    assert shapes == [(1, 2, 8, 7, 8), (16, 16, 3, 3), (1, 16, 6, 5)]


def test_memory_is_of_what_is_stored():
    graph = stored(network(), map=HALO)
    (value,) = graph.nodes[0].outputs
    assert evaluate(SizeTable({}).bytes_of(value), []) == 8 * 7 * 16 * 4


def test_a_reshape_of_what_is_stored_otherwise_is_a_kernel():
    plain, turned = network(), stored(network(), conv=NCHW)
    is_reshape = [n.op.name == "reshape" for n in plain.nodes]
    assert [is_view(n) for n in plain.nodes] == is_reshape
    assert not any(is_view(n) for n in turned.nodes)
    assert len(group_nodes(turned)) == len(group_nodes(plain)) + 1


@pytest.mark.parametrize("batch", [1, tir.Var("n")])
@pytest.mark.parametrize(
    "layouts",
    [
        {"map": blocked(8), "conv": NCHW},
        {"map": (*HALO, *NCHW), "conv": (*blocked(4), Pad(2, 1, 0))},
        {"map": (Pad(3, 0, 8), Split(3, 12)), "conv": HALO},
        {"conv": (Fuse(2, (5, 16)),)},
    ],
)
def test_networks_compute_the_same(layouts, batch):
    graph = with_layouts(network(batch), layouts)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    module, _ = compiled(graph)
    (found,), (expected,) = module.run({"x": x}), interpret(graph, {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_border_leaves_no_test_in_what_reads_it():
    x = placeholder("X", (1, 6, 5, 8))
    w = placeholder("W", (4, 8, 3, 3))
    y = convolve(x, w, pads=(1, 1, 1, 1))
    program = func("conv", [x, w], [y])
    assert any(isinstance(part, tir.Select) for part in walk(program))
    made = stored_program(program, {"X": HALO})
    assert not any(isinstance(part, tir.Select) for part in walk(made))
    assert all(p.layout == () for p in made.params)


def test_zeros_are_written_before_everything_else():
    x = placeholder("X", (4, 4))
    middle = compute("M", x.shape, lambda i, j: x[i, j] * 2.0)
    last = compute("Y", x.shape, lambda i, j: middle[i, j] + 1.0)
    made = stored_program(func("f", [x], [last]), {"Y": (Pad(1, 1, 2),)})
    names = [part.name for part in walk(made) if isinstance(part, tir.Block)]
    assert names == ["Y_lead1", "Y_tail1", "M", "Y"]


def tiled_convolution(taps: int, stride: int, source: Form, result: Form) -> tir.Func:
    """A convolution of 16×16 places, and a map behind it, stored in these forms."""
    pad = taps // 2
    x = placeholder("X", (1, 16, 16, 16))
    w = placeholder("W", (16, 16, taps, taps))
    y = convolve(x, w, (stride,) * 2, pads=(pad,) * 4)
    z = compute("Z", y.shape, lambda *at: y[at] * 2.0)
    if taps > 1 and source.overlap:
        source = replace(source, halo=((pad, pad),) * 2)
    program = func("conv", [x, w], [z])
    return stored_program(program, {"X": source.steps(x.shape), "Z": result.steps(z.shape)})


def block_names(program: tir.Func) -> list[str]:
    return [part.name for part in walk(program) if isinstance(part, tir.Block)]


@pytest.mark.parametrize("order", [Form(), Form(first=True, block=8)], ids=["nhwc", "nchw8c"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(
    ("taps", "overlaps"), [(3, True), (1, False), (1, True)], ids=["3x3", "1x1", "1x1 overlapping"]
)
def test_windows_inside_of_tiles_need_no_copy(taps, overlaps, stride, order):
    more = max(taps - stride, 1) if overlaps else 0
    source = replace(order, tiles=(4 * stride,) * 2, overlap=(more,) * 2 if more else ())
    made = tiled_convolution(taps, stride, source, replace(order, tiles=(4, 4)))
    assert block_names(made) == ["Y", "Z"]
    reads = [load for load in find(made, tir.Load) if load.buffer.name == "X"]
    assert reads
    assert not any(isinstance(p, tir.FloorDiv | tir.FloorMod) for n in reads for p in walk(n))


def test_windows_across_tiles_read_a_copy():
    cut = Form(tiles=(8, 8))
    assert block_names(tiled_convolution(3, 1, cut, cut)) == ["Y_border", "Y", "Z"]
    narrow = Form(tiles=(8, 8), overlap=(1, 1))
    assert block_names(tiled_convolution(3, 1, narrow, cut)) == ["Y_border", "Y", "Z"]


def test_tiles_of_the_result_may_be_others():
    made = tiled_convolution(3, 1, Form(tiles=(8, 8), overlap=(2, 2)), Form())
    assert block_names(made) == ["Y", "Z"]


def test_a_border_may_lie_in_tiles_that_do_not_overlap():
    x = placeholder("X", (1, 10, 16))
    w = placeholder("W", (16, 16, 2))
    y = convolve(x, w, (2,), pads=(1, 1))
    program = func("conv", [x, w], [compute("Z", y.shape, lambda *at: y[at] * 2.0)])
    source = Form(halo=((1, 1),), tiles=(6,)).steps(x.shape)
    assert block_names(stored_program(program, {"X": source})) == ["Y", "Z"]
