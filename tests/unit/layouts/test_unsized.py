"""Convolutions of images of unknown size: two kernels, of which a run takes the faster one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph
from tilewright.graph.interpret import interpret
from tilewright.graph.ops.by_size import BySize
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.ops.winograd import WinogradConv, WinogradTransposed
from tilewright.layouts.algorithms import DIRECT, shape_with
from tilewright.layouts.choose import choose
from tilewright.layouts.costs import Machine
from tilewright.layouts.sites import Settings, sites_of
from tilewright.layouts.unsized import unsized_ways
from tilewright.target import Target
from tilewright.tensor import ir as tir

MACHINE = Machine(Target.named("x86-64-v3"), 1)
N, H, W = (tir.Var(name) for name in "nhw")


def weights_of(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).uniform(-1, 1, shape).astype(np.float32)


def network(
    space: Sequence[object] = (H, W), channels: int = 64, filters: int = 64, taps: int = 3
) -> Graph:
    b, rank = Builder("network"), len(space)
    x = b.input("x", f32, (N, *space, channels))
    ones = (1,) * rank
    op = Conv(ones, ones, ones * 2, 1, f32)
    weights = b.constant(weights_of(filters, channels, *(taps,) * rank), "w")
    return b.graph([b.add(op, x, weights)], ["y"])


def the_op(graph: Graph, **settings: bool) -> object:
    *_, node = choose(graph, Settings(MACHINE, **settings)).graph.nodes
    return node.op


@pytest.mark.parametrize("space", [(H, W), (H, 40), (H,), (5, H, W)], ids=str)
def test_tiles_for_large_images_only(space):
    op = the_op(network(space))
    assert isinstance(op, BySize)
    assert isinstance(op.large, WinogradConv)
    assert isinstance(op.small, Conv)
    assert op.places > 0


def test_transposed_convolutions_as_well():
    b = Builder("network")
    x = b.input("x", f32, (1, H, W, 64))
    op = ConvTranspose((2, 2), (1, 1), (1, 1, 1, 1), (0, 0), 1, f32)
    found = the_op(b.graph([b.add(op, x, b.constant(weights_of(64, 64, 4, 4), "w"))], ["y"]))
    assert isinstance(found, BySize)
    assert isinstance(found.large, WinogradTransposed)
    assert found.small == op


def test_a_strict_one_is_direct():
    assert isinstance(the_op(network(), strict=True), Conv)


@pytest.mark.parametrize("taps", [1, 3, 5])
@pytest.mark.parametrize(("channels", "filters"), [(3, 16), (64, 64), (256, 512)])
def test_each_way_begins_where_it_is_faster(taps, channels, filters):
    graph = network(channels=channels, filters=filters, taps=taps)
    (node,) = graph.nodes
    held = graph.constants[node.inputs[1]]
    assert isinstance(node.op, Conv)
    ways = list(unsized_ways(node.op, held, node.output, MACHINE, strict=False))
    assert ways[0][0] == DIRECT
    for way, cycles in ways[1:]:
        first = shape_with(node.op, held, (1, way.places))
        assert way.cycles(first, MACHINE) != DIRECT.cycles(first, MACHINE)
        assert cycles > 0
        if way.places:
            less = shape_with(node.op, held, (1, way.places - 1))
            assert way.cycles(less, MACHINE) == DIRECT.cycles(less, MACHINE)
        large = shape_with(node.op, held, (128, 128))
        assert way.cycles(large, MACHINE) * way.margin < DIRECT.cycles(large, MACHINE)


def test_all_sites_stay_channels_last():
    (site,) = sites_of(network(), Settings(MACHINE))
    assert len(site.alternatives) > 1
    assert {(str(a.source), str(a.result)) for a in site.alternatives} == {("nhwc", "nhwc")}


@pytest.mark.parametrize("shape", [(1, 3, 3, 64), (2, 17, 30, 64)])
def test_meaning_stays(shape):
    graph = network()
    x = np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)
    made = choose(graph, Settings(MACHINE)).graph
    found, expected = interpret(made, {"x": x}), interpret(graph, {"x": x})
    np.testing.assert_allclose(found[0], expected[0], atol=1e-3)


def model(filters: int = 32) -> onnx.ModelProto:
    """Two convolutions with a residual sum between them."""
    weights = {
        "a": weights_of(filters, 3, 3, 3),
        "b": weights_of(filters, filters, 3, 3) * np.float32(0.1),
    }
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["y"], pads=[1] * 4),
        helper.make_node("Relu", ["y"], ["z"]),
        helper.make_node("Conv", ["z", "b"], ["u"], pads=[1] * 4),
        helper.make_node("Add", ["u", "z"], ["v"]),
    ]
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("x", kind, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("v", kind, ["n", filters, "h", "w"])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_takes_the_kernel_for_its_size(threads):
    """Small images have the bits of exact kernels, large ones have not; both are right."""
    every, exact = (
        tw.compile(model(), threads=threads, cache=False, accuracy=accuracy)
        for accuracy in ("default", "strict")
    )
    for shape, same in {(1, 3, 2, 3): True, (1, 3, 1, 1): True, (2, 3, 90, 95): False}.items():
        x = np.random.default_rng(7).uniform(-1, 1, shape).astype(np.float32)
        found, expected = every.run({"x": x})[0], exact.run({"x": x})[0]
        assert np.array_equal(found, expected) == same
        np.testing.assert_allclose(found, expected, atol=1e-4)
