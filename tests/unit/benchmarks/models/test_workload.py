"""Models as workloads: names, the way through JSON, and how results are compared."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from benchmarks import kinds
from benchmarks.models.workload import ModelWorkload, error_of
from benchmarks.workloads import Workload

BERT = ModelWorkload("bert-base", "/m/bert.onnx", {"batch": 1, "seq": 8}, flops=7, weight_bytes=5)


def test_names_say_model_sizes_and_kind_of_file():
    assert BERT.name == "bert-base 1x8"
    assert ModelWorkload("dqn", "dqn.onnx", {"batch": 3}, dynamic=True).name == "dqn 3 dynamic"
    assert ModelWorkload("light-vgg19", "v.onnx", {}).name == "light-vgg19"


@pytest.mark.parametrize("workload", [BERT, Workload("matmul", "matmul", (3, 4, 5))])
def test_workloads_of_both_kinds_survive_json(workload):
    again = kinds.read(json.loads(json.dumps(workload.to_dict())))
    assert again == workload
    assert type(again) is type(workload)


def test_inputs_and_tolerance_are_those_of_the_model():
    arrays = kinds.inputs(BERT)
    assert {name: array.shape for name, array in arrays.items()} == {
        "input_ids": (1, 8),
        "attention_mask": (1, 8),
        "token_type_ids": (1, 8),
    }
    assert kinds.tolerance(BERT) == BERT.model.tolerance


def test_errors_are_relative_to_the_largest_value_of_each_output():
    expected = [np.array([1.0, 100.0], "f4"), np.array([3, -4])]
    close = [np.array([1.5, 100.0], "f4"), np.array([3, -4])]
    assert error_of(expected, expected) == 0
    assert error_of(close, expected) == pytest.approx(0.005)
    assert kinds.error_of(BERT, [close[0], np.array([3, -3])], expected) == pytest.approx(0.25)
    assert error_of([floats := np.zeros(3, "f4")], [floats]) == 0
    assert error_of([np.zeros((0, 2), "f4")], [np.zeros((0, 2), "f4")]) == 0


def test_useless_results_are_infinitely_wrong():
    expected = [np.ones((2, 2), "f4")]
    assert error_of([], expected) == math.inf
    assert error_of([np.ones((2, 3), "f4")], expected) == math.inf
    assert error_of([np.ones((2, 2), "f8")], expected) == math.inf
    assert error_of([np.full((2, 2), np.nan, "f4")], expected) == math.inf


def test_references_with_many_outputs_keep_their_order(tmp_path):
    arrays = [np.array([i]) for i in range(12)]
    np.savez(tmp_path / "reference.npz", *arrays)
    read = kinds.read_reference(str(tmp_path / "reference.npz"))
    assert [array.item() for array in read] == list(range(12))
    assert kinds.read_reference(None) is None
