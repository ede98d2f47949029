"""Commands on models that are compiled for the values of inputs."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tests.small import make
from tilewright.cli import main


@pytest.fixture
def model(tmp_path, monkeypatch) -> str:
    """`y = sum(x, axes)`, where axes are an input."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    made = make([helper.make_node("ReduceSum", ["x", "axes"], ["y"])], [("x", ["n", 4])], [])
    made.graph.input.append(helper.make_tensor_value_info("axes", TensorProto.INT64, ["k"]))
    made.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    onnx.save(made, tmp_path / "summed.onnx")
    return str(tmp_path / "summed.onnx")


def test_run_takes_values_as_inputs_or_settles_them(model, tmp_path, capsys):
    assert main(["run", model, "--input", "axes=[1]", "--size", "n=3"]) == 0
    assert capsys.readouterr().out.startswith("y: float32[3, 1]")
    assert main(["run", model, "--settle", "axes=[0]", "--size", "n=3"]) == 0
    assert capsys.readouterr().out.startswith("y: float32[1, 4]")
    np.save(tmp_path / "axes.npy", np.array([0, 1]))
    assert main(["run", model, "--settle", f"axes={tmp_path / 'axes.npy'}"]) == 0
    assert "\ny: float32[1, 1]" in capsys.readouterr().out


def test_values_that_decide_are_not_made_up(model, capsys):
    assert main(["run", model]) == 1
    error = capsys.readouterr().err
    assert "K044: no values can be made up for `axes`" in error
    assert "--input axes=[1,2]" in error


def test_settled_values_must_be_readable_and_of_an_input(model, capsys):
    for text, code in [("axes", "K041"), ("axes=one", "K043"), ("axis=[1]", "K020")]:
        assert main(["run", model, "--settle", text]) == 1
        assert code in capsys.readouterr().err


def test_compile_says_what_is_settled_later(model, tmp_path, capsys):
    path = str(tmp_path / "summed.tw")
    assert main(["compile", model, "-o", path]) == 0
    assert "compiled when it runs, for each value of `axes`" in capsys.readouterr().out
    assert main(["run", path, "--input", "axes=[1]", "--size", "n=2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"][0]["shape"] == [2, 1]
    assert main(["compile", model, "-o", path, "--settle", "axes=[0]", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["settled"], facts["inputs"][0]["shape"]) == ([], ["n", 4])
    assert facts["kernels"] == 1
    assert type(tw.load(path)) is tw.Module


def test_compile_for_another_machine_wants_values(model, tmp_path, capsys):
    path = tmp_path / "other.tw"
    command = ["compile", model, "-o", str(path), "--target", "aarch64"]
    assert main(command) == 1
    assert "A121" in (error := capsys.readouterr().err)
    assert "--settle" in error
    assert not path.exists()
    assert main([*command, "--settle", "axes=[0]"]) == 0
    assert path.exists()


def test_show_says_what_is_settled(model, tmp_path, capsys):
    assert main(["show", model]) == 0
    line = "  settled `axes`: compiled for each value; give one with `--settle axes=…`"
    assert line in capsys.readouterr().out.splitlines()
    assert main(["show", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"]["settled"] == ["axes"]
    assert main(["show", model, "--layouts"]) == 0
    assert line in capsys.readouterr().out.splitlines()
    assert main(["show", model, "--graph", "--settle", "axes=[1]"]) == 0
    assert "reduce" in (text := capsys.readouterr().out)
    assert "settled" not in text
    path = str(tmp_path / "summed.tw")
    assert main(["compile", model, "-o", path]) == 0
    capsys.readouterr()
    assert main(["show", path]) == 0
    assert line in capsys.readouterr().out.splitlines()
    assert main(["show", path, "--memory", "--settle", "axes=[1]"]) == 0
    assert "settled" not in capsys.readouterr().out


def test_bench_runs_one_version(model, capsys):
    command = ["bench", model, "--input", "axes=[1]", "--size", "n=8", "--seconds", "0.1"]
    assert main([*command, "--threads", "1", "--json"]) == 0
    (engine,) = json.loads(capsys.readouterr().out)["engines"]
    assert engine["engine"] == "tilewright"
    assert engine["samples"] > 0
