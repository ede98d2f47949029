"""Counting the work of small graphs whose work is known."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="counts on ONNX graphs")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from benchmarks.models.flops import Work, count, load_without_weights  # noqa: E402
from benchmarks.models.shapes import shapes_of, with_shapes  # noqa: E402


def model(nodes, inputs, weights=(), outputs=("y",)):
    """`inputs`: name → dimensions, `weights`: name → array."""
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in inputs.items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    constants = [numpy_helper.from_array(array, name) for name, array in dict(weights).items()]
    graph = helper.make_graph(nodes, "g", given, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def floats(*shape):
    return np.zeros(shape, "f4")


def node(op, inputs, output="y", **attributes):
    return helper.make_node(op, inputs, [output], **attributes)


SINGLE = {
    "batched matmul": (
        (node("MatMul", ["x", "w"]), (2, 5, 3, 4), (4, 7)),
        Work(2 * 2 * 5 * 3 * 4 * 7, 4 * 4 * 7),
    ),
    "gemm": ((node("Gemm", ["x", "w"]), (3, 4), (4, 7)), Work(2 * 3 * 4 * 7, 4 * 28)),
    "gemm, transposed": (
        (node("Gemm", ["x", "w"], transA=1, transB=1), (4, 3), (7, 4)),
        Work(2 * 3 * 4 * 7, 4 * 28),
    ),
    "convolution": (
        (node("Conv", ["x", "w"], pads=[1, 1, 1, 1]), (2, 8, 6, 6), (16, 8, 3, 3)),
        Work(2 * 2 * 16 * 36 * 8 * 9, 4 * 16 * 8 * 9),
    ),
    "grouped convolution": (
        (node("Conv", ["x", "w"], group=8), (1, 8, 6, 6), (8, 1, 3, 3)),
        Work(2 * 8 * 16 * 9, 4 * 8 * 9),
    ),
    "transposed convolution": (
        (node("ConvTranspose", ["x", "w"], strides=[2, 2]), (1, 8, 5, 5), (8, 4, 2, 2)),
        Work(2 * 8 * 25 * 4 * 4, 4 * 8 * 4 * 4),
    ),
    "einsum": (
        (node("Einsum", ["x", "w"], equation="bij,jk->bik"), (2, 3, 4), (4, 5)),
        Work(2 * 2 * 3 * 4 * 5, 4 * 20),
    ),
}


@pytest.mark.parametrize("name", SINGLE)
def test_work_of_one_operator(name):
    (operator, x, w), expected = SINGLE[name]
    assert count(model([operator], {"x": x}, {"w": floats(*w)}), {"x": floats(*x)}) == expected


def test_recurrent_work_counts_all_gates_steps_and_directions():
    weights = {"w": floats(2, 4 * 6, 5), "r": floats(2, 4 * 6, 6)}
    lstm = node("LSTM", ["x", "w", "r"], hidden_size=6, direction="bidirectional")
    work = count(model([lstm], {"x": (7, 3, 5)}, weights), {"x": floats(7, 3, 5)})
    assert work == Work(2 * 7 * 3 * 2 * 4 * 6 * (5 + 6), 4 * 2 * 24 * 11)


def test_open_dimensions_take_the_sizes_of_the_inputs():
    dynamic = model([node("MatMul", ["x", "w"])], {"x": ("batch", 4)}, {"w": floats(4, 8)})
    assert [count(dynamic, {"x": floats(n, 4)}).flops for n in (1, 5)] == [64, 320]
    assert dynamic.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_shapes_that_nodes_compute_are_followed():
    """[batch, seq, 8] is joined to [batch·seq, 8] by shape arithmetic, as exporters write it."""
    nodes = [
        node("Shape", ["x"], "batch", start=0, end=1),
        node("Shape", ["x"], "all"),
        node("Gather", ["all", "one"], "seq"),
        node("Mul", ["batch", "seq"], "rows"),
        node("Concat", ["rows", "eight"], "target", axis=0),
        node("Reshape", ["x", "target"], "flat"),
        node("MatMul", ["flat", "w"]),
    ]
    weights = {"one": np.array([1]), "eight": np.array([8]), "w": floats(8, 3)}
    dynamic = model(nodes, {"x": ("batch", "seq", 8)}, weights)
    x = floats(1, 5, 8)
    assert shapes_of(with_shapes(dynamic, {"x": x}).graph)["y"] == (5, 3)
    assert count(dynamic, {"x": x}) == Work(2 * 5 * 8 * 3, 4 * 24)


def test_sizes_that_depend_on_data_are_named_not_guessed():
    nodes = [
        node("NonZero", ["x"], "where"),
        node("Cast", ["where"], "some", to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["some", "v"], ["y"], name="after"),
        node("MatMul", ["x", "x"], "z"),
    ]
    work = count(model(nodes, {"x": (3, 3), "v": ("n", 2)}), {"x": floats(3, 3)})
    assert work == Work(54, 0, ("after",))


def branching(condition):
    def branch(name, columns):
        result = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)
        weights = [numpy_helper.from_array(floats(4, columns), f"{name}_w")]
        nodes = [node("MatMul", ["x", f"{name}_w"], f"{name}_y")]
        return helper.make_graph(nodes, name, [], [result], weights)

    branches = {"then_branch": branch("small", 2), "else_branch": branch("large", 6)}
    return [*condition, helper.make_node("If", ["c"], ["y"], **branches)]


def test_the_chosen_branch_counts():
    choose = [node("Equal", ["rate", "wanted"], "c")]
    chosen = model(branching(choose), {"x": (3, 4), "rate": ()}, {"wanted": np.float32(16)})
    for rate, columns in ((16, 2), (8, 6)):
        work = count(chosen, {"x": floats(3, 4), "rate": np.array(rate, "f4")})
        assert work == Work(2 * 3 * 4 * columns, 4 * 4 * columns)


def test_the_larger_branch_counts_where_data_decides():
    sums = [node("ReduceSum", ["x"], "sum", keepdims=0), node("Greater", ["sum", "zero"], "c")]
    undecided = model(branching(sums), {"x": (3, 4)}, {"zero": np.float32(0)})
    assert count(undecided, {"x": floats(3, 4)}) == Work(2 * 3 * 4 * 6, 4 * 4 * 6)


def test_a_weight_that_is_seen_twice_is_read_once():
    nodes = [
        node("Transpose", ["w"], "t", perm=[1, 0]),
        node("MatMul", ["x", "t"], "h"),
        node("MatMul", ["h", "w"]),
    ]
    work = count(model(nodes, {"x": (1, 9)}, {"w": floats(4, 9)}), {"x": floats(1, 9)})
    assert work == Work(2 * 2 * 36, 4 * 36)


def test_weights_are_not_needed_for_counting(tmp_path):
    whole = model([node("MatMul", ["x", "w"])], {"x": (2, 100)}, {"w": floats(100, 90)})
    onnx.save(whole, tmp_path / "model.onnx")
    slim = load_without_weights(tmp_path / "model.onnx")
    assert slim.ByteSize() < 300 < whole.ByteSize()
    assert count(slim, {"x": floats(2, 100)}) == Work(2 * 2 * 100 * 90, 4 * 9000)
