"""Every subcommand of the tuner's benchmarks runs to its end, with a runner that makes up times."""

from __future__ import annotations

import json
import os
import sys
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.kinds import with_file
from benchmarks.report import Row
from benchmarks.tuner import at_once, comparisons, faults, joint, models, overhead, rivals
from benchmarks.tuner.contest import Entrant, contest, with_database
from benchmarks.tuner.main import SUBCOMMANDS, main
from benchmarks.tuner.metaschedule.found import Found
from benchmarks.tuner.metaschedule.timed import Searched, SearchError
from benchmarks.tuner.tasks import workload_named
from benchmarks.turns import Outcome as Turns
from benchmarks.workloads import Workload
from scripts.tuner_page import charts, page
from tests.tuning import STATE
from tilewright.calibration import with_machine_model
from tilewright.records import Database
from tilewright.schedule.points import data_of
from tilewright.target import Target
from tilewright.tensor import library
from tilewright.tuning.measure.trial import CRASH, OK, Outcome
from tilewright.tuning.task import task_of_func

TARGET = Target.named("x86-64-v3")


class MadeUp:
    """A runner whose times are made of the texts of points; one in nine crashes."""

    def run(self, trials):
        for trial in trials:
            text = str([data_of(point) for point in trial.points.values()])
            number = blake2b(text.encode(), digest_size=1).digest()[0]
            if number % 9 == 0:
                yield trial, Outcome(CRASH, detail="SIGILL")
            else:
                yield trial, Outcome(OK, 700.0 + 3 * number, 1000.0, 0.01, measure_s=0.01)

    def close(self):
        pass


def small_task(name, target, threads=1, drawn=0):
    """A product in the place of each task: its columns are as many as its name has letters."""
    del target, drawn
    return task_of_func(library.matmul(24, 16 * len(name), 32), TARGET, ["B"], threads)


def tuned(_model, *, database, **_):
    """A search that finds nothing, and leaves its database behind."""
    Database(database).close()
    return SimpleNamespace(state=STATE, gain=1.25)


def outcomes(*names):
    return {
        name: Turns("ok", variant="way", flops=10**9, min_s=1e-3 * k, median_s=1.1e-3 * k)
        for k, name in enumerate(names, start=1)
    }


def race(entrants, workload, threads, _folder):
    """A contest that the first entrant wins, the second one by half, and so on."""
    peers = frozenset(name for name in entrants if name == "tvm")
    return Row(workload, threads, outcomes(*entrants), peers, 0.0)


@pytest.fixture(autouse=True)
def _made_up(monkeypatch):
    for module in (comparisons, overhead, faults):
        monkeypatch.setattr(module, "runner_named", lambda _: MadeUp())
        monkeypatch.setattr(module, "task_named", small_task)
    for module in (joint, models, rivals):
        monkeypatch.setattr(module, "tune", tuned)
    for module in (joint, rivals):
        monkeypatch.setattr(module, "contest", race)


@pytest.fixture
def run(tmp_path):
    def command(what, *arguments):
        out = tmp_path / f"{what}.json"
        assert main([what, *arguments, "--out", str(out)]) == 0
        found = json.loads(out.read_text())
        assert (found["what"], found["threads"]) == (what, 1)
        assert found["machine"]["cpu"]
        return found

    return command


def shown(found):
    """The page of one run; whatever a subcommand writes, the script can read."""
    files = charts([found])
    text = page([found])
    assert set(files) == {name for name in files if f"({name})" in text}
    assert bool(files) == ("curves" in found)
    return text


def test_search_compares_ways(run):
    few = ("--trials", "12", "--seeds", "2", "--tasks", "C2,C12")
    found = run("search", *few, "--ways", "random,evolution,decisions alone,shared columns")
    assert len(found["curves"]) == 2 * 2 * 4
    assert {len(curve["best"]) for curve in found["curves"]} == {12}
    summary = found["summary"]
    reasons = {tuple(curve["reasons"]) for curve in found["curves"] if curve["failures"]}
    assert reasons == {("crash: SIGILL",)}
    assert summary["baseline"] == "random"
    assert summary["ways"]["random"]["of_baseline"] == pytest.approx(1)
    assert summary["ways"]["evolution"]["by_task"].keys() == {"C2", "C12"}
    assert found["tasks"]["C2"]["variants"] == 1
    text = shown(found)
    assert "| decisions alone |" in text
    assert "(tuning-curves-ways.svg)" in text


