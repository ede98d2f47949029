"""Which inputs of a model must be known before it can be compiled, and what it is then."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.onnx.conformance import compiled, outcomes
from tests.onnx.node_cases import node_cases
from tilewright.frontend.onnx import import_model
from tilewright.frontend.onnx.registry import Unknown
from tilewright.frontend.onnx.settled import NOTHING, Needs, Settled, bound, needs_of, restored
from tilewright.graph import interpret
from tilewright.unsupported import Unsupported

FLOAT, INT64, BOOL, STRING = (getattr(TensorProto, n) for n in ("FLOAT", "INT64", "BOOL", "STRING"))
OPSET = [helper.make_opsetid("", 20)]

CASES = (
    "affine_grid_2d",
    "center_crop_pad_crop_axes_hwc_expanded",
    "col2im",
    "constant_pad_axes",
    "cumprod_1d_exclusive",
    "cumsum_2d_axis_0",
    "expand_dim_changed",
    "identity_opt",
    "if_opt",
    "if_seq",
    "loop13_seq",
    "loop16_seq_none",
    "onehot_with_axis",
    "optional_get_element_optional_sequence",
    "optional_has_element_empty_optional_input",
    "range_float_type_positive_delta_expanded",
    "reduce_l2_do_not_keepdims_example_expanded",
    "reduce_sum_keepdims_example",
    "reshape_zero_and_negative_dim",
    "resize_tf_crop_and_resize",
    "resize_upsample_sizes_nearest",
    "sequence_insert_at_front",
    "sequence_map_add_2_sequences_expanded",
    "slice_neg_steps",
    "split_to_sequence_1",
    "split_variable_parts_2d_opset18",
    "squeeze_negative_axes",
    "tile",
    "top_k_smallest",
    "tril_neg",
    "unsqueeze_unsorted_axes",
    "upsample_nearest",
)


def test_cases_with_parameters_as_inputs_are_native():
    cases = [case for name in CASES for case in node_cases(name)]
    assert len(cases) == len(CASES)
    assert [o for o in outcomes(cases, compiled) if o.kind != "native"] == []


def info(name, kind=INT64, shape=("k",)):
    return helper.make_tensor_value_info(name, kind, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model(nodes, inputs, weights=None, functions=(), outputs=None):
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in (weights or {}).items()]
    results = outputs or [info(o, FLOAT, None) for o in nodes[-1].output]
    graph = helper.make_graph(nodes, "small", inputs, results, constants)
    opsets = [*OPSET, *([helper.make_opsetid("local", 1)] if functions else [])]
    return helper.make_model(graph, opset_imports=opsets, functions=functions)


X = info("x", FLOAT, ["n", 8])


def needed(made, *failing, known=()):
    nodes = [Unsupported("node", op, "", 20, (), "") for op in failing]
    found = needs_of(made, nodes, known)
    return None if found is None else found.names


def test_parameters_are_followed_through_arithmetic():
    nodes = [
        node("Add", "a one", "b"),
        node("Concat", "b c", "d", axis=0),
        node("Cast", "d", "shape", to=INT64),
        node("Reshape", "x shape", "y"),
    ]
    made = model(nodes, [X, info("a"), info("c"), info("z")], {"one": np.array([1])})
    assert needed(made, "Reshape") == ("a", "c")


def test_shapes_of_data_are_no_values():
    nodes = [node("Shape", "z", "s"), node("Mul", "s a", "shape"), node("Expand", "x shape", "y")]
    made = model(nodes, [X, info("z", FLOAT, ["m", 1]), info("a")])
    assert needed(made, "Expand") == ("a",)


def test_large_inputs_are_data():
    nodes = [node("ReduceMax", "x", "m", keepdims=0), node("Cast", "m", "k", to=INT64)]
    nodes += [node("Reshape", "k one", "v"), node("TopK", "x v", "y i")]
    made = model(nodes, [X], {"one": np.array([1])})
    assert needed(made, "TopK") is None
    for dims, small in [([64], True), ([65], False), ([], True), (["n"], True), (["n", 2], False)]:
        made = model([node("Tile", "x r", "y")], [X, info("r", INT64, dims)])
        assert needed(made, "Tile") == (("r",) if small else None), dims


def test_parameters_inside_of_branches_and_functions_count():
    then = helper.make_graph([node("Tile", "x r", "t")], "then", [], [info("t", FLOAT, None)])
    other = helper.make_graph([node("Identity", "x", "e")], "else", [], [info("e", FLOAT, None)])
    branch = node("If", "c", "y", then_branch=then, else_branch=other)
    made = model([branch], [X, info("r"), info("c", BOOL, [])])
    assert needed(made, "Tile") == ("r",)
    assert needed(made, "If") == ("r", "c"), "a condition only if the branch itself is in the way"
    body = helper.make_function("local", "F", ["v", "p"], ["w"], [node("Tile", "v p", "w")], OPSET)
    call = helper.make_node("F", ["x", "r"], ["y"], domain="local")
    assert needed(model([call], [X, info("r")], functions=[body]), "Tile") == ("r",)


def test_elements_that_no_graph_has_are_not_helped():
    texts = info("t", STRING, [2])
    assert needed(model([node("Tile", "x r", "y")], [X, info("r"), texts]), "Tile") is None
    strings = [info("y", STRING, None)]
    assert needed(model([node("Tile", "x r", "y")], [X, info("r")], outputs=strings)) is None


def test_what_has_no_form_is_settled_by_it():
    parts = helper.make_tensor_sequence_value_info("parts", FLOAT, None)
    made = model([node("SequenceAt", "parts p", "y")], [parts, info("p", INT64, [])])
    assert needs_of(made, []) == Needs(("p",), ("parts",))
    assert needs_of(made, [], known=("p",)) == Needs((), ("parts",))
    anything = model([node("Relu", "x", "y")], [info("x", FLOAT, None)])
    assert needs_of(anything, []) == Needs((), ("x",))


def test_what_is_settled_is_part_of_the_graph():
    made = model([node("ReduceSum", "x axes", "y", keepdims=0)], [X, info("axes")])
    with pytest.raises(Unknown, match="rank"):
        import_model(made)
    found = import_model(made, Settled({"axes": np.array([0])}))
    assert [value.name for value in found.graph.inputs] == ["x"]
    assert found.lengths == (None,)
    x = np.ones((3, 8), np.float32)
    np.testing.assert_array_equal(interpret(found.graph, {"x": x})[0], np.full(8, 3))


def test_forms_become_inputs_and_outputs_of_the_graph():
    parts = helper.make_tensor_sequence_value_info("parts", FLOAT, None)
    out = [parts_named("more"), info("has", BOOL, [])]
    nodes = [node("SequenceInsert", "parts x", "more"), node("OptionalHasElement", "o", "has")]
    optional = helper.make_value_info("o", helper.make_optional_type_proto(parts.type))
    made = model(nodes, [parts, X, optional], outputs=out)
    found = import_model(made, Settled(forms={"parts": [(2,), (None, 1)], "o": None}))
    names = [value.name for value in found.graph.inputs]
    assert names == ["parts[0]", "parts[1]", "x"]
    assert found.lengths == (3, None)
    assert found.graph.output_names == ("more[0]", "more[1]", "more[2]", "has")


def parts_named(name):
    return helper.make_tensor_sequence_value_info(name, FLOAT, None)


def test_results_are_put_together_again():
    assert restored("abcd", [None, 2, NOTHING, 0, None]) == ["a", ["b", "c"], None, [], "d"]


def test_a_bound_model_has_weights_instead_of_inputs():
    results = [info("y", FLOAT, ["a", "b"])]
    made = model([node("Tile", "x r", "y")], [X, info("r", INT64, [2])], outputs=results)
    own = bound(made, {"r": np.array([2, 1])})
    assert [i.name for i in own.graph.input] == ["x"]
    assert [i.name for i in made.graph.input] == ["x", "r"]
    onnx.checker.check_model(own)
    assert import_model(own).by_reference == ()


def test_digests_tell_values_and_forms_apart():
    settled = [
        Settled({"a": np.array([1, 2])}),
        Settled({"a": np.array([1, 3])}),
        Settled({"b": np.array([1, 2])}),
        Settled({"a": np.array([[1, 2]])}),
        Settled({"a": np.array([1, 2], np.int32)}),
        Settled(forms={"a": None}),
        Settled(forms={"a": []}),
        Settled(forms={"a": [(2,)]}),
        Settled(forms={"a": (2,)}),
        Settled(forms={"a": (None,)}),
    ]
    assert len({one.digest() for one in settled}) == len(settled)
    assert Settled({"a": np.array([1, 2])}).digest() == settled[0].digest()
