"""Sizes that are chosen for made up arrays: usual ones, which the model's equations accept."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tilewright.dtypes import f32, i64
from tilewright.feeds.size_rules import SizeRules
from tilewright.feeds.usual_sizes import usual_sizes
from tilewright.model.info import TensorInfo, type_name


def info(name, *shape, dtype=f32):
    return TensorInfo(name, dtype, shape, type_name(dtype))


@pytest.mark.parametrize(
    ("given", "axis", "size"),
    [
        (info("x", "batch", 3, 224, 224), 0, 1),
        (info("x", "N", 3, "H", "W"), 0, 1),
        (info("x", "DynamicDimension_0", 3, "DynamicDimension_1", "?"), 2, 224),
        (info("x", "x_0", 3, "x_2", "x_3"), 3, 224),
        (info("x", "n", "height", "width", 3), 1, 224),
        (info("x", "n", "n_1", "n_2", 3), 2, 224),
        (info("x", "n", "c", "n_2", "n_3"), 1, 3),
        (info("clip", "n", 3, "t0", "t1", "t2"), 2, 16),
        (info("clip", "n", 3, "t0", "t1", "t2"), 3, 112),
        (info("ids", "batch", "sequence", dtype=i64), 1, 128),
        (info("cache", "batch", 8, "past_sequence", 64), 2, 16),
        (info("waveform", "n", "unk"), 1, 16000),
        (info("x", "n", "samples"), 1, 16000),
        (info("x", "sequence_length", 576), 0, 128),
        (info("x", "frames", 80), 0, 128),
        (info("x", "n"), 0, 16),
    ],
)
def test_names_and_places_say_what_is_usual(given, axis, size):
    assert usual_sizes(given, axis)[0] == size


def module_of(nodes, inputs, weights=()):
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "model", ports, [output], list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    return tw.compile(model, cache=False, threads=1)


def chosen(module, **known):
    rules = SizeRules.of(module.inputs, module.executable.program)
    values = rules.chosen(rules.named(known))
    return {rules.labels[k]: value for k, value in values.items()}, rules.shapes(values)


def run(module, shapes):
    return module.run({name: np.zeros(shape, np.float32) for name, shape in shapes.items()})


def pool(length, **options):
    return helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[length], **options)


def test_usual_sizes_are_taken_where_they_fit():
    sizes, shapes = chosen(module_of([pool(4)], {"x": ["batch", 2, "sequence"]}))
    assert sizes == {"batch": 1, "sequence": 128}
    assert shapes == {"x": (1, 2, 128)}


def test_a_window_that_is_larger_makes_the_sequence_longer():
    module = module_of([pool(400)], {"x": [1, 2, "sequence"]})
    sizes, shapes = chosen(module)
    assert sizes["sequence"] >= 400
    run(module, shapes)


@pytest.mark.parametrize("length", [37, 1009])
def test_equations_are_solved_beyond_what_is_usual(length):
    """x is reshaped to rows of `length`: its own length is that, or a multiple."""
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [length, 3])
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    module = module_of(nodes, {"x": ["sequence", 3]}, [shape])
    sizes, shapes = chosen(module)
    assert sizes == {"sequence": length}
    run(module, shapes)


def test_sizes_that_must_be_equal_are():
    module = module_of([helper.make_node("Add", ["x", "z"], ["y"])], {"x": ["samples"], "z": ["k"]})
    sizes, shapes = chosen(module)
    assert sizes["samples"] == sizes["k"]
    run(module, shapes)


def test_sizes_that_follow_from_others_are_computed():
    nodes = [
        helper.make_node("Concat", ["past", "x"], ["all"], axis=0),
        helper.make_node("Mul", ["all", "mask"], ["y"]),
    ]
    module = module_of(nodes, {"past": ["past_length"], "x": ["k"], "mask": ["total"]})
    _, shapes = chosen(module, k=5)
    assert shapes["mask"] == (shapes["past"][0] + 5,)
    run(module, shapes)


def test_what_is_known_stays():
    module = module_of([pool(4)], {"x": ["batch", 2, "sequence"]})
    assert chosen(module, batch=3, sequence=9)[0] == {"batch": 3, "sequence": 9}


def test_an_equation_that_nothing_fits_leaves_what_is_usual():
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [-1, 7])
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    rules_of = module_of(nodes, {"x": [3, "sequence"]}, [shape])
    sizes, _ = chosen(rules_of, sequence=5)  # fifteen elements are no rows of seven
    assert sizes == {"sequence": 5}


def test_huge_arrays_are_not_chosen():
    node = helper.make_node("Relu", ["x"], ["y"])
    module = module_of([node], {"x": ["a_height", "b_height", "c_height", "d_height", "e_height"]})
    _, shapes = chosen(module)
    assert np.prod(shapes["x"]) * 4 <= 1 << 31


def test_without_a_program_names_are_sizes():
    rules = SizeRules.of([info("x", -1, "k"), info("z", "k", 4)])
    values = rules.chosen(rules.named({"k": 9}))
    assert rules.shapes(values) == {"x": (1, 9), "z": (9, 4)}
    assert rules.given({"z": np.zeros((5, 4))}) == {1: 5}


def test_every_start_is_another_choice():
    rules = SizeRules.of([info("x", "batch", "sequence")])
    starts = [tuple(rules.chosen({}, start).values()) for start in range(4)]
    assert len(set(starts)) == 4
