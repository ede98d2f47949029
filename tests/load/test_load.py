"""Sessions under load: no wrong result, no leak, no hang. `--long` (`make load`) runs them in full.

Every kind of load is a process of its own (`tests/load/work.py`), whose memory and threads are then
its own, too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.confined import CONFINEMENTS, NotPossible, run_confined

REPOSITORY = Path(__file__).parents[2]


def command(kind: str, *numbers: int) -> list[str]:
    return [sys.executable, "-m", "tests.load.work", kind, *map(str, numbers)]


def run(kind: str, *numbers: int, timeout: int = 120) -> dict[str, Any]:
    """What a load reports; it ends by itself within the time."""
    result = subprocess.run(
        command(kind, *numbers),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    report: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    sys.stdout.write(f"{kind}: {report}\n")
    return report


LONG = pytest.mark.slow


@pytest.mark.parametrize("calls", [300, pytest.param(10_000, marks=LONG)])
def test_many_callers_of_one_session(calls):
    report = run("callers", 8, calls, timeout=1800)
    assert report["wrong"] == 0
    assert report["calls"] == 8 * calls
    assert report["frames"] <= 8  # one for each caller, and none for each call
    assert report["threads_more"] <= 0  # callers are gone, workers are shared
    assert report["grown_kib"] < 32 << 10


@pytest.mark.parametrize("how", CONFINEMENTS[1:], ids=lambda how: how.name.replace(" ", "-"))
def test_callers_where_less_may_be_used_than_the_machine_has(how):
    """More callers, and more threads of a team, than processors: all of them come to an end."""
    try:
        result = run_confined(how, command("callers", 4, 50), timeout=300)
    except NotPossible as problem:
        pytest.skip(str(problem))
    assert result.returncode == 0, result.stderr[-3000:]
    report = json.loads(result.stdout.splitlines()[-1])
    assert (report["wrong"], report["calls"]) == (0, 200)


@pytest.mark.parametrize("how", CONFINEMENTS[1:], ids=lambda how: how.name.replace(" ", "-"))
def test_sessions_use_no_more_threads_than_they_may(how):
    text = "import tilewright.runtime as r; print(r.default_threads())"
    try:
        result = run_confined(how, [sys.executable, "-c", text], timeout=120)
    except NotPossible as problem:
        pytest.skip(str(problem))
    assert result.stdout == "1\n", result.stderr[-3000:]


@pytest.mark.parametrize("count", [12, pytest.param(1000, marks=LONG)])
def test_sessions_come_and_go(count):
    report = run("sessions", count, timeout=1800)
    assert report["wrong"] == 0
    assert report["workers"] == 1  # one beside the caller, whatever the number of sessions
    assert report["threads"] <= 4
    if count >= 1000:  # fewer say nothing: caches of the compiler still fill
        assert report["bytes_per_session"] < 4096


@pytest.mark.parametrize("count", [12, pytest.param(200, marks=LONG)])
def test_many_models_at_once(count):
    report = run("models", count, timeout=1800)
    assert report["wrong"] == 0
    assert report["workers"] == 1
    assert report["threads"] <= 4
    assert report["kib_per_model"] < 4 << 10


@pytest.mark.parametrize("depth", [2, pytest.param(6, marks=LONG)])
def test_children_of_a_process_that_has_run(depth):
    assert run("forks", depth)["wrong"] == 0


def test_leaving_while_others_run():
    assert run("leaving", 3)["left"] == 3


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_ends_a_run(threads):
    with subprocess.Popen(
        command("endless", threads), cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGINT)
        try:
            said, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert json.loads(said)["rows"] == 300
