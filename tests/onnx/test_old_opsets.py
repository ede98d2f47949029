"""Opsets before 7: the second operand of an operator may begin at an axis of the first."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.onnx.small_models import make_model
from tilewright.frontend.onnx import import_model
from tilewright.graph import interpret

MEANINGS = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
    "Equal": np.equal,
    "Less": np.less,
    "Greater": np.greater,
}


@given(
    op=st.sampled_from(sorted(MEANINGS)),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    data=st.data(),
)
def test_the_second_operand_begins_at_its_axis(op, shape, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    end = data.draw(st.integers(axis, len(shape)))
    kind = np.int32 if op == "Equal" else np.float32
    rng = np.random.default_rng(0)
    x = rng.integers(1, 4, shape).astype(kind)
    y = np.asarray(rng.integers(1, 4, shape[axis:end])).astype(kind)
    wide = y.reshape(*y.shape, *(1 for _ in shape[end:]))
    counted = axis if data.draw(st.booleans()) else axis - len(shape)
    node = helper.make_node(op, ["x", "y"], ["z"], broadcast=1, axis=counted)
    (found,) = interpreted(node, {"x": x, "y": y})
    np.testing.assert_allclose(found, MEANINGS[op](x, wide), rtol=1e-6)


@given(shape=st.lists(st.integers(1, 4), min_size=2, max_size=4), single=st.booleans())
def test_slopes_are_those_of_channels(shape, single):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    slope = np.linspace(0.1, 0.9, 1 if single else shape[1], dtype=np.float32)
    wide = slope.reshape(-1, *(1 for _ in shape[2:]))
    node = helper.make_node("PRelu", ["x", "slope"], ["z"])
    (found,) = interpreted(node, {"x": x, "slope": slope})
    np.testing.assert_allclose(found, np.where(x < 0, x * wide, x), rtol=1e-6)


def interpreted(node, feeds):
    made = import_model(make_model([node], feeds, opset=6))
    assert not made.by_reference
    return interpret(made.graph, feeds)
