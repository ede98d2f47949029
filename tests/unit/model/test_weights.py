"""Constants of a model: equal ones are stored once, in each form that is wanted."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

import tilewright as tw
from tests.unit.model.test_control_flow import BOOL, FLOAT, INT64, body, graph, info, model, node
from tilewright.abi import ALIGNMENT
from tilewright.model.weights import Weights
from tilewright.tensor.layout import Reorder
from tilewright.tensor.packing import Packing

SIDE = 256
TURNED = Packing((Reorder((1, 0)),), (3, 5), (5, 3))


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_constants_begin_at_boundaries_and_are_there():
    weights, arrays = Weights(), [numbers(3, 5), numbers(7), np.arange(3), np.array(True)]
    places = [weights.place(array) for array in arrays]
    blob = weights.blob()
    assert blob.nbytes == weights.size_bytes == ALIGNMENT * 4
    for array, (offset, size) in zip(arrays, places, strict=True):
        assert offset % ALIGNMENT == 0
        assert blob[offset : offset + size].tobytes() == array.tobytes()


def test_equal_constants_are_one():
    weights, array = Weights(), numbers(40, 40)
    first = weights.place(array)
    assert weights.place(array) == weights.place(array.copy()) == first
    assert weights.place(np.asfortranarray(array)) == first
    almost = array.copy()
    almost[1, 1] = 5
    assert weights.place(almost) != first
    assert weights.place(array.reshape(1600)) != first, "another shape may be packed another way"


def test_values_that_differ_from_themselves_are_equal_all_the_same():
    weights = Weights()
    assert weights.place(np.full(9, np.nan)) == weights.place(np.full(9, np.nan))
    assert weights.place(np.zeros(3)) != weights.place(-np.zeros(3))


def test_each_form_is_stored():
    weights, array = Weights(), numbers(3, 5)
    plain, turned = weights.place(array), weights.place(array, TURNED)
    assert plain != turned
    assert weights.place(array.copy(), TURNED) == turned
    blob = weights.blob()
    found = blob[turned[0] : turned[0] + turned[1]].view(np.float32).reshape(5, 3)
    np.testing.assert_array_equal(found, array.T)


def test_constants_without_elements():
    weights = Weights()
    assert weights.place(np.zeros((0, 3))) == (0, 0)
    assert weights.place(numbers(2)) == (0, 8)
    assert weights.blob().nbytes == ALIGNMENT


def looped():
    """x·W once outside of a loop and once inside; W is captured."""
    inside = [node("MatMul", "v W", "next"), node("Identity", "cond", "on")]
    loop = body(inside, [info("v", FLOAT, ["n", SIDE])], "on next")
    nodes = [node("MatMul", "x W", "a"), node("Loop", "trips  a", "y", body=loop)]
    inputs = [info("x", FLOAT, ["n", SIDE]), info("trips", INT64)]
    return model(nodes, inputs, "y", {"W": numbers(SIDE, SIDE)})


def branched():
    """x·W in both branches, whose sums differ."""
    then = graph([node("MatMul", "x W", "a"), node("Relu", "a", "r")], [], "r")
    other = graph([node("MatMul", "x W", "b")], [], "b")
    nodes = [node("If", "flag", "y", then_branch=then, else_branch=other)]
    inputs = [info("x", FLOAT, ["n", SIDE]), info("flag", BOOL)]
    return model(nodes, inputs, "y", {"W": numbers(SIDE, SIDE)})


def copied():
    """Each branch comes with the same constant."""
    constant = numpy_helper.from_array(numbers(SIDE, SIDE), "W")
    assert constant.data_type == TensorProto.FLOAT
    made = branched()
    made.graph.initializer.pop()
    for attribute in made.graph.node[0].attribute:
        attribute.g.initializer.append(constant)
    return made


@pytest.mark.parametrize("make", [looped, branched, copied])
def test_what_is_captured_is_stored_once(make, tmp_path):
    module = tw.compile(make(), threads=1, cache=False)
    once = SIDE * SIDE * 4
    assert once <= module.memory().weights_bytes < 2 * once
    module.save(tmp_path / "small.tw")
    assert (tmp_path / "small.tw").stat().st_size < 2 * once
    again = tw.load(tmp_path / "small.tw")
    x = np.eye(SIDE, dtype=np.float32)[:3]
    feeds = {"x": x} | ({"trips": np.array(1)} if make is looped else {"flag": np.array(False)})
    (found,) = again.run(feeds)
    weights = numbers(SIDE, SIDE)
    wanted = x @ weights @ weights if make is looped else x @ weights
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
