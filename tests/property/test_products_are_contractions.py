"""Whatever window a convolution has, and whatever computes it: its product is scheduled as one.

A product that is taken for a plain sum is right, and runs at a third of the speed.
"""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from tests.examples import examples
from tilewright.graph.grouping import group_nodes
from tilewright.layouts.apply import apply
from tilewright.layouts.costs import Machine
from tilewright.layouts.sites import Settings, sites_of
from tilewright.model.compiler import choose_layouts
from tilewright.model.kernels import KernelTask, task_of
from tilewright.schedule.draft import draft
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import folding
from tilewright.tensor.visit import walk

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
PRODUCTS = {"contraction", "tile blocks", "windows over channels", "windows along lines"}


@st.composite
def layers(draw: st.DrawFn) -> onnx.ModelProto:
    """A convolution with a window of any shape, long in some dimensions and single in others."""
    rank = draw(st.integers(1, 3))
    taps = [draw(st.sampled_from([1, 2, 3, 5, 7])) for _ in range(rank)]
    strides = [draw(st.sampled_from([1, 1, 2])) for _ in range(rank)]
    groups = draw(st.sampled_from([1, 1, 2]))
    channels, filters = (16 * draw(st.sampled_from([1, 3])) for _ in range(2))
    size = draw(st.sampled_from([7, 9, 17]))
    pads = [t // 2 for t in taps] * 2
    weights = np.ones((filters, channels // groups, *taps), np.float32)
    node = helper.make_node(
        "Conv", ["x", "w"], ["y"], strides=strides, pads=pads, group=groups, kernel_shape=taps
    )
    space = [(size + 2 * (t // 2) - t) // s + 1 for t, s in zip(taps, strides, strict=True)]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, channels, *[size] * rank])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, filters, *space])
    held = [numpy_helper.from_array(weights, "w")]
    graph = helper.make_graph([node], "layer", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def products(task: KernelTask) -> set[str]:
    """Blocks that add up many products of two loads."""
    found = set()
    for block in (node for node in walk(task.program.body) if isinstance(node, tir.Block)):
        summed = folding(block)
        steps = [it.extent for it in block.iters if it.kind is tir.IterKind.REDUCE]
        is_long = prod(tir.int_value(extent) or 1 for extent in steps) >= 16
        if summed is not None and is_long and isinstance(summed.value, tir.Mul):
            found.add(block.name)
    return found


@given(model=layers(), name=st.sampled_from(TARGETS), data=st.data())
@examples(40)
def test_products_of_convolutions_are_contractions(model, name, data):
    target = Target.named(name)
    graph = choose_layouts(model, target, 1, lambda _: None).graph
    settings = Settings(Machine(target, 1))
    chosen = [
        (site, data.draw(st.sampled_from(site.alternatives))) for site in sites_of(graph, settings)
    ]
    applied = apply(graph, chosen)
    consumers = applied.graph.consumers()
    for group in group_nodes(applied.graph, applied.kernels):
        outputs = group.outputs(applied.graph, consumers)
        task = task_of(group, outputs, applied.graph.constants, 8)
        schedule = draft(task.program, target, 8, task.constants, task.loops)
        decided = {b for d in schedule.decisions if d.recipe.name in PRODUCTS for b in d.blocks}
        assert products(task) <= decided, [d.recipe.name for d in schedule.decisions]
