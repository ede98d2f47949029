"""The page of products says how fast each engine was, and at which share of the FMA peak."""

from __future__ import annotations

from scripts.products_page import page


def test_page_of_products():
    engines = {"tilewright": {"state": "ok", "min_s": 1e-3}, "torch": {"state": "wrong"}}
    engines["openvino"] = {"state": "ok", "min_s": 1.25e-3}
    row = {
        "workload": "matmul 1024x1024x1024",
        "threads": 2,
        "noisy": False,
        "ratio_min": 1.25,
        "share_of_peak": 0.95,
        "engines": engines,
    }
    worst = {"ratio": 1.25, "workload": "matmul 1024x1024x1024"}
    run = {
        "command": "python -m benchmarks matmul --threads 2 --out results.json",
        "commit": "abc123",
        "when": "2026-01-02T03:04:05+00:00",
        "machine": {"cpu": "A CPU", "target": {"cpu": "znver5"}},
        "summary": [{"geomean_min": 1.25, "geomean_median": 1.2, "worst": worst}],
        "results": [row],
    }
    text = page([run])
    assert "## 2 threads" in text
    assert (
        "`python -m benchmarks matmul --threads 2`, commit abc123, 2026-01-02, A CPU (znver5)."
        in text
    )
    assert "Geometric mean 1.25 (medians 1.20), lowest 1.25 (matmul 1024x1024x1024)." in text
    assert "| matmul 1024x1024x1024 | 1000 | – | 1250 | – | – | 1.25 | 95 | 76 |" in text
