"""`tilewright tune` with a tuner that only tells: arguments, summary, JSON, Ctrl-C."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import onnx
import pytest

from tests.small import two_outputs
from tests.tuning import CONV, STATE, events, many
from tilewright.cli import main
from tilewright.tuning.events import State


@dataclass
class FakeTuner:
    """Tells a few events, and what it was asked."""

    state: State = STATE
    interrupted: bool = False
    raised_after: int | None = None

    def tune(self, model, *, on_event, **options):
        self.model, self.options = model, options
        for number, event in enumerate(events(self.state)):
            if number == self.raised_after:
                raise KeyboardInterrupt
            on_event(event)
        return SimpleNamespace(
            state=self.state, database=options["database"], is_interrupted=self.interrupted
        )


@pytest.fixture
def tuner(monkeypatch):
    fake = FakeTuner()
    modules = {
        "api": {"tune": fake.tune},
    }
    for name, content in modules.items():
        module = ModuleType(f"tilewright.tuning.{name}")
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return fake


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_DATABASE", str(tmp_path / "own.sqlite"))
    monkeypatch.setenv("COLUMNS", "100")
    onnx.save(two_outputs(), "net.onnx")


def test_it_tunes_for_ten_minutes_into_the_usual_database(tuner, tmp_path, capsys):
    assert main(["tune", "net.onnx"]) == 0
    assert tuner.model == Path("net.onnx")
    assert tuner.options == {
        "trials": None,
        "budget_s": 600.0,
        "database": tmp_path / "own.sqlite",
        "runner": "local",
        "threads": None,
        "accuracy": "default",
        "joint": True,
        "strategy": "evolution",
        "seed": 0,
        "dims": None,
        "against": [],
    }
    assert capsys.readouterr().out.splitlines() == [
        "net.onnx: 2 ms → 1.6 ms, 1.25 times as fast (measured), 1.5 ms predicted",
        "  52 trials in 3 min 12 s, 3 failed: 1 build, 1 crash",
        "  1 kernel of 3 became faster:",
        "    conv1 relu1  60.0%  800 µs → 500 µs  1.60×",
        "  onnxruntime: 2.4 ms, 1.50 times as long as tilewright",
        f"  records: {tmp_path / 'own.sqlite'}",
        '  to use them: tw.compile("net.onnx")',
    ]


def test_options_reach_the_tuner(tuner, capsys):
    options = "--budget 90s --trials 7 --threads 1 --accuracy strict --database my.sqlite --seed 3"
    more = "--strategy random --loops-only --size rows=4 --against onnxruntime,reference --quiet"
    assert main(["tune", "net.onnx", *options.split(), *more.split()]) == 0
    given = {name: value for name, value in tuner.options.items() if name != "runner"}
    assert given == {
        "trials": 7,
        "budget_s": 90.0,
        "database": Path("my.sqlite"),
        "threads": 1,
        "accuracy": "strict",
        "joint": False,
        "strategy": "random",
        "seed": 3,
        "dims": {"rows": 4},
        "against": ["onnxruntime", "reference"],
    }
    said = capsys.readouterr()
    assert said.err == ""
    use = 'threads=1, accuracy="strict", dims={"rows": 4}, database="my.sqlite"'
    assert f'to use them: tw.compile("net.onnx", {use})' in said.out


def test_trials_alone_have_no_end_in_time(tuner):
    assert main(["tune", "net.onnx", "--trials", "7"]) == 0
    assert tuner.options["budget_s"] is None


def test_a_runner_is_given_by_name(tuner):
    assert main(["tune", "net.onnx", "--runner", "ray:127.0.0.1:6379"]) == 0
    assert tuner.options["runner"] == "ray:127.0.0.1:6379"


@pytest.mark.parametrize("wrong", ["--trials 0", "--runner moon", "--runner ray:", "--strategy x"])
def test_wrong_arguments(wrong, capsys):
    with pytest.raises(SystemExit) as left:
        main(["tune", "net.onnx", *wrong.split()])
    assert left.value.code == 2
    assert wrong.split()[0] in capsys.readouterr().err


def test_no_database_is_nowhere_to_remember(tuner, monkeypatch, capsys):
    monkeypatch.setenv("TILEWRIGHT_DATABASE", "none")
    assert main(["tune", "net.onnx"]) == 1
    assert "K070" in capsys.readouterr().err
    assert not hasattr(tuner, "model")


def test_unknown_engines_are_told_of_before_anything_is_measured(tuner, capsys):
    assert main(["tune", "net.onnx", "--against", "onnxruntine"]) == 1
    assert "is `onnxruntime` meant?" in capsys.readouterr().err
    assert not hasattr(tuner, "model")


@pytest.mark.parametrize("raised_after", [None, 4])
def test_interrupted_it_says_what_stands_and_how_to_go_on(tuner, raised_after, capsys):
    tuner.interrupted, tuner.raised_after = True, raised_after
    command = "tilewright tune net.onnx --budget 90s --database 'my file' --size rows=4"
    arguments = ["tune", "net.onnx", "--budget", "90s", "--database", "my file", "--size", "rows=4"]
    assert main(arguments) == 130
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "interrupted: everything that was measured is saved"
    assert lines[1].startswith("net.onnx: 2 ms → 1.6 ms")
    assert lines[-1] == f"  to go on: {command}"


def test_interrupted_before_it_began(tuner, capsys):
    tuner.raised_after = 0
    assert main(["tune", "net.onnx"]) == 130
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "tilewright: interrupted\n"


def test_without_ray_it_says_what_to_install(monkeypatch, capsys):
    for variable in ("RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(variable, "0")  # what a process has, Ray's defaults leave as it is
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["tune", "net.onnx", "--runner", "ray"]) == 1
    said = capsys.readouterr().err
    assert "U050: measuring on Ray needs Ray, which is not installed\n" in said
    assert "pip install 'tilewright[ray]'\n" in said


@pytest.mark.usefixtures("tuner")
def test_events_and_the_report_for_programs(capsys):
    assert main(["tune", "net.onnx", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["event"] for row in rows][::6] == ["begin", "report"]
    report = rows[-1]
    assert report["failures"] == {"build": 1, "crash": 1}
    assert report["gained"][0]["label"] == "conv1 relu1"
    assert report["is_interrupted"] is False
    assert report["use"] == 'tw.compile("net.onnx")'


@pytest.mark.usefixtures("tuner")
def test_errors_are_lines_where_all_else_is(capsys):
    assert main(["tune", "missing.onnx", "--json"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["error"]["code"] == "K040"


def test_the_draft_may_be_the_best_there_is(tuner, capsys):
    tuner.state = replace(STATE, tasks=(replace(CONV, best_ns=CONV.drafted_ns),), failures=0)
    assert main(["tune", "net.onnx"]) == 0
    assert "no kernel became faster than its draft" in capsys.readouterr().out


def test_of_many_gains_the_greatest_are_named(tuner, capsys):
    tuner.state = many(30)
    assert main(["tune", "net.onnx"]) == 0
    text = capsys.readouterr().out
    assert "30 kernels of 30 became faster:" in text
    assert "    and 25 more" in text
    assert "    task 4 " in text
    assert "    task 5 " not in text


def test_a_model_that_became_slower_says_so(tuner, capsys):
    tuner.state = replace(STATE, now_ms=2.2)
    assert main(["tune", "net.onnx"]) == 0
    text = capsys.readouterr().out
    assert "2 ms → 2.2 ms, 0.91 times as fast (measured)" in text
    assert "the model as a whole was slower than its draft" in text
    tuner.state = replace(STATE, now_ms=2.01)
    assert main(["tune", "net.onnx"]) == 0
    assert "slower" not in capsys.readouterr().out
