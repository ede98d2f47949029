"""Where convolutions take Winograd's way, and that they mean the same."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.dtypes import f32
from tilewright.graph.builder import Builder
from tilewright.graph.interpret import interpret
from tilewright.graph.ir import Graph
from tilewright.graph.ops.window import Conv
from tilewright.graph.ops.winograd import WinogradConv
from tilewright.graph.passes.rewrite import rewrite_graph
from tilewright.graph.passes.winograd import use_winograd
from tilewright.tensor import ir as tir


def network(
    size: int = 16, channels: int = 32, filters: int = 32, kernel: int = 3, **attributes: object
) -> Graph:
    rng = np.random.default_rng(3)
    b = Builder("network")
    x = b.input("x", f32, (1, size, size, channels))
    groups = int(attributes.get("groups", 1))  # type: ignore[call-overload]
    weights = rng.uniform(-1, 1, (filters, channels // groups, kernel, kernel)).astype(np.float32)
    defaults = {"strides": (1, 1), "dilations": (1, 1), "pads": (1, 1, 1, 1), "groups": 1}
    op = Conv(**{**defaults, **attributes}, dtype=f32)  # type: ignore[arg-type]
    return b.graph([b.add(op, x, b.constant(weights, "w"))], ["y"])


def changed(graph: Graph) -> tuple[int, ...] | None:
    """The shape of the transformed weights, if there are any."""
    made = rewrite_graph(graph, use_winograd)
    (node,) = made.nodes
    if not isinstance(node.op, WinogradConv):
        return None
    return made.constants[node.inputs[1]].shape


def test_large_images_have_tiles_of_four_results():
    assert changed(network()) == (6, 6, 32, 32)


def test_many_weights_for_few_places_have_tiles_of_two():
    assert changed(network(7, 256, 256)) == (4, 4, 256, 256)


@pytest.mark.parametrize(
    "graph",
    [
        network(channels=3),
        network(kernel=1, pads=(0, 0, 0, 0)),
        network(kernel=5),
        network(strides=(2, 2)),
        network(dilations=(2, 2)),
        network(groups=2),
    ],
)
def test_others_stay_as_they_are(graph):
    assert changed(graph) is None


@pytest.mark.parametrize("graph", [network(), network(18, 64, 48), network(7, 256, 256)])
def test_meaning_stays(graph):
    shape = [tir.int_value(size) for size in graph.inputs[0].shape]
    x = np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)
    made = rewrite_graph(graph, use_winograd)
    assert isinstance(made.nodes[0].op, WinogradConv)
    found, expected = interpret(made, {"x": x}), interpret(graph, {"x": x})
    np.testing.assert_allclose(found[0], expected[0], atol=1e-3)
