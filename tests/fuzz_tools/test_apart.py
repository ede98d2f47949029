"""Tasks that crash or hang are told with what they were about, and the others go on."""

from __future__ import annotations

import faulthandler
import os
import time

import numpy as np

from fuzz.apart import Gone, Limits, each_apart
from fuzz.campaign import Campaign, judge_apart
from fuzz.engines import ORACLES
from fuzz.generate import generate
from tests.fuzz_tools.test_judge import tanh


def _end(*_):
    faulthandler.disable()  # nobody needs to read of a crash that is meant
    os.abort()


def _work(task, tell):
    tell("stage", f"task {task}")
    if task == "crash":
        _end()
    if task == "exit":
        os._exit(3)
    if task == "hang":
        time.sleep(1000)
    if task == "eat":
        try:
            return np.ones(1 << 34).sum()
        except MemoryError:
            return "no memory"
    return task * 2


def test_crashes_and_hangs_are_results():
    tasks = [1, "crash", 2, "hang", "exit", "eat", 3]
    limits = Limits(seconds=1.0, memory_bytes=4 << 30)
    found = dict(each_apart(tasks, _work, limits=limits))
    assert (found[1], found[2], found[3]) == (2, 4, 6)
    assert found["crash"] == Gone("crashed", "signal SIGABRT", {"stage": "task crash"})
    assert found["exit"].why == "exit code 3"
    assert found["hang"].how == "hung"
    assert found["eat"] == "no memory"


def test_several_workers_share_the_tasks():
    assert sorted(r for _, r in each_apart(range(20), _work, workers=3)) == list(range(0, 40, 2))


def test_a_crash_of_tilewright_is_a_finding(monkeypatch):
    monkeypatch.setattr("fuzz.judge.run_tilewright", _end)
    campaign = Campaign(lambda n: generate(n, ops=["Relu"]))
    findings = list(campaign.run(range(2)))
    assert [f.verdict.kind for f in findings] == ["crashed", "crashed"]
    assert findings[0].case.operators


def test_a_hang_of_tilewright_is_a_finding(monkeypatch):
    monkeypatch.setattr("fuzz.judge.run_tilewright", lambda _: time.sleep(1000))
    (verdict,) = judge_apart([tanh()], Limits(seconds=1.5))
    assert verdict.kind == "hung"


def test_an_oracle_that_crashes_is_left_out(monkeypatch):
    monkeypatch.setitem(ORACLES, "onnxruntime", _end)
    campaign = Campaign(lambda _: tanh())
    assert not list(campaign.run(range(1)))
    assert campaign.kinds == {"same": 1}


def test_the_report_counts_what_was_run():
    campaign = Campaign(lambda n: generate(n, ops=["Abs", "Neg"]))
    assert not list(campaign.run(range(3)))
    report = campaign.report()
    assert report["graphs"] == sum(report["kinds"].values()) == 3
    assert set(report["operators"]) <= {"Abs", "Neg", "Constant", "Local"}
    assert report["versions"]["onnx"]


def test_time_ends_a_campaign():
    campaign = Campaign(lambda n: generate(n, ops=["Abs"]))
    assert not list(campaign.run(iter(range(10**9)), seconds=0.5))
    assert 0 < campaign.count < 1000
