"""The fuzzer of hostile files itself: every kind of mutant, the same ones each time, a report."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

import pytest

from fuzz.hostile.damage import DAMAGES
from fuzz.hostile.exchange import exchanging
from fuzz.hostile.run import main
from fuzz.hostile.seeds import SEEDS
from fuzz.hostile.structure import CHANGES, mutated
from fuzz.hostile.trial import Limits, attempt


@pytest.mark.parametrize("name", SEEDS)
def test_mutants_are_made_of_their_number(name):
    for number in range(20):
        first, second = (mutated(random.Random(number), SEEDS[name]()) for _ in range(2))
        assert first == second
        assert first[0] in {*CHANGES, *DAMAGES}


@pytest.mark.parametrize("kind", CHANGES)
def test_every_change_changes_something(kind):
    changed = 0
    for seed in range(40):
        model = SEEDS["control" if kind == "inside out" else "shapes"]()
        before = model.SerializeToString()
        try:
            CHANGES[kind](random.Random(seed), model)
        except (IndexError, TypeError, ValueError):
            continue
        changed += model.SerializeToString() != before
    assert changed >= 10


def test_a_few_mutants_of_everything(tmp_path):
    out = tmp_path / "report.json"
    command = [sys.executable, "-m", "fuzz", "hostile", "--count", "20", "--seed", "7"]
    command += ["--workers", "2", "--out", str(out), "--keep", str(tmp_path / "found")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(out.read_text())
    assert report["mutants"] == 20 == sum(report["kinds"].values()) == sum(report["ends"].values())
    assert report["seed"] == 7
    assert report["findings"] == []
    assert report["slowest"][0]["cpu_s"] <= 5.0


def test_wrong_usage_is_said():
    with pytest.raises(SystemExit) as caught:
        main(["--only", "nothing"])
    assert caught.value.code == 2


def _endless() -> tuple[str, str]:
    while True:
        pass


def _reading() -> tuple[str, str]:
    with open("/etc/hostname", "rb"):  # noqa: PTH123
        return "compiled", ""


def _hungry() -> tuple[str, str]:
    return "compiled", str(len(bytearray(b"x") * (300 << 20)))


def _crashing() -> tuple[str, str]:
    import ctypes

    ctypes.string_at(0)
    return "compiled", ""


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (_endless, "too slow"),
        (_hungry, "too large"),
        (_crashing, "crashed"),
        (lambda: 1 / 0, "wrong error"),
        (lambda: ("compiled", ""), "compiled"),
    ],
)
def test_what_must_not_happen_is_noticed(action, kind, tmp_path):
    limits = Limits(seconds=1.0) if action is _endless else Limits()
    assert attempt(action, [tmp_path], limits).kind == kind


def test_a_file_that_is_opened_elsewhere_is_noticed(tmp_path):
    outcome = attempt(_reading, [tmp_path], Limits())
    assert outcome.touched
    assert not outcome.is_good


def test_files_are_exchanged_and_come_back(tmp_path):
    file, outside = tmp_path / "w.bin", tmp_path / "secret"
    file.write_bytes(b"content")
    outside.write_bytes(b"secret")
    forms = set()
    with exchanging(file, outside):
        end = time.monotonic() + 10.0
        while len(forms) < 2 and time.monotonic() < end:
            forms.add(file.is_symlink())
    assert forms == {True, False}
    assert file.read_bytes() == b"content"
