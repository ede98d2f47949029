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

from tests.ray.test_listening import family
from tests.unit.tuning.measure.jobs import product_model
from tilewright.records import Database

pytestmark = pytest.mark.usefixtures("ray")

END_S = 60


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


def _begins(pids: list[int]) -> dict[int, str]:
    """When processes began, which tells them from later ones with their numbers."""
    found = {}
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except OSError:
            continue
        state, *rest = text.rpartition(")")[2].split()
        if state != "Z":
            found[pid] = rest[18]
    return found


def _await_end_of(processes: dict[int, str]) -> None:
    deadline = time.monotonic() + END_S
    while left := processes.items() & _begins(list(processes)).items():
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_a_search_ends_with_its_cluster(tuner, tmp_path):
    process = tuner("--trials", "12")
    seen = _events(process, 4)
    cluster = _begins([pid for pid in family(process.pid) if pid != process.pid])
    assert len(cluster) > 3  # of Ray, and those that build and measure
    rest, err = _ended(process)
    assert process.returncode == 0, err
    report = rest[-1]
    assert (seen[0]["event"], report["event"]) == ("begin", "report")
    assert report["is_interrupted"] is False
    assert _trials_in(tmp_path / "records.sqlite") == report["trials"] == 12
    _await_end_of(cluster)


def test_an_interrupt_keeps_what_was_measured_and_leaves_nothing_running(tuner, tmp_path):
    process = tuner("--budget", "10m")
    _events(process, 6)
    cluster = _begins([pid for pid in family(process.pid) if pid != process.pid])
    assert len(cluster) > 3
    os.killpg(process.pid, signal.SIGINT)  # all of the terminal's foreground, as Ctrl-C does
    rest, err = _ended(process)
    assert process.returncode == 130, err
    report = rest[-1]
    assert report["is_interrupted"] is True
    assert report["again"].startswith("tilewright tune net.onnx")
    assert _trials_in(tmp_path / "records.sqlite") == report["trials"] >= 6
    _await_end_of(cluster)
