"""`python -m benchmarks models` on a small model, with an engine that is not ours."""

from __future__ import annotations

import json

import pytest

for package in ("onnx", "onnxruntime"):
    pytest.importorskip(package, reason="runs an ONNX model")

from benchmarks.__main__ import main  # noqa: E402
from benchmarks.memory import Memory  # noqa: E402


def test_a_model_is_made_measured_checked_and_written_down(tmp_path, capsys):
    out = tmp_path / "results.json"
    arguments = ["models", "light-squeezenet", "--engines", "onnxruntime", "--threads", "1"]
    assert main([*arguments, "--quick", "--models", str(tmp_path), "--out", str(out)]) == 0
    assert "light-squeezenet" in capsys.readouterr().out
    data = json.loads(out.read_text())
    assert data["command"].startswith("python -m benchmarks models light-squeezenet")
    (result,) = data["results"]
    outcome = result["engines"]["onnxruntime"]
    assert outcome["state"] == "ok"
    assert 0 <= result["errors"]["onnxruntime"] <= result["tolerance"]
    assert result["flops"] == pytest.approx(0.70e9, rel=0.01)
    costs = result["footprints"]["onnxruntime"]
    assert costs["peak_bytes"] >= costs["resident_bytes"] > 0
    assert costs["load_s"] > 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["abacus"], "unknown: abacus"),
        (["dqn", "--engines", "numpy"], "unknown: numpy"),
        (["dqn", "--threads", "0"], "thread counts"),
    ],
)
def test_command_line_rejects(arguments, complaint, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["models", *arguments])
    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err


def test_memory_grows_with_what_is_touched_and_the_peak_stays():
    before = Memory.start()
    block = bytearray(b"x" * 64_000_000)
    grown = Memory.now()
    assert grown.resident - before.resident >= len(block)
    del block
    assert Memory.now().peak >= grown.resident
    assert Memory.now().resident < grown.resident
