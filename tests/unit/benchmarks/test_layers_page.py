"""The page of layers says what the runs found, and nothing of where their files were."""

from __future__ import annotations

from typing import Any

from scripts.layers_page import page


def engine(seconds: float, state: str = "ok") -> dict[str, Any]:
    return {"state": state, "min_s": seconds}


ROW = {
    "workload": "conv2d 56x64x64x3x1x1 (C2)",
    "threads": 1,
    "flops": 2_000_000_000,
    "noisy": True,
    "ratio_min": 1.25,
    "engines": {
        "tilewright": engine(0.008),
        "ncnn": engine(0.01),
        "mnn": engine(0.02, "wrong"),
    },
}
GROUP = {
    "group": "conv resnet18",
    "rows": 1,
    "geomean_min": 1.25,
    "geomean_median": 1.2,
    "worst": {"ratio": 1.25, "workload": "conv2d 56x64x64x3x1x1 (C2)"},
}
RUN = {
    "command": "python -m benchmarks conv --threads 1 --out /home/me/results.json",
    "commit": "abc123",
    "when": "2026-01-02T03:04:05+00:00",
    "machine": {"cpu": "A CPU", "target": {"cpu": "znver4"}},
    "summary": [GROUP],
    "results": [ROW],
}


def test_a_run_becomes_tables():
    text = page([RUN])
    assert "## 1 thread\n" in text
    assert (
        "`python -m benchmarks conv --threads 1`, commit abc123, 2026-01-02, A CPU (znver4)."
        in text
    )
    assert "/home" not in text
    assert "| conv2d 56x64x64x3x1x1 (C2) ~ | 250 | – | – | – | 200 | – | 1.25 |" in text
    assert "| resnet18 | 1 | 1.25 | 1.20 | 1.25 (conv2d 56x64x64x3x1x1 (C2)) |" in text
    assert "(1 rows)" in text
