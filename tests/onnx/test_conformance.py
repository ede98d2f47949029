"""The node tests of the `onnx` package: samples, all of them with --long, and the page of them."""

from __future__ import annotations

import io
import unittest
import warnings
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx.backend.test import BackendTest

from tests.onnx.conformance import Outcome, by_operator, compiled, interpreted, outcomes
from tests.onnx.conformance_page import (
    COMMAND,
    case_rows,
    operator_rows,
    page,
    read_page,
    shares,
    summary_rows,
)
from tests.onnx.node_cases import node_cases, operator_of, with_constants
from tilewright import backend
from tilewright.frontend.onnx.registry import HANDLERS

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"

IMAGES = "ImageDecoder"
"""The operator whose cases run only where Pillow is installed."""

same_onnx = pytest.mark.skipif(
    f"onnx {onnx.__version__}," not in PAGE.read_text(encoding="utf-8"),
    reason="the page is about the cases of another version of onnx",
)

SAMPLE = (
    "and_bcast3v1d",
    "argmax_keepdims_random",
    "attention_4d_gqa",
    "averagepool_2d_ceil",
    "concat_2d_axis_1",
    "conv_with_strides_padding",
    "convtranspose_pads",
    "einsum_batch_matmul",
    "gather_elements_1",
    "gru_defaults",
    "if",
    "layer_normalization_3d_axis1_epsilon",
    "lstm_with_peepholes",
    "matmul_4d",
    "maxpool_2d_dilations",
    "reduce_mean_default_axes_keepdims_example",
    "scan9_sum",
    "transpose_all_permutations_3",
)


def test_a_sample_of_cases_is_native():
    """Each of these is native code and right."""
    cases = [case for name in SAMPLE for case in node_cases(name)]
    assert len(cases) == len(SAMPLE)
    bad = [o for o in outcomes(cases, compiled) if o.kind != "native"]
    assert bad == []


@same_onnx
def test_every_fortieth_case_fares_as_the_page_says():
    assert _different(node_cases()[::40]) == []


CONSTANTS = ("reduce_sum_keepdims_random", "resize_upsample_scales_nearest", "slice", "tile")


def test_cases_with_constants_are_native():
    """What takes axes, shapes and scales as inputs, and is native where these are known."""
    cases = [with_constants(case) for name in CONSTANTS for case in node_cases(name)]
    assert {o.kind for o in outcomes(cases, compiled)} == {"native"}


def test_results_by_reference_have_the_size_that_was_foreseen(monkeypatch: Any):
    """What ONNX infers of STFT is wrong if its attributes are left out."""
    monkeypatch.delitem(HANDLERS, ("", "STFT"))
    cases = [with_constants(case) for case in node_cases("stft*")]
    assert {o.kind for o in outcomes(cases, compiled)} == {"reference"}


@same_onnx
@pytest.mark.slow
def test_all_cases_fare_as_the_page_says():
    assert _different(node_cases()) == []


def _different(cases: list[Any]) -> list[Outcome]:
    """Cases that do not fare as the page says."""
    said = {o.name: o.kind for o in read_page(PAGE.read_text(encoding="utf-8"))}
    found = outcomes(cases, compiled)
    return [o for o in found if o.operator != IMAGES and o.kind != said[o.name]]


def test_operators_of_control_flow_and_windows_are_imported():
    """No part of these is left to the reference implementation."""
    patterns = ("conv_*", "convtranspose*", "averagepool*", "lstm*", "gru*", "loop11", "scan9*")
    cases = [case for pattern in patterns for case in node_cases(pattern)]
    table = by_operator(outcomes(cases, interpreted))
    assert {kind for row in table.values() for kind in row} == {"native"}
    assert {"Conv", "ConvTranspose", "LSTM", "Loop", "Scan"} <= set(table)


@same_onnx
def test_the_page_is_of_all_cases_and_in_the_form_that_the_script_makes():
    """Its tables are those of the outcomes that it lists."""
    text = PAGE.read_text(encoding="utf-8")
    found = read_page(text)
    assert [o.name for o in found] == sorted(case.name for case in node_cases())
    assert f"Made by `{COMMAND}`." in text
    assert "\n".join(summary_rows(found)) in text
    assert "\n".join(operator_rows(found)) in text
    share = shares(found)
    assert share["native"] >= 90
    assert share["native"] + share["reference"] >= 99


def test_the_page_names_every_case_and_why_it_is_not_native():
    found = [
        Outcome("test_a", "Abs", "native"),
        Outcome("test_b", "Abs", "failing", "a | b"),
        Outcome("test_c", "Cast", "reference", "because the input `x`: element type string"),
    ]
    text = page(found)
    assert "| native | 1 | 33.3 % |" in text
    assert "| Abs | 1 |  | 1 |" in text
    assert "| 1 | because an input: element type string |" in text
    assert "| `test_b` | Abs | failing | a \\| b |" in text
    assert [(o.name, o.operator, o.kind) for o in read_page(text)] == [
        (o.name, o.operator, o.kind) for o in found
    ]
    assert len(case_rows(found)) == 2 + len(found)


def test_expanded_cases_count_for_the_operator_that_they_spell_out():
    (case,) = node_cases("softmax_axis_0_expanded")
    assert operator_of(case) == "Softmax"


def test_the_runner_of_onnx_finds_what_it_expects(tmp_path: Path, monkeypatch: Any):
    """`BackendTest` as backends use it: cases of every kind, compiled, skipped on other devices."""
    monkeypatch.setenv("ONNX_HOME", str(tmp_path))
    tolerant = {"test_exp": {"rtol": 1e-5, "atol": 1e-6}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cases, and of nodes that run by reference
        tests = BackendTest(backend, __name__, tolerant)
        for name in ("exp", "gemm_all_attributes", "split_to_sequence_1", "operator_mm", "Linear"):
            tests.include(f"^test_{name}_(cpu|cuda)$")
        result = unittest.TextTestRunner(io.StringIO()).run(tests.test_suite)
    assert result.failures == result.errors == []
    why = [reason for _, reason in result.skipped if "pattern" not in reason]
    assert why == ["Backend doesn't support device CUDA"] * 5
    assert result.testsRun - len(result.skipped) == 5