def test_tasks_at_once_are_put_in_order(run, monkeypatch):
    asked = []

    def apart(what, names, arguments, at_once):
        asked.append((what, arguments, at_once))
        for name in reversed(names):
            yield run(what, "--tasks", name, *arguments)

    monkeypatch.setattr(comparisons, "each_apart", apart)
    few = ("--trials", "6", "--seeds", "1", "--layouts", "3")
    found = run("search", "--tasks", "C2,C12", *few, "--at-once", "2")
    (about,) = asked
    assert about == ("search", [*few, "--ways", "random,evolution"], 2)
    assert [curve["task"] for curve in found["curves"]] == ["C2", "C2", "C12", "C12"]
    alone = run("search", "--tasks", "C2,C12", *few)
    assert found["summary"] == alone["summary"]
    assert list(found["tasks"]) == list(alone["tasks"]) == ["C2", "C12"]


def test_the_first_of_tasks_at_once_makes_the_history(run, monkeypatch, tmp_path):
    asked, own = [], tmp_path / "history.sqlite"

    def apart(what, names, arguments, at_once):
        asked.append((list(names), at_once, own.exists()))
        for name in reversed(names):
            yield run(what, "--tasks", name, *arguments)

    monkeypatch.setattr(comparisons, "each_apart", apart)
    monkeypatch.setattr(comparisons, "HISTORY", ("C1",))
    few = ("--trials", "6", "--seeds", "1", "--history", str(own))
    found = run("transfer", "--tasks", "C2,C10,C12", *few, "--at-once", "2")
    assert asked == [(["C2"], 1, False), (["C10", "C12"], 2, True)]
    assert list(found["summary"]["tasks"]) == ["C2", "C10", "C12"]


def test_a_process_has_a_processor_of_its_own(monkeypatch):
    """Of each task: what the process that searches it may use."""
    code = (
        "import os, sys, json, pathlib; own = sorted(os.sched_getaffinity(0));"
        "name, out = sys.argv[sys.argv.index('--tasks') + 1], sys.argv[-1];"
        "pathlib.Path(out).write_text(json.dumps({'task': name, 'own': own}))"
    )
    monkeypatch.setattr(at_once, "PROGRAM", ["-c", code])
    usable = sorted(os.sched_getaffinity(0))[:2]
    found = list(at_once.each_apart("search", ["a", "b", "c"], [], 2))
    assert {each["task"] for each in found} == {"a", "b", "c"}
    assert all(each["own"] in [[n] for n in usable] for each in found)


def test_transfer_counts_trials_with_and_without_a_history(run, monkeypatch):
    monkeypatch.setattr(comparisons, "HISTORY", ("C1", "1x1x1"))
    found = run("transfer", "--tasks", "C10", "--trials", "10", "--seeds", "1")
    assert [curve["way"] for curve in found["curves"]] == ["alone", "history"]
    row = found["summary"]["tasks"]["C10"]
    assert row["fewer"] == pytest.approx(row["alone"] / row["history"])
    assert "(tuning-curves-transfer.svg)" in shown(found)


def test_models_are_tuned_from_an_empty_database(run, monkeypatch, tmp_path):
    """A layer stands for each network, whose files are not made for tests."""
    monkeypatch.setattr(models, "default_folder", lambda: tmp_path)
    for name in ("resnet18", "mobilenet-v2"):
        layer = with_file(workload_named("C12"), tmp_path)
        Path(layer.path).rename(tmp_path / f"{name}.onnx")
    found = run("models", "resnet18", "mobilenet-v2", "--budget", "5")
    assert [row["model"] for row in found["models"]] == ["resnet18", "mobilenet-v2"]
    assert found["summary"] == {"geomean": 1.25, "least": 1.25}
    assert "| resnet18 | 2.00 | 1.60 | 1.250 |" in shown(found)
    target = with_machine_model(Target.host(), None)
    least = 2 * 512 * 49 * (512 * 9) / 6 / target.peak_gflops() / 1e6  # by filters of 6 × 6
    assert found["models"][0]["floor_ms"] > least


def test_joint_is_compared_with_loops_alone(run):
    found = run("joint", "D9", "--budget", "5")
    (row,) = found["items"]
    assert row["ms"] == pytest.approx({"draft": 1.0, "loops": 2.0, "joint": 3.0})
    assert row["ratio"] == pytest.approx(2 / 3)
    assert row["changes"] == []
    assert row["choices"]
    assert found["summary"]["layer"]["ratio"] == pytest.approx(2 / 3)
    assert "| D9 | nothing |  |  |" in shown(found)


