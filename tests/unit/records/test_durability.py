"""Several processes, and processes that are killed: what was committed is there, and intact."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.expect import raises_code
from tests.trials import trial
from tilewright.options import child_environment
from tilewright.records import Database

ROOT = Path(__file__).parents[3]

WRITER = """
import sys
import tempfile
from tests.expect import raises_code
from tests.trials import trial
from tilewright.records import Database

path, first, count, batch = sys.argv[1], *map(int, sys.argv[2:])
with Database(path) as database:
    for start in range(first, first + count, batch):
        database.add([trial(k, detail="x" * 2000) for k in range(start, start + batch)])
        print(start + batch, flush=True)
"""


def writer(path, first, count, batch=1):
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(count), str(batch)]
    environment = child_environment(ROOT / "src", child_environment(ROOT))
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def numbers(path):
    with Database(path, readonly=True) as database:
        assert database.problems() == []
        records = list(database)
        assert len(records) == len(database)
    return [int(record.label.removeprefix("trial ")) for record in records]


def test_processes_write_at_once(tmp_path):
    path = tmp_path / "records.sqlite"
    writers = [writer(path, 1000 * k, 120) for k in range(3)]
    for process in writers:
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert sorted(numbers(path)) == [1000 * k + n for k in range(3) for n in range(120)]


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.05, 0.12, 0.3])
def test_a_killed_writer_loses_what_was_not_committed_only(tmp_path, seconds):
    """Batches are there as a whole or not at all, and all of those that were told of are."""
    path, batch = tmp_path / "records.sqlite", 20
    process = writer(path, 0, 200_000, batch)
    told = [int(process.stdout.readline())]
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()
    process.communicate(timeout=60)
    told += [int(line) for line in rest.splitlines() if line]
    found = numbers(path)
    assert found == list(range(len(found)))
    assert len(found) % batch == 0
    assert told[-1] <= len(found) <= told[-1] + batch
    with Database(path) as database:  # and the next one goes on
        database.add(trial(len(found)))
    assert len(numbers(path)) == len(found) + 1


def test_a_writer_may_be_killed_while_it_makes_the_file(tmp_path):
    for number in range(6):
        path = tmp_path / f"{number}.sqlite"
        process = writer(path, 0, 100)
        end = time.monotonic() + 60
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.0005)
        time.sleep(0.0005 * number)
        process.kill()
        process.communicate(timeout=60)
        found = numbers(path)
        assert found == list(range(len(found)))
        with Database(path) as database:
            database.add(trial(5000))


def test_both_sides_of_a_fork_go_on(tmp_path):
    with Database(tmp_path / "records.sqlite") as database:
        database.add(trial(0))
        child = os.fork()
        if child == 0:
            try:
                database.add(trial(1))
                os._exit(0)
            finally:
                os._exit(1)
        database.add(trial(2))
        assert os.waitpid(child, 0)[1] == 0
        database.add(trial(3))
        assert len(database) == 4


def test_a_folder_that_cannot_be_written_can_be_read():
    """SQLite wants files beside its own, even to read; without a writer it can do without."""
    folder = Path(tempfile.mkdtemp())  # that of pytest lets nobody else in
    path = folder / "records.sqlite"
    with Database(path) as database:
        database.add(trial())
    path.chmod(0o644)
    folder.chmod(0o555)
    try:
        child = os.fork()
        if child == 0:
            try:
                if os.geteuid() == 0:  # whom no permission stops
                    os.setuid(65534)
                with Database(path, readonly=True) as database:
                    assert list(database) == [trial()]
                with raises_code("U002"):
                    Database(path)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert list(folder.iterdir()) == [path]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
