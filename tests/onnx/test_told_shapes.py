"""Shapes that only data tells: one compilation for all of them, nothing by reference."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import tilewright as tw
from tests.expect import raises_code
from tests.onnx.beside_ort import onnxruntime_results

OPSET = [helper.make_opsetid("", 21)]


def told(op: str, shape, count: int, **attributes) -> ModelProto:
    """The parameter of a node is the greatest of any number of rows."""
    nodes = [
        helper.make_node("ReduceMax", ["rows", "first"], ["told"], keepdims=0),
        helper.make_node(op, ["x", "told"], ["y"], **attributes),
    ]
    graph = helper.make_graph(
        nodes,
        op,
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
            helper.make_tensor_value_info("rows", TensorProto.INT64, ["many", count]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array([0]), "first")],
    )
    return helper.make_model(graph, opset_imports=OPSET, ir_version=10)


def numbered(shape) -> np.ndarray:
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)


@functools.cache
def module_of(name: str) -> tw.Module:
    return compiled(RIGHT[name][0])


def compiled(model: ModelProto) -> tw.Module:
    module = tw.compile(model, cache=False, threads=1)
    assert not module.by_reference
    assert not module.settled
    return module


PADS = [
    ((4, 3), (1, 2, 0, 1)),
    ((4, 3), (0, 0, 0, 0)),
    ((4, 3), (-1, 1, 0, -1)),
    ((4, 5), (3, 4, 3, 4)),
    ((1, 3), (0, 2, 0, 2)),
]
RIGHT = {
    "Expand": (
        told("Expand", ["a", "b"], 3),
        [
            ((2, 3), (4, 2, 3)),
            ((1, 3), (4, 5, 3)),
            ((2, 1), (1, 1, 7)),
            ((2, 3), (1, 1, 1)),
            ((1, 1), (0, 1, 1)),
            ((0, 3), (2, 1, 3)),
        ],
    ),
    "Expand, fewer": (told("Expand", ["a", 1, 4], 2), [((2, 1, 4), (5, 4)), ((3, 1, 4), (0, 1))]),
    "Tile": (
        told("Tile", ["a", "b"], 2),
        [((2, 3), (2, 2)), ((2, 3), (1, 1)), ((2, 3), (0, 2)), ((0, 3), (3, 2)), ((1, 1), (5, 7))],
    ),
    "Reshape": (
        told("Reshape", ["a", "b"], 3),
        [
            ((4, 6), (2, 3, 4)),
            ((4, 6), (0, 2, -1)),
            ((4, 6), (-1, 0, 2)),
            ((4, 6), (4, 0, 1)),
            ((0, 6), (0, 3, 2)),
            ((1, 1), (1, 1, 1)),
        ],
    ),
    "Reshape, zero": (
        told("Reshape", ["a", "b"], 2, allowzero=1),
        [((4, 6), (2, 12)), ((0, 6), (0, 3)), ((0, 6), (3, 0))],
    ),
    "Pad": (told("Pad", ["a", "b"], 4), [*PADS, ((4, 3), (-2, 0, -2, 0)), ((0, 3), (1, 0, 1, 0))]),
    **{
        f"Pad, {mode}": (told("Pad", ["a", "b"], 4, mode=mode), PADS)
        for mode in ("edge", "reflect", "wrap")
    },
}


@pytest.mark.parametrize("name", RIGHT)
def test_whatever_data_tells(name):
    model, cases = RIGHT[name]
    module = module_of(name)
    for shape, wanted in cases:
        rows = np.array([wanted, np.array(wanted) - 1])
        feeds = {"x": numbered(shape), "rows": rows}
        (y,) = module.run(feeds)
        (right,) = onnxruntime_results(model, feeds)
        assert y.shape == right.shape, (shape, wanted)
        assert np.array_equal(y, right), (shape, wanted)


@pytest.mark.parametrize(
    ("name", "shape", "wanted"),
    [
        ("Expand", (2, 3), (1, 3, 3)),
        ("Expand", (1, 3), (2, -1, 3)),
        ("Tile", (2, 3), (-1, 2)),
        ("Tile", (2, 3), (2**62, 2)),
        ("Pad", (4, 3), (-3, 0, -3, 0)),
        ("Pad", (4, 3), (2**62, 0, 2**62, 0)),
        ("Pad, edge", (0, 3), (1, 0, 1, 0)),
        ("Reshape", (4, 6), (5, 5, 1)),
        ("Reshape", (4, 6), (-1, -1, 2)),
        ("Reshape", (4, 6), (-2, -3, 4)),
        ("Reshape", (4, 6), (5, -1, 1)),
        ("Reshape", (0, 3), (0, -1, 2)),
        ("Reshape", (0, 3), (2**32, 2**32, 1)),
        ("Reshape, zero", (4, 6), (0, 4)),
    ],
)
def test_what_makes_no_sense_is_refused(name, shape, wanted):
    module = module_of(name)
    with raises_code("C025"):
        module.run({"x": numbered(shape), "rows": np.array([wanted])})


LENGTHS = """
<ir_version: 10, opset_import: ["" : 21]>
texts (float[batch, 1, 4] x, int64[batch] lengths) => (float[b, t, c] y)
<int64[1] one = {1}, int64[1] four = {4}, float[4, 2] w = {1., 2., 3., 4., 5., 6., 7., 8.}>
{
    longest = ReduceMax <keepdims = 1> (lengths)
    size = Shape (x)
    batch_size = Gather <axis = 0> (size, zero)
    shape = Concat <axis = 0> (batch_size, longest, four)
    wide = Expand (x, shape)
    ones = ConstantOfShape <value = float[1] {1.}> (shape)
    sum = Add (wide, ones)
    y = MatMul (sum, w)
}
"""


def test_the_greatest_length_of_any_number_of_texts():
    """Known parts of a shape stay known, and tensors that one number tells about have one size."""
    zero = numpy_helper.from_array(np.array([0]), "zero")
    model = parser.parse_model(LENGTHS)
    model.graph.initializer.append(zero)
    module = compiled(model)
    weights = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    for lengths in ((3, 5), (1,), (2, 7, 4), (0,)):
        x = numbered((len(lengths), 1, 4))
        (y,) = module.run({"x": x, "lengths": np.array(lengths)})
        wide = np.broadcast_to(x, (len(lengths), max(lengths), 4))
        assert np.allclose(y, (wide + 1) @ weights, rtol=1e-5)
    assert [str(d) for d in module.outputs[0].shape][2] == "2"


def test_shapes_that_are_inputs_are_compiled_for_first():
    """Few numbers that an engineer chooses; beyond the first ones any others serve as well."""
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        chosen (float[n, 4] x, int64[2] shape) => (float[a, b] y) { y = Reshape(x, shape) }
    """)
    module = tw.compile(model, cache=False, threads=1)
    assert module.settled == ("shape",)
    x = numbered((60, 4))
    for rows in (r for r in range(1, 241) if 240 % r == 0):
        (y,) = module.run({"x": x, "shape": np.array([rows, -1])})
        assert np.array_equal(y, x.reshape(rows, -1))


def test_the_number_of_dimensions_must_be_known():
    model = told("Expand", ["a"], 1)
    model.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "any"
    with pytest.warns(tw.TilewrightWarning, match="the rank of a result of Expand is not known"):
        tw.compile(model, cache=False, threads=1)
