"""Measured numbers on disk: kept, found again, and never believed when damaged."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.unit.target.test_description import MEASURED
from tilewright.target import Target
from tilewright.target.measured import load, path_of, store

TARGET = Target.named("x86-64-v3")


def test_stored_numbers_are_found_again(tmp_path):
    assert load(TARGET, tmp_path) is None
    store(TARGET, MEASURED, tmp_path)
    assert load(TARGET, tmp_path) == MEASURED
    assert load(Target.named("x86-64-v2"), tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 1}', "\x00\xff"])
def test_damaged_files_count_as_missing(tmp_path, text):
    path = store(TARGET, MEASURED, tmp_path)
    path.write_bytes(text.encode("latin-1"))
    assert load(TARGET, tmp_path) is None
    store(TARGET, MEASURED, tmp_path)
    assert load(TARGET, tmp_path) == MEASURED


@pytest.mark.parametrize("change", [{"format": 99}, {"fingerprint": "other"}, {"measured": {}}])
def test_files_of_something_else_count_as_missing(tmp_path, change):
    path = store(TARGET, MEASURED, tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert load(TARGET, tmp_path) is None


def test_writers_do_not_disturb_each_other(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: store(TARGET, MEASURED, tmp_path), range(40)))
    assert load(TARGET, tmp_path) == MEASURED
    assert [p.name for p in path_of(TARGET, tmp_path).parent.iterdir()] == [
        path_of(TARGET, tmp_path).name
    ]


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(*_args, **_kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("tilewright.target.measured.json.dump", fail)
    with pytest.raises(OSError, match="disk full"):
        store(TARGET, MEASURED, tmp_path)
    assert list(path_of(TARGET, tmp_path).parent.iterdir()) == []
