"""The harness: processes, turns, and what happens to engines that are missing, lost or wrong."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from benchmarks.__main__ import Bench, main
from benchmarks.numbers import TOLERANCE, error_of, inputs, reference
from benchmarks.process import EngineGoneError, EngineProcess
from benchmarks.turns import Settings
from benchmarks.workloads import WORKLOADS, Workload, select

SHORT = Settings(rounds=2, trial_rounds=1, turn_seconds=0.001)
SMALL = Workload("matmul", "matmul", (3, 4, 5))


@pytest.fixture
def numpy_engine():
    process = EngineProcess("numpy", threads=1)
    yield process
    process.close()


def test_an_engine_takes_turns_and_is_checked():
    (row,) = Bench(["numpy", "peak"], SHORT).run([SMALL], threads=1)
    outcome = row.outcomes["numpy"]
    assert outcome.state == "ok"
    assert outcome.variant == "matmul"
    assert 0 < outcome.min_s <= outcome.median_s
    assert len(outcome.turn_medians_s) == SHORT.rounds
    assert outcome.error <= TOLERANCE
    assert row.peers == {"numpy"}
    assert row.best_peer()[0] == "numpy"
    assert 0 < row.share_of_peak("numpy") < 1


def test_missing_engines_and_unsupported_workloads_are_no_error():
    bench = Bench(["numpy", "no_such_engine"], SHORT)
    (row,) = bench.run([Workload("rowwise", "gelu", (2, 3))], threads=1)
    assert "no_such_engine" in bench.missing["no_such_engine"]
    assert row.outcomes["numpy"].state == "unsupported"
    assert row.best_peer() is None
    assert row.ratio() is None


def test_a_wrong_result_is_found(numpy_engine, tmp_path):
    wrong = reference(SMALL, inputs(SMALL)) * 1.001
    np.save(tmp_path / "wrong.npy", wrong)
    answer = numpy_engine.ask("load", workload=SMALL.to_dict(), reference=f"{tmp_path}/wrong.npy")
    assert answer["variants"]["matmul"]["state"] == "wrong"
    assert answer["variants"]["matmul"]["error"] == pytest.approx(1e-3, rel=0.1)


def test_a_lost_engine_says_how_it_ended(numpy_engine):
    with pytest.raises(EngineGoneError, match=r"exit code 1; .*no_such_request"):
        numpy_engine.ask("no_such_request")


def test_an_engine_that_hangs_is_given_up(numpy_engine):
    load = {"workload": SMALL.to_dict(), "reference": None}
    numpy_engine.ask("load", **load)
    with pytest.raises(EngineGoneError, match="no answer"):
        numpy_engine.ask("turn", timeout=0.05, variant="matmul", seconds=30)


def test_command_line_prints_a_table_and_writes_json(tmp_path, capsys):
    out = tmp_path / "results.json"
    arguments = ["matmul", "--quick", "--threads", "1", "--peers", "numpy", "--only", "77x512x512"]
    code = main([*arguments, "--out", str(out)])
    printed = capsys.readouterr().out
    assert code == 0
    assert "matmul 77x512x512" in printed
    data = json.loads(out.read_text())
    assert data["machine"]["fingerprint"]
    assert data["command"].startswith("python -m benchmarks matmul --quick")
    (result,) = data["results"]
    assert result["best_peer"] == "numpy"
    assert result["engines"]["numpy"]["state"] == "ok"


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["--threads", "0"], ["--threads", "x"], ["--peers", "abacus"]]
)
def test_command_line_rejects(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: python -m benchmarks" in capsys.readouterr().err


def test_workloads_have_distinct_names_and_survive_json():
    keys = {(workload.group, workload.name) for workload in WORKLOADS}
    assert len(keys) == len(WORKLOADS)
    for workload in WORKLOADS:
        assert Workload.from_dict(json.loads(json.dumps(workload.to_dict()))) == workload
    assert [w.name for w in select(["matmul"], "batched")] == [
        "batched 192x(128x64x128)",
        "batched 192x(77x77x64)",
    ]


def test_inputs_are_the_same_in_every_process():
    first, second = inputs(SMALL), inputs(SMALL)
    assert all((first[name] == second[name]).all() for name in first)
    assert all(array.dtype == np.float32 and array.flags.c_contiguous for array in first.values())


def test_errors_of_useless_results_are_infinite():
    expected = np.ones((2, 2))
    assert error_of(np.ones((2, 2), "f4"), expected) == 0
    assert error_of(np.ones((2, 3), "f4"), expected) == math.inf
    assert error_of(np.ones((2, 2), "f8"), expected) == math.inf
    assert error_of(np.full((2, 2), np.nan, "f4"), expected) == math.inf
