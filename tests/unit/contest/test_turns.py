"""Engines by turns, in real processes; and how their results are compared."""

from __future__ import annotations

import json
import math

import numpy as np
import onnx
import pytest

from tests.small import rows, two_outputs
from tilewright.cli import bench, main
from tilewright.contest.process import EngineGoneError, EngineProcess
from tilewright.contest.turns import Outcome, compete, distance


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("contest") / "small.onnx"
    onnx.save(two_outputs(), path)
    return path


@pytest.fixture(autouse=True)
def _own_cache(model, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(model.parent / "cache"))


def test_engines_take_turns_and_agree(model, tmp_path):
    told = []
    models = {"tilewright": model, "reference": model, "torch": tmp_path / "missing.onnx"}
    outcomes = compete(models, {"x": rows(3)}, 1, 0.05, told.append)
    own, reference, missing = outcomes
    assert [outcome.engine for outcome in outcomes] == list(models)
    for outcome in (own, reference):
        assert outcome.problem == ""
        assert 0 < outcome.min_s <= outcome.median_s
        assert outcome.error < 1e-5
        assert not outcome.differs
    assert missing.problem
    assert not missing.samples
    assert any("tilewright runs" in text for text in told)


def test_an_engine_that_ends_says_its_last_words(model):
    with EngineProcess("no such engine", 1) as process:
        answer = process.load(str(model), "missing.npz", [])
        assert "missing.npz" in answer["problem"]
        with pytest.raises(EngineGoneError, match="exit code 1; AssertionError"):
            process.turn(0.01)


@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.2], [1.0, 2.0], 0.1),
        ([math.nan, 2.0], [math.nan, 2.0], 0.0),
        ([math.inf, 2.0], [math.inf, 2.0], 0.0),
        ([math.nan, 2.0], [1.0, 2.0], math.inf),
        ([math.inf, 2.0], [1.0, 2.0], math.inf),
        ([0.5], [0.0], 0.5),
        ([], [], 0.0),
        ([1.0], [1.0, 2.0], math.inf),
    ],
)
def test_distance_is_relative_to_the_greatest_element(found, expected, error):
    assert distance([np.array(found)], [np.array(expected)]) == pytest.approx(error)


def outcome(engine, error, *samples):
    return Outcome(engine, "1.0", 0.1, list(samples), error)


def bench_with(outcomes, arguments, monkeypatch):
    monkeypatch.setattr(bench, "compete", lambda *_: outcomes)
    return main(["bench", *arguments, "--against", "onnxruntime", "--threads", "1"])


def test_bench_prints_a_table_with_ratios(model, monkeypatch, capsys):
    outcomes = [outcome("tilewright", 1e-7, 1e-3, 2e-3, 3e-3), outcome("onnxruntime", 1e-7, 5e-3)]
    assert bench_with(outcomes, [str(model)], monkeypatch) == 0
    text = capsys.readouterr().out
    assert text.startswith("small.onnx, 1 thread;")
    rows_of_table = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert rows_of_table["tilewright"][2:6] == ["2", "ms", "1", "ms"]
    assert "2.50" in rows_of_table["onnxruntime"]


def test_bench_ends_with_code_three_if_results_differ(model, monkeypatch, capsys):
    outcomes = [outcome("tilewright", 0.5, 1e-3), outcome("onnxruntime", 0.5, 5e-3)]
    assert bench_with(outcomes, [str(model), "--json"], monkeypatch) == 3
    facts = json.loads(capsys.readouterr().out)
    assert [row["differs"] for row in facts["engines"]] == [True, True]
    assert bench_with(outcomes, [str(model)], monkeypatch) == 3
    assert "results differ" in capsys.readouterr().out


def test_bench_says_why_an_engine_is_missing(model, monkeypatch, capsys):
    outcomes = [outcome("tilewright", None, 1e-3), Outcome("onnxruntime", problem="not installed")]
    assert bench_with(outcomes, [str(model)], monkeypatch) == 4
    assert "onnxruntime did not run: not installed" in capsys.readouterr().out
