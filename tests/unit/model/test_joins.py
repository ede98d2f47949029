"""Concatenations whose parts are written in place."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laid_out import HALO, NCHW, Steps, blocked, compiled, with_layouts
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph, interpret
from tilewright.graph.ops import Concat
from tilewright.graph.sizes import fixed
from tilewright.model.joins import joins_of
from tilewright.model.plan import plan_graph
from tilewright.runtime.program import Place
from tilewright.tensor import ir as tir

LAYOUTS = {"nhwc": (), "nchw": NCHW, "nchw4c": blocked(4)}


def feeds(batch: int = 1) -> dict[str, np.ndarray]:
    shape = (batch, 4, 5, 8)
    return {"x": np.random.default_rng(batch).standard_normal(shape, np.float32)}


def steps_of(graph: Graph, layout: Steps, *plain: str) -> tuple[int, list[Place]]:
    """Compiled and run with all inner values so stored: how many steps, and where values are."""
    inner = [v.name for n in graph.nodes for v in n.outputs if v not in graph.outputs]
    laid_out = with_layouts(graph, {n: layout for n in inner if n not in plain})
    batch = fixed(graph.inputs[0].shape[0]) or 1
    for threads in (1, 2):
        module, made = compiled(laid_out, threads)
        wanted = interpret(graph, feeds(batch))
        for found, right in zip(module.run(feeds(batch)), wanted, strict=True):
            np.testing.assert_array_equal(found, right)
    return len(made.program.steps), [buffer.place for buffer in made.program.buffers]


def joined(batch: int = 1) -> Graph:
    """Two maps, which become one tensor."""
    b = Builder("joined")
    x = b.input("x", f32, (batch, 4, 5, 8))
    whole = b.concat([b.map(lambda v: v * 2.0, x), b.map(lambda v: v + 1.0, x)], 3)
    turned = b.remap(whole, whole.shape, lambda n, h, w, c: [n, 3 - h, w, c])
    return b.graph([turned, b.map(lambda v: v - 1.0, whole)], ["y", "z"])


@pytest.mark.parametrize(("layout", "steps"), [("nhwc", 5), ("nchw", 4), ("nchw4c", 4)])
def test_channels_first_are_written_in_place(layout, steps):
    count, places = steps_of(joined(), LAYOUTS[layout])
    assert count == steps
    assert places.count(Place.PART) >= 2 * (steps == 4)


def test_several_images_are_copied():
    assert steps_of(joined(2), NCHW)[0] == 5


def test_a_dimension_outside_of_all_others_needs_no_layout():
    b = Builder("rows")
    x = b.input("x", f32, (1, 4, 5, 8))
    whole = b.concat([b.map(lambda v: v * 2.0, x), b.map(lambda v: v + 1.0, x)], 1)
    assert steps_of(b.graph([b.map(lambda v: v - 1.0, whole)]), ())[0] == 3


def test_parts_of_parts():
    """As networks write it that pass on everything they have: no copy at all."""
    b = Builder("dense")
    x = b.input("x", f32, (1, 4, 5, 8))
    whole = b.map(lambda v: v + 1.0, x)
    for _ in range(4):
        more = b.remap(whole, x.shape, lambda n, h, w, c: [n, 3 - h, w, c])
        whole = b.concat([whole, more], 3)
    graph = b.graph([b.remap(whole, whole.shape, lambda n, h, w, c: [n, h, 4 - w, c])])
    count, places = steps_of(graph, blocked(4))
    assert count == 6
    assert places.count(Place.ARENA) == 1


def test_what_cannot_be_written_there_is_copied():
    """An input, a value that is there already, and one that is stored otherwise."""
    b = Builder("copied")
    x = b.input("x", f32, (1, 4, 5, 8))
    once, halo = b.map(lambda v: v * 2.0, x), b.map(lambda v: v + 3.0, x)
    whole = b.concat([x, once, once, halo], 3)
    graph = b.graph([b.remap(whole, whole.shape, lambda n, h, w, c: [n, h, 4 - w, c]), halo])
    assert steps_of(graph, NCHW)[0] == 2 + 3 + 1
    graph = with_layouts(graph, {once.name: NCHW, whole.name: (*HALO, *NCHW)})
    assert not joins_of(graph, lambda value: value)


def test_outputs_are_joined_in_place_and_not_themselves_parts():
    b = Builder("outputs")
    x = b.input("x", f32, (1, 4, 5, 8))
    part, other = b.map(lambda v: v * 2.0, x), b.map(lambda v: v + 3.0, x)
    graph = b.graph([b.concat([part, other], 1), part], ["whole", "part"])
    (join,) = joins_of(graph, lambda value: value).values()
    assert [value for value, _ in join.copied] == [part]
    assert sorted(begin.value for begin in join.places.values()) == [0, 4 * 5 * 8 * 4]
    assert steps_of(graph, ())[0] == 3


def test_nothing_is_gained_if_all_parts_are_copied():
    b = Builder("inputs")
    x = b.input("x", f32, (1, 4, 5, 8))
    graph = b.graph([b.concat([x, x], 1)])
    assert isinstance(graph.nodes[0].op, Concat)
    assert not joins_of(graph, lambda value: value)


@pytest.mark.parametrize("outer", [(), (1,), (2,)])
@pytest.mark.parametrize("count", [16, 17, 70])
def test_many_parts_of_symbolic_sizes_are_copied_by_one_kernel(count, outer):
    b = Builder("many")
    inputs = [b.input(f"x{k}", f32, (*outer, tir.Var(f"n{k}"), 3)) for k in range(count)]
    graph = b.graph([b.concat(inputs, len(outer))])
    module, made = compiled(graph)
    if count > 16:
        assert len(made.program.kernels) <= 3  # a copy, and transposes there and back
    rng = np.random.default_rng(count)
    for sizes in (rng.integers(0, 4, count), np.ones(count, np.int64)):
        given = [rng.standard_normal((*outer, n, 3), np.float32) for n in sizes]
        (found,) = module.run({f"x{k}": part for k, part in enumerate(given)})
        np.testing.assert_array_equal(found, np.concatenate(given, len(outer)))


def test_parts_of_parts_are_found_in_the_whole():
    b = Builder("nested")
    x = b.input("x", f32, (1, 4, 5, 8))
    whole = b.map(lambda v: v * 2.0, x)
    for _ in range(5):
        whole = b.concat([whole, b.map(lambda v: v + 1.0, x)], 1)
    plan = plan_graph(b.graph([b.map(lambda v: v - 1.0, whole)]))
    begins = {plan.whole(part) for part in plan.parts}
    assert len({value for value, _ in begins}) == 1
    assert all(plan.whole(part) == plan.whole(part) for part in plan.parts)
