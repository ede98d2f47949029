"""The page of speeds says what the runs found, and nothing of where their files were."""

from __future__ import annotations

from scripts.speed_page import page
from tests.unit.benchmarks.models.test_report import ROWS


def run_of(rows):
    return {
        "command": "python -m benchmarks models --threads 1 --out /home/me/results.json --quick",
        "commit": "abc123",
        "when": "2026-01-02T03:04:05+00:00",
        "machine": {"cpu": "A CPU", "target": {"cpu": "znver4"}},
        "engines": {"onnxruntime": {"versions": {"onnxruntime": "1.2.3"}}},
        "results": [row.to_dict() for row in rows],
    }


def test_a_run_becomes_tables():
    text = page([run_of(ROWS[:2])])
    assert "`python -m benchmarks models --threads 1 --quick`, commit abc123, 2026-01-02" in text
    assert "/home" not in text
    assert "onnxruntime 1.2.3" in text
    assert "| resnet18 1 | 25.0 | 50.0 | 40.0 | 2.00 | 1.60 | 80 | 2e-06 |" in text
    assert "| **geometric mean** |  |  |  | **2.00** | **1.79** |  |  |" in text
    assert "| resnet18 1 | 1.5 | 0.05 | 4.0 | 500.0 | 32.0 | 64.0 | 30.0 |" in text


def test_what_streams_its_weights_is_held_against_memory():
    text = page([run_of(ROWS[1:2])])
    assert "reads 400 MB of weights in each run: 80 % of the 20 GB/s" in text
    assert "What else they cost" not in text


def test_an_engine_that_failed_has_no_time():
    (line,) = [x for x in page([run_of(ROWS[1:2])]).splitlines() if x.startswith("| llama-decode")]
    assert line.startswith("| llama-decode 1x127 | 25.0 | 50.0 | 2.00 | 2.00 |")
