"""Figures of memory: ratios to onnxruntime, what is missing, what is written down."""

from __future__ import annotations

import json

from benchmarks.models.held import WAYS, YARDSTICK, Held, table, write


def _held(**changes):
    figures = {"seconds": 0.25, "cpu_seconds": 0.2, "resident": 300_000_000, "peak": 400_000_000}
    ways = {YARDSTICK: figures | {"resident": 200_000_000}} | dict.fromkeys(WAYS, figures)
    files = {"model.tw": 100_000_000, "small.tw": 50_000_000}
    return Held("m", 1, 40_000_000, ways | changes, files)


def test_memory_is_compared_with_that_of_onnxruntime():
    held = _held()
    assert held.is_complete
    assert held.ratio("compile_model") == 1.5
    head, line = (text.split() for text in table([held]).splitlines())
    assert " ".join(line) == "m 1 200 300 1.50 400 300 1.50 300 250 250 40 100 50"
    assert head[0] == "model"


def test_what_could_not_be_measured_is_said():
    held = _held(open_small={"why": "gone"})
    assert not held.is_complete
    assert held.ratio("open_small") is None
    assert " - " in table([held])


def test_figures_are_written_with_where_they_come_from(tmp_path):
    write(tmp_path / "held.json", ["memory", "m"], [_held()])
    data = json.loads((tmp_path / "held.json").read_text())
    assert data["command"] == "python -m benchmarks.models memory m"
    (result,) = data["results"]
    assert result["resident_of_onnxruntime"] == dict.fromkeys(WAYS, 1.5)
    assert {"machine", "commit", "when"} <= data.keys()
