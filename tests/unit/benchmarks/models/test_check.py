"""Checking results of models: every file, all sizes, and what is wrong is said."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="writes ONNX files")
pytest.importorskip("onnxruntime", reason="the reference")

import tilewright as tw  # noqa: E402
from benchmarks.models import check as checking  # noqa: E402
from benchmarks.models.__main__ import main  # noqa: E402
from benchmarks.models.make import Choice, file_of  # noqa: E402
from benchmarks.models.registry import MODELS  # noqa: E402
from benchmarks.models.spec import Input, Model, Packaged, normal  # noqa: E402
from tests.small import two_outputs  # noqa: E402

SMALL = Model(
    *("small", "test", Packaged("onnx", "none")),
    inputs=(Input("x", ("rows", 8), normal()),),
    sizes=({"rows": 2}, {"rows": 5}),
    dynamic=("rows",),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setitem(MODELS, "small", SMALL)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    for choice in checking.choices_of(SMALL):
        onnx.save(two_outputs(), file_of(SMALL, tmp_path, choice))
    return tmp_path


def test_choices_are_all_files_of_a_model():
    assert list(checking.choices_of(SMALL)) == [Choice(False, ""), Choice(True, "")]
    assert len(list(checking.choices_of(MODELS["resnet18"]))) == 4
    assert len(list(checking.choices_of(MODELS["light-squeezenet"]))) == 1


def test_every_file_size_and_thread_count_has_a_verdict(folder, capsys):
    assert main(["check", "small", "--models", str(folder), "--threads", "1,2"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == "6 of 6 are right"
    assert [line.split(":")[0] for line in lines] == [
        "ok    small 2, 1 threads",
        "ok    small 2, 2 threads",
        "ok    small.dynamic 2, 1 threads",
        "ok    small.dynamic 5, 1 threads",
        "ok    small.dynamic 2, 2 threads",
        "ok    small.dynamic 5, 2 threads",
    ]


@pytest.mark.parametrize(("drift", "words"), [(0.0, ": 1.0e"), (1e-7, "other bits when run again")])
def test_wrong_and_restless_results_are_found(folder, capsys, monkeypatch, drift, words):
    honest = tw.Module.run
    calls = []

    def run(self, feeds):
        calls.append(feeds)
        first, *rest = honest(self, feeds)
        change = drift * len(calls) if drift else 0.1 * np.abs(first).max()
        return [(first + change).astype("f4"), *rest]

    monkeypatch.setattr(tw.Module, "run", run)
    assert main(["check", "small", "--models", str(folder), "--threads", "1"]) == 1
    printed = capsys.readouterr().out
    assert "WRONG small 2, 1 threads" in printed
    assert words in printed
