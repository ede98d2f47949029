"""`python -m benchmarks.versions`: two checkouts take turns."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("onnx", reason="runs an ONNX model")

from benchmarks import versions
from benchmarks.versions import BEFORE, HERE, NOW, main, table


@pytest.mark.slow
def test_a_checkout_compared_with_itself_gives_equal_results(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(versions, "default_folder", lambda: tmp_path)
    monkeypatch.setattr(versions, "ROUNDS", 1)
    out = tmp_path / "versions.json"
    assert main([str(HERE), "light-squeezenet", "--out", str(out)]) == 0
    assert "| light-squeezenet |" in capsys.readouterr().out
    (row,) = json.loads(out.read_text())["results"]
    assert row["error"] == 0
    assert all(row[times][name] > 0 for times in ("ms", "load_s") for name in (BEFORE, NOW))


def test_the_table_says_what_became_of_each():
    fast = {"model": "a", "ms": {BEFORE: 4.0, NOW: 2.0}, "load_s": {BEFORE: 1.0, NOW: 1.5}}
    rows = [{**fast, "error": 0}, {**fast, "error": 2e-6}, {"model": "b", "problem": "before: no"}]
    text = table(rows)
    assert "| a | 4.000 | 2.000 | 2.00 | 1.0 | 1.5 | equal |" in text
    assert "| 2e-06 |" in text
    assert "| b | before: no |" in text
    assert "| **geometric mean** | | | 2.00 |" in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["."], "no native library"), ([str(HERE), "abacus"], "unknown models: abacus")],
)
def test_command_line_rejects(arguments, complaint, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err
