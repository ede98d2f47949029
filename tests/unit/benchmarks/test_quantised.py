"""Quantised layers as files: every form is read, exact where it must be, and named once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from benchmarks.kinds import error_of, read
from benchmarks.models.workload import reference
from benchmarks.quantised import FORMS, LAYERS, QuantisedWorkload, write_quantised

SMALL = {
    "matmul": [("matmul", (5, 12, 16)), ("matmul", (1, 7, 9))],
    "conv": [("conv2d", (9, 3, 8, 3, 2, 1)), ("depthwise", (8, 6, 3, 1, 1))],
}
CASES = [
    QuantisedWorkload(form, op, shape)
    for kind, layers in SMALL.items()
    for op, shape in layers
    for form in FORMS[kind]
]


def test_names_are_distinct():
    every = [QuantisedWorkload("a form", *layer).name for layer in LAYERS]
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("workload", CASES, ids=lambda w: w.name)
def test_every_form_is_right(workload: QuantisedWorkload, tmp_path: Path):
    path = tmp_path / "layer.onnx"
    write_quantised(workload, path)
    given = replace(workload, path=str(path))
    onnx.checker.check_model(onnx.load(path))
    expected = reference(given)
    assert expected[0].shape == given.result_shape
    results = tw.compile(str(path), threads=1).run(given.inputs())
    assert error_of(given, results, expected) <= given.tolerance


def test_results_fill_their_type(tmp_path: Path):
    """A layer all of whose results are held at the ends would hide mistakes."""
    for form in ("QLinearMatMul", "QDQ MatMul"):
        given = QuantisedWorkload(form, "matmul", (32, 48, 256), str(tmp_path / "layer.onnx"))
        write_quantised(given, Path(given.path))
        (result,) = reference(given)
        assert np.mean((result > 0) & (result < 255)) > 0.9
        assert result.std() > 20


def test_workloads_survive_their_way_to_an_engine():
    assert read(CASES[0].to_dict()) == CASES[0]
