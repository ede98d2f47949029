"""The node tests of the `onnx` package: samples, all of them with --long, and the page of them."""

from __future__ import annotations

import io
import os
import re
import signal
import time
import unittest
import warnings
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx.backend.test import BackendTest

from tests.onnx.apart import each_apart
from tests.onnx.conformance import Outcome, by_operator, compiled, interpreted, outcomes
from tests.onnx.conformance_page import COMMAND, KINDS, operator_rows, page, shares, summary_rows
from tests.onnx.node_cases import node_cases, operator_of, with_constants
from tilewright import backend

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
    said = _rows()
    found = list(outcomes(node_cases()[::40], compiled))
    assert [o for o in found if said[o.operator][o.kind] == 0 and o.operator != IMAGES] == []
    assert shares(found)["native"] >= 60


CONSTANTS = ("reduce_sum_keepdims_random", "resize_upsample_scales_nearest", "slice", "tile")


def test_cases_with_constants_are_native():
    """What takes axes, shapes and scales as inputs, and is native where these are known."""
    cases = [with_constants(case) for name in CONSTANTS for case in node_cases(name)]
    assert {o.kind for o in outcomes(cases, compiled)} == {"native"}


def test_results_by_reference_have_the_size_that_was_foreseen():
    """What ONNX infers of STFT is wrong if its attributes are left out."""
    cases = [with_constants(case) for case in node_cases("stft*")]
    assert {o.kind for o in outcomes(cases, compiled)} == {"reference"}


@same_onnx
@pytest.mark.slow
def test_all_cases_fare_as_the_page_says():
    found = by_operator(outcomes(node_cases(), compiled))
    for name, said in _rows().items():
        if name != IMAGES:
            assert {kind: found[name][kind] for kind in KINDS} == said, name


def test_operators_of_control_flow_and_windows_are_imported():
    """No part of these is left to the reference implementation."""
    patterns = ("conv_*", "convtranspose*", "averagepool*", "lstm*", "gru*", "loop11", "scan9*")
    cases = [case for pattern in patterns for case in node_cases(pattern)]
    table = by_operator(outcomes(cases, interpreted))
    assert {kind for row in table.values() for kind in row} == {"native"}
    assert {"Conv", "ConvTranspose", "LSTM", "Loop", "Scan"} <= set(table)


@same_onnx
def test_the_page_is_of_all_cases_and_in_the_form_that_the_script_makes():
    """Its tables are those of outcomes with the numbers that they show."""
    text = PAGE.read_text(encoding="utf-8")
    found = [
        Outcome(f"test_{name}_{k}", name, kind)
        for name, row in _rows().items()
        for kind in KINDS
        for k in range(row[kind])
    ]
    assert len(found) == len(node_cases())
    assert f"Made by `{COMMAND}`." in text
    assert "\n".join(summary_rows(found)) in text
    assert "\n".join(operator_rows(found)) in text
    share = shares(found)
    assert share["native"] >= 60
    assert share["native"] + share["reference"] >= 95


def test_the_page_names_what_fails_and_why():
    found = [
        Outcome("test_a", "Abs", "native"),
        Outcome("test_b", "Abs", "failing", "a | b"),
        Outcome("test_c", "Cast", "reference", "because the input `x`: element type string"),
    ]
    text = page(found)
    assert "| native | 1 | 33.3 % |" in text
    assert "| Abs | 1 |  | 1 |" in text
    assert "| 1 | because an input: element type string |" in text
    assert "| `test_b` | a \\| b |" in text
    assert "None." in page(found[:1])


def test_expanded_cases_count_for_the_operator_that_they_spell_out():
    (case,) = node_cases("softmax_axis_0_expanded")
    assert operator_of(case) == "Softmax"


def test_work_apart_survives_what_crashes_and_hangs():
    def work(number: int) -> str:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 2:
            os._exit(3)
        if number == 4:
            time.sleep(1000)
        return f"done {number}"

    done = each_apart(7, work, lambda number, why: f"{number}: {why}", workers=2, limit_s=2)
    found: dict[int, str] = dict(done)
    assert found == {
        0: "done 0",
        1: "1: the process ended with signal SIGKILL",
        2: "2: the process ended with exit code 3",
        3: "done 3",
        4: "4: no result in 2 s",
        5: "done 5",
        6: "done 6",
    }


@pytest.mark.parametrize("workers", [1, 3])
def test_work_apart_takes_any_number_of_tasks(workers: int):
    for count in (0, 1, 5):
        done = each_apart(count, lambda n: n * n, lambda _, why: len(why), workers=workers)
        assert sorted(done) == [(n, n * n) for n in range(count)]


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


def _rows() -> dict[str, dict[str, int]]:
    """The table of operators in the page."""
    text = PAGE.read_text(encoding="utf-8")
    numbers = r"\| (\d*) \| (\d*) \| (\d*) \|"
    rows = re.findall(rf"^\| (\w+) {numbers}$", text, re.MULTILINE)
    return {
        name: dict(zip(KINDS, (int(n or 0) for n in counts), strict=True)) for name, *counts in rows
    }
