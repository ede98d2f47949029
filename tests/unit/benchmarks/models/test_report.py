"""Figures of models: ratios, means, shares, costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.models.report import ModelRow, brief, summary, table
from benchmarks.models.workload import ModelWorkload
from benchmarks.turns import Outcome

COSTS = {
    "tilewright": {
        "compile_again_s": 0.05,
        "artefact_bytes": 30_000_000,
        "load_s": 0.004,
        "resident_bytes": 32_000_000,
        "peak_bytes": 33_000_000,
    },
    "onnxruntime": {"load_s": 0.5, "resident_bytes": 64_000_000, "peak_bytes": 96_000_000},
}


def ok(best, median, error=0.0):
    """Times in ms."""
    return Outcome("ok", min_s=best / 1e3, median_s=median / 1e3, error=error, prepare_ms=1500)


def row(model, sizes, threads=1, flops=0, weight_bytes=0, **outcomes):
    peers = frozenset(outcomes.keys() - {"tilewright"})
    outcomes["peak"] = Outcome("ok", min_s=1.0, median_s=1.0, flops=10**11)
    outcomes["memory"] = Outcome("ok", min_s=0.05, median_s=0.06)  # 20 GB/s
    workload = ModelWorkload(model, f"{model}.onnx", sizes, False, flops, weight_bytes)
    return ModelRow(workload, threads, outcomes, peers)


ROWS = [
    replace(
        row(
            *("resnet18", {"batch": 1}),
            flops=2 * 10**9,
            tilewright=ok(25, 30, error=2e-6),
            onnxruntime=ok(50, 60),
            openvino=ok(40, 60),
        ),
        footprints=COSTS,
    ),
    row(
        *("llama-decode", {"batch": 1, "past": 127}),
        weight_bytes=400_000_000,
        tilewright=ok(25, 25),
        onnxruntime=ok(50, 50),
        openvino=Outcome("failed", "no such op"),
    ),
    row("dqn", {"batch": 1}, threads=2, tilewright=Outcome("gone", "lost"), onnxruntime=ok(1, 1)),
]


def test_ratios_to_onnxruntime_and_to_the_best_peer():
    assert ROWS[0].ratio_to("onnxruntime") == pytest.approx(2.0)
    assert ROWS[0].ratio_to("onnxruntime", "median_s") == pytest.approx(2.0)
    assert ROWS[0].ratio() == pytest.approx(1.6)
    assert ROWS[1].ratio_to("openvino") is None
    assert ROWS[2].ratio_to("onnxruntime") is None


def test_shares_of_the_machine():
    assert ROWS[0].share_of_peak("tilewright") == pytest.approx(0.8)
    assert ROWS[0].share_of_bandwidth("tilewright") is None
    assert ROWS[1].share_of_bandwidth("tilewright") == pytest.approx(0.8)
    assert ROWS[1].share_of_bandwidth("openvino") is None
    unknown = {name: o for name, o in ROWS[1].outcomes.items() if name != "memory"}
    assert replace(ROWS[1], outcomes=unknown).share_of_bandwidth("tilewright") is None


def test_brief_for_a_person_who_waits():
    assert brief(ROWS[0]) == "resnet18 1: 25.000 ms, 2.00 of onnxruntime, 1.60 of openvino"
    assert brief(replace(ROWS[1], foreign_cpus=1.0)).endswith("2.00 of onnxruntime (noisy)")
    assert brief(ROWS[2]) == "dqn 1: gone"


def test_summary_has_means_to_both():
    one, two = summary(ROWS)
    assert one["geomean_min"] == pytest.approx((1.6 * 2) ** 0.5)
    assert one["geomean_to_onnxruntime"] == pytest.approx(2.0)
    assert one["faster_than_onnxruntime"] == 2
    assert one["worst"] == {"ratio": pytest.approx(1.6), "workload": "resnet18 1"}
    assert (two["compared"], two["geomean_to_onnxruntime"], two["worst"]) == (0, None, None)


def test_data_has_everything_that_was_measured():
    data = ROWS[0].to_dict()
    assert (data["model"], data["sizes"], data["threads"]) == ("resnet18", {"batch": 1}, 1)
    assert data["ratio_to_onnxruntime_min"] == pytest.approx(2.0)
    assert data["errors"]["tilewright"] == 2e-6
    assert data["compile_s"]["onnxruntime"] == pytest.approx(1.5)
    assert data["footprints"] == COSTS
    assert data["streamed_bytes"] is None
    assert ROWS[1].to_dict()["streamed_bytes"] == 400_000_000
    assert ROWS[1].to_dict()["share_of_bandwidth"]["tilewright"] == pytest.approx(0.8)


def test_table_for_people(golden):
    assert golden == table(ROWS, ["tilewright", "onnxruntime", "openvino"])


def test_costs_are_left_out_where_nobody_asked():
    assert "compile s" not in table([ROWS[1]], ["tilewright"])
