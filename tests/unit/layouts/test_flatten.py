"""In front of a classifier, images are flattened as they lie in memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laid_out import HALO, NCHW, blocked, compiled, with_layouts
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph, Value, interpret, verify_graph
from tilewright.graph.groups import is_view
from tilewright.graph.ops import Reshape
from tilewright.graph.ops.window import Conv
from tilewright.layouts.choose import choose
from tilewright.layouts.costs import Machine
from tilewright.layouts.flatten import flatten_as_stored, is_free_order
from tilewright.layouts.forms import FIRST, LAST, Form
from tilewright.layouts.forms import blocked as blocked_form
from tilewright.layouts.sites import Settings, sites_of
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import Reorder, Split

SETTINGS = Settings(Machine(Target.named("x86-64-v3"), 1))
BATCH = tir.Var("batch")


def numbers(b: Builder, *shape: int) -> Value:
    rng = np.random.default_rng(shape)
    return b.constant(rng.uniform(-1, 1, shape).astype(np.float32), "k")


def classifier(letters: str = "mk,nk->mn", side: int = 1) -> Graph:
    """A window, and a product with all elements of an image."""
    b = Builder("classifier")
    x = b.input("x", f32, (BATCH, 4, 6, 3))
    image = b.add(Conv((1, 1), (1, 1), (0,) * 4, 1, f32), x, numbers(b, 16, 3, 1, 1))
    row = b.reshape(image, (BATCH, 4 * 6 * 16))
    sides, result = letters.split("->")
    left, right = sides.split(",")
    weights = numbers(b, *(384 if letter == "k" else 5 for letter in (left, right)[side]))
    operands = (row, weights) if side else (weights, row)
    return b.graph([b.contract(left, right, result, *operands)], ["y"])


def flattening(graph: Graph):
    return next(node for node in graph.nodes if isinstance(node.op, Reshape))


def check(before: Graph, after: Graph) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, (2, 4, 6, 3)).astype(np.float32)
    wanted = interpret(before, {"x": x})
    np.testing.assert_allclose(interpret(after, {"x": x})[0], wanted[0], atol=1e-4)
    np.testing.assert_allclose(compiled(after)[0].run({"x": x})[0], wanted[0], atol=1e-4)


LAYOUTS = {
    "nchw": NCHW,
    "nchw8c": blocked(8),
    "blocks of space": (Split(1, 2), Split(3, 3), Reorder((0, 2, 4, 1, 3, 5))),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_it_is_no_work_in_any_order(layout):
    graph = classifier()
    laid_out = with_layouts(graph, {"conv": layout})
    made = verify_graph(flatten_as_stored(laid_out))
    moved = [n for n in made.nodes if n.op.name in {"reshape", "transpose"}]
    assert moved
    assert all(map(is_view, moved))
    assert not is_view(flattening(laid_out))
    check(graph, made)


@pytest.mark.parametrize(("letters", "side"), [("mk,kn->mn", 1), ("nk,mk->mn", 0)])
def test_weights_are_found_in_every_product(letters, side):
    graph = classifier(letters, side)
    check(graph, flatten_as_stored(with_layouts(graph, {"conv": NCHW})))


def test_zeros_around_an_image_are_left_out_by_a_copy():
    laid_out = with_layouts(classifier(), {"conv": HALO})
    assert flatten_as_stored(laid_out) is laid_out


@pytest.mark.parametrize("form", [LAST, FIRST, blocked_form(8), blocked_form(16)], ids=str)
def test_a_classifier_reads_what_there_is(form: Form):
    graph = classifier()
    choice = choose(graph, Settings(SETTINGS.machine, fixed=form))
    assert {conversion.value for conversion in choice.conversions} <= {"x"}
    site = next(a for s, a in choice.sites if s.nodes[0] is flattening(graph))
    assert site.source == form
    check(graph, choice.graph)


def _others() -> dict[str, Graph]:
    found = {}
    b = Builder("output")
    row = b.reshape(b.input("x", f32, (2, 4, 6, 3)), (2, 72))
    found["it is an output"] = b.graph([row])
    b = Builder("map")
    row = b.reshape(b.input("x", f32, (2, 4, 6, 3)), (2, 72))
    found["a map reads it"] = b.graph([b.map(lambda v: v + 1.0, row)])
    b = Builder("computed")
    row = b.reshape(b.input("x", f32, (2, 4, 6, 3)), (2, 72))
    weights = b.input("w", f32, (5, 72))
    found["weights are computed"] = b.graph([b.contract("mk", "nk", "mn", row, weights)])
    b = Builder("kept")
    row = b.reshape(b.input("x", f32, (2, 4, 6, 3)), (2, 72))
    product = b.contract("mk", "mn", "kn", row, numbers(b, 2, 5))
    found["elements are kept apart"] = b.graph([product])
    b = Builder("rows")
    row = b.reshape(b.input("x", f32, (2, 4, 6, 3)), (8, 18))
    found["rows are others"] = b.graph([b.contract("mk", "nk", "mn", row, numbers(b, 5, 18))])
    return found


OTHERS = _others()


@pytest.mark.parametrize("graph", OTHERS.values(), ids=OTHERS)
def test_an_order_that_others_see_is_kept(graph):
    node = flattening(graph)
    assert not is_free_order(graph, node, graph.consumers().get(node.output, []))
    assert all(len(site.alternatives) == 1 for site in sites_of(graph, SETTINGS))
