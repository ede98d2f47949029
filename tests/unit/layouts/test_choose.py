"""Which algorithm a convolution gets, and that it means the same."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tilewright.dtypes import f32
from tilewright.graph.builder import Builder
from tilewright.graph.interpret import interpret
from tilewright.graph.ir import Graph
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.ops.winograd import WinogradConv, WinogradTransposed, WinogradWeights
from tilewright.layouts.algorithms import Algorithm, algorithms_of
from tilewright.layouts.choose import choose
from tilewright.layouts.costs import PRICE_OF_WEIGHTS, ConvShape, Machine, far_part
from tilewright.layouts.sites import Settings
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.library.tiles import Tiles

MACHINE = Machine(Target.named("x86-64-v3"), 1)


def network(
    space: int | tuple[int, ...] = 16,
    channels: int = 32,
    filters: int = 32,
    taps: int = 3,
    **attributes: object,
) -> Graph:
    rng = np.random.default_rng(3)
    sizes = (space, space) if isinstance(space, int) else space
    rank = len(sizes)
    b = Builder("network")
    x = b.input("x", f32, (1, *sizes, channels))
    groups = int(attributes.get("groups", 1))  # type: ignore[call-overload]
    weights = rng.uniform(-1, 1, (filters, channels // groups, *[taps] * rank)).astype(np.float32)
    ones = (1,) * rank
    defaults = {"strides": ones, "dilations": ones, "pads": ones * 2, "groups": 1}
    op = Conv(**{**defaults, **attributes}, dtype=f32)  # type: ignore[arg-type]
    return b.graph([b.add(op, x, b.constant(weights, "w"))], ["y"])


def chosen(graph: Graph, machine: Machine = MACHINE, *, strict: bool = False) -> int:
    """How many results the tiles have that a convolution gets; 0 for none."""
    *_, node = choose(graph, Settings(machine, strict=strict)).graph.nodes
    return node.op.results[-1] if isinstance(node.op, WinogradConv) else 0


def test_large_images_have_large_tiles():
    assert chosen(network(56, 64, 64)) == 4


def test_many_weights_for_few_places_have_small_tiles():
    *_, node = choose(network(7, 256, 256), Settings(MACHINE)).graph.nodes
    assert isinstance(node.op, WinogradConv)
    assert node.op.results == (2, 2)


def test_weights_have_a_price_where_no_cache_holds_them_all():
    """The same layer takes fewer weights in a model whose weights leave the cache."""
    graph = network(14, 256, 256)
    (name,) = [value for value in graph.constants if value.name == "w"]
    own = graph.constants[name].nbytes
    caches = [c.share_bytes for c in MACHINE.target.caches]
    assert far_part(own, MACHINE.target) == max(0.0, 1 - max(caches) / own)
    conv = ConvShape(1, (14, 14), 256, 256, (3, 3))
    large, small = (Algorithm(Tiles((3, 3), (m, m))) for m in (4, 2))
    far = dataclasses.replace(MACHINE, far_weights=1.0)
    paid = [a.price(0.0, conv, far) for a in (large, small)]
    assert paid[0] / paid[1] == pytest.approx(36 / 16)  # elements of their tiles
    assert paid[1] == pytest.approx(
        PRICE_OF_WEIGHTS * 16 * 256 * 256 * 4 / MACHINE.model.memory.read
    )


def test_weights_that_drive_others_out_of_the_cache_have_a_price():
    """Also in a model whose weights, as they are stored, all fit into it."""
    cache = max(c.share_bytes for c in MACHINE.target.caches)
    side = int((cache / 8 / 4 / 9) ** 0.5)
    conv = ConvShape(1, (7, 7), side, side, (3, 3))
    plain, large = Algorithm(), Algorithm(Tiles((3, 3), (4, 4)))  # four times as many
    beside = dataclasses.replace(MACHINE, other_weights=0.8 * cache).beside(cache / 8)
    assert plain.price(0.0, conv, beside) == 0
    assert large.price(0.0, conv, beside) > 0
    assert large.price(0.0, conv, MACHINE) == 0  # nobody else is there


def test_weights_that_exceed_the_cache_by_themselves_have_a_price():
    cache = max(c.share_bytes for c in MACHINE.target.caches)
    side = int((cache / 2 / 4 / 9) ** 0.5)
    conv = ConvShape(1, (7, 7), side, side, (3, 3))
    assert Algorithm().price(0.0, conv, MACHINE) == 0
    assert Algorithm(Tiles((3, 3), (4, 4))).price(0.0, conv, MACHINE) > 0


def test_few_channels_of_large_images_have_large_tiles():
    assert chosen(network(160, 24, 24)) >= 4


def test_three_dimensions_are_tiled_along_two():
    *_, node = choose(network((4, 28, 28), 64, 64), Settings(MACHINE)).graph.nodes
    assert isinstance(node.op, WinogradConv)
    assert node.op.results[0] == 0
    assert min(node.op.results[1:]) > 0


def test_the_winner_changes_with_the_cache():
    """Transformed weights that do not fit into a cache cost more than they save."""
    graph = network(7, 512, 512)
    large = tuple(
        dataclasses.replace(cache, size_bytes=cache.size_bytes * 64, shared_by=1)
        for cache in MACHINE.target.caches
    )
    roomy = dataclasses.replace(MACHINE.target, caches=large)
    results = []
    for machine in (MACHINE, Machine(roomy, 1)):
        *_, node = choose(graph, Settings(machine)).graph.nodes
        assert isinstance(node.op, WinogradConv)
        results.append(node.op.results)
    assert results == [(2, 2), (4, 4)]


def test_strict_accuracy_keeps_to_the_direct_algorithm():
    assert chosen(network(56, 64, 64), strict=True) == 0


@pytest.mark.parametrize(
    "graph",
    [
        network(channels=1),
        network(taps=1, pads=(0, 0, 0, 0)),
        network(strides=(2, 2), dilations=(3, 3)),
    ],
)
def test_others_stay_direct(graph):
    assert chosen(graph) == 0


@pytest.mark.parametrize(
    "graph",
    [
        network(112, 3, 64, 7, strides=(2, 2)),
        network(56, 128, 128, strides=(2, 2)),
        network(28, 128, 128, dilations=(2, 2)),
        network(56, 64, 64, strides=(2, 2), dilations=(2, 2)),
        network((256,), 128, 128),
        network(40, 64, 64, 9),
    ],
)
def test_strides_gaps_lines_and_long_windows_have_tiles(graph):
    assert chosen(graph) > 1


def test_transposed_convolutions_have_tiles():
    b = Builder("network")
    x = b.input("x", f32, (1, 16, 16, 64))
    weights = np.random.default_rng(3).uniform(-1, 1, (64, 64, 4, 4)).astype(np.float32)
    op = ConvTranspose((2, 2), (1, 1), (1, 1, 1, 1), (0, 0), 1, f32)
    graph = b.graph([b.add(op, x, b.constant(weights, "w"))], ["y"])
    *_, node = choose(graph, Settings(MACHINE)).graph.nodes
    assert isinstance(node.op, WinogradTransposed)
    assert node.output.shape == graph.outputs[0].shape
    (node,) = choose(graph, Settings(MACHINE, strict=True)).graph.nodes
    assert isinstance(node.op, ConvTranspose)


def test_alternatives_of_a_window():
    (node,) = network(taps=5).nodes
    weights = np.zeros((4, 4, 5, 5), np.float32)
    assert isinstance(node.op, Conv)
    names = [a.name for a in algorithms_of(node.op, weights, strict=False)]
    assert names == ["direct", *(f"{beside}F({m}, 5)" for m in (2, 3, 4) for beside in ("", "5×"))]


@pytest.mark.parametrize(
    "graph",
    [
        network(56, 64, 48),
        network(7, 256, 256),
        network((3, 14, 14), 64, 64),
        network(20, 64, 64, 5),
    ],
)
def test_meaning_stays(graph):
    shape = [tir.int_value(size) for size in graph.inputs[0].shape]
    x = np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)
    made = choose(graph, Settings(MACHINE)).graph
    assert [type(node.op) for node in made.nodes] == [WinogradWeights, WinogradConv]
    found, expected = interpret(made, {"x": x}), interpret(graph, {"x": x})
    np.testing.assert_allclose(found[0], expected[0], atol=1e-3)
