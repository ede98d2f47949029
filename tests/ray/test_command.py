"""`tilewright tune --runner ray`, from its start to its end or to Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.unit.tuning.measure.jobs import product_model
from tilewright.records import Database

pytestmark = pytest.mark.usefixtures("ray")

END_S = 30
"""Ray itself needs a few seconds for an end, and minutes where it is not told of one."""


@pytest.fixture
def tuner(tmp_path):
    """Starts the command in a process group of its own, as a shell does."""
    onnx.save(product_model(), tmp_path / "net.onnx")
    started: list[subprocess.Popen[str]] = []

    def start(*more: str) -> subprocess.Popen[str]:
        words = ["tune", "net.onnx", "--runner", "ray", "--threads", "1", "--json"]
        words += ["--database", "records.sqlite", *more]
        variables = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "tilewright", *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=tmp_path,
                env=variables,
                start_new_session=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _events(tuner: subprocess.Popen[str], trials: int) -> list[dict[str, Any]]:
    """What it says, up to so many trials."""
    assert tuner.stdout is not None
    found: list[dict[str, Any]] = []
    while sum(event["event"] == "trial" for event in found) < trials:
        line = tuner.stdout.readline()
        assert line, tuner.stderr and tuner.stderr.read()
        found.append(json.loads(line))
    return found


def _ended(tuner: subprocess.Popen[str]) -> tuple[list[dict[str, Any]], str]:
    """The rest of what it says, at its end."""
    out, err = tuner.communicate(timeout=END_S)
    return [json.loads(line) for line in out.splitlines()], err


def _trials_in(path: Path) -> int:
    """Records of trials in an intact file."""
    with Database(path, readonly=True) as database:
        assert database.problems() == []
        records = [row.record() for row in database.rows()]
    assert not any("worker was lost" in record.detail for record in records)
    return sum(bool(record.about) for record in records)


def _running(folder: Path, but: int) -> dict[int, str]:
    """Processes that were started for a folder, and what they run: they inherit its name."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (
                process.name != str(but)
                and os.fsencode(folder) in (process / "environ").read_bytes()
            ):
                found[int(process.name)] = (process / "cmdline").read_text(encoding="utf-8")
        except OSError:  # it has ended meanwhile, or is not ours
            continue
    return found


def _await_end(folder: Path) -> None:
    deadline = time.monotonic() + END_S
    while left := _running(folder, os.getpid()):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_a_search_ends_with_its_cluster(tuner, tmp_path):
    process = tuner("--trials", "12")
    seen = _events(process, 4)
    assert len(_running(tmp_path, process.pid)) > 3  # of Ray, and those that build and measure
    rest, err = _ended(process)
    assert process.returncode == 0, err
    report = rest[-1]
    assert (seen[0]["event"], report["event"]) == ("begin", "report")
    assert report["is_interrupted"] is False
    assert _trials_in(tmp_path / "records.sqlite") == report["trials"] == 12
    _await_end(tmp_path)


def test_an_interrupt_keeps_what_was_measured_and_leaves_nothing_running(tuner, tmp_path):
    process = tuner("--budget", "10m")
    _events(process, 6)
    assert len(_running(tmp_path, process.pid)) > 3
    os.killpg(process.pid, signal.SIGINT)  # all of the terminal's foreground, as Ctrl-C does
    rest, err = _ended(process)
    assert process.returncode == 130, err
    report = rest[-1]
    assert report["is_interrupted"] is True
    assert report["again"].startswith("tilewright tune net.onnx")
    assert _trials_in(tmp_path / "records.sqlite") == report["trials"] >= 6
    _await_end(tmp_path)


def test_an_interrupt_while_the_cluster_starts_leaves_nothing_running(tuner, tmp_path):
    process = tuner("--budget", "10m")
    while not any("gcs_server" in command for command in _running(tmp_path, process.pid).values()):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    rest, err = _ended(process)
    assert (process.returncode, rest) == (130, []), err
    assert err.splitlines()[-1] == "tilewright: interrupted"
    _await_end(tmp_path)
