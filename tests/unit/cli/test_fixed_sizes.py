"""`tilewright compile --size`: files for one size of a symbolic dimension."""

from __future__ import annotations

import json

import onnx
import pytest
from onnx import helper

import tilewright as tw
from tests.small import make
from tilewright.cli import main


@pytest.fixture
def model(tmp_path, monkeypatch) -> str:
    """`y = squeeze(x[n, 4])`, whose rank depends on n."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    made = make([helper.make_node("Squeeze", ["x"], ["y"])], [("x", ["n", 4])], [("y", None)])
    onnx.save(made, "squeezed.onnx")
    return "squeezed.onnx"


@pytest.mark.parametrize("target", ["host", "aarch64"])
def test_a_size_is_fixed(model, target, capsys):
    assert main(["compile", model, "--size", "n=1", "--target", target, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["inputs"][0]["shape"] == [1, 4]
    assert facts["outputs"][0]["shape"] == [4]


def test_a_file_of_a_fixed_size_runs(model, capsys):
    assert main(["compile", model, "--size", "n=1", "-o", "one.tw"]) == 0
    capsys.readouterr()
    assert main(["run", "one.tw"]) == 0
    assert capsys.readouterr().out.startswith("y: float32[4]")
    assert tw.load("one.tw").inputs[0].shape == (1, 4)


@pytest.mark.parametrize(
    ("size", "code"), [("m=1", "K020"), ("n=one", "K041"), ("n", "K041"), ("n=-1", "K041")]
)
def test_sizes_that_cannot_be_fixed(model, size, code, capsys):
    assert main(["compile", model, "--size", size]) == 1
    assert f"{code}:" in capsys.readouterr().err