def test_files_of_networks_are_asked_for_first(monkeypatch, tmp_path):
    monkeypatch.setattr(joint, "default_folder", lambda: tmp_path)
    with pytest.raises(SystemExit, match=r"benchmarks.models make resnet18$"):
        main(["joint", "D9", "resnet18"])


def test_rivals_have_the_same_time(run, monkeypatch):
    asked = []

    def searched(request, folder, seconds):
        asked.append((request["form"], folder.name, seconds))
        return Searched(Found(32, 2, 2e-3), seconds)

    monkeypatch.setattr(rivals, "_require_packages", lambda: None)
    monkeypatch.setattr(rivals, "run_search", searched)
    found = run("rivals", "--tasks", "C9,128x3072x768", "--budget", "7")
    assert asked == [("nhwc", "nhwc", 7), ("nchw", "nchw", 7), ("product", "product", 7)]
    layer, product = found["rows"]
    assert layer["forms"]["nchw"]["trials"] == 32
    assert layer["ratio"] == product["ratio"] == pytest.approx(2)
    assert product["tuners"]["tvm"]["gflops"] == pytest.approx(product["flops"] / 2e-3 / 1e9)
    assert "| C9 | " in shown(found)


def test_a_rival_whose_search_fails_has_no_figures(run, monkeypatch):
    def failed(_request, _folder, _seconds):
        raise SearchError("no such target")

    monkeypatch.setattr(rivals, "_require_packages", lambda: None)
    monkeypatch.setattr(rivals, "run_search", failed)
    (row,) = run("rivals", "--tasks", "C2", "--budget", "7")["rows"]
    assert row["forms"]["nhwc"] == {"trials": 0, "failures": 0, "problem": "no such target"}


def test_a_rival_that_is_not_installed_is_asked_for(monkeypatch):
    monkeypatch.setattr(rivals, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match="pip install --group rivals"):
        main(["rivals"])


def test_overhead_tells_rates(run):
    found = run("overhead", "--tasks", "C2", "--trials", "16")
    (row,) = found["tasks"]
    assert row["trials"] == 16
    assert row["ranked_per_second"] > 0
    assert "| C2 | 16 |" in shown(found)


def test_faults_compare_a_disturbed_search_with_a_calm_one(run, monkeypatch):
    code = (
        "import sys\nfrom tests.trials import trial\nfrom tilewright.records import Database\n"
        "Database(sys.argv[1]).add([trial(k) for k in range(3)])"
    )
    command = lambda path, _: [sys.executable, "-c", code, str(path)]  # noqa: E731
    monkeypatch.setattr(faults, "KILLS", 1)
    monkeypatch.setattr(faults, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(faults, "_command", command)
    found = run("faults", "--trials", "8")
    assert found["exit"] == 0
    assert found["outcomes"] == {"ok": 3}
    assert found["disturbed"] == pytest.approx(0.5)
    assert found["problems"] == []
    assert "killed 1 times" in shown(found)


@pytest.mark.parametrize("arguments", [["models"], ["models", "no-such"], ["joint", "C13"]])
def test_names_that_are_none_are_refused(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "usage: python -m benchmarks tuner" in capsys.readouterr().err


def test_there_is_a_page_for_every_subcommand():
    from scripts.tuner_page import TABLES, TITLES

    assert {*SUBCOMMANDS, "ways"} == set(TABLES) == set(TITLES)  # ways are searches, too


def test_one_engine_takes_part_twice(tmp_path):
    """With its draft, and with a database that has no record for the product yet."""
    Database(tmp_path / "records.sqlite").close()
    entrants = {
        "draft": with_database(None),
        "records": with_database(tmp_path / "records.sqlite"),
        "rival": Entrant("numpy"),
    }
    row = contest(entrants, Workload("matmul", "matmul", (3, 4, 5)), 1, tmp_path)
    assert {name: own.state for name, own in row.outcomes.items()} == dict.fromkeys(entrants, "ok")
    assert row.outcomes["draft"].variant == "draft"
    assert row.outcomes["records"].variant == "records"
    assert row.peers == {"rival"}


def test_layers_and_products_are_workloads():
    assert workload_named("C2").name == "conv2d 56x64x64x3x1x1 (C2)"
    assert workload_named("D1").op == "depthwise"
    assert workload_named("128x3072x768").flops == 2 * 128 * 3072 * 768
