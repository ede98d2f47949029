"""Something else in place of what the cache keeps: a model is compiled again, and is right."""

from __future__ import annotations

import os
import random
import resource
import signal
import threading

import numpy as np
import pytest

import tilewright as tw
from fuzz.hostile.places import PLACES, put_in_place
from tests.small import two_outputs
from tilewright.errors import TilewrightWarning
from tilewright.runtime import cache as module
from tilewright.runtime.cache import default_caches

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(two_outputs().SerializeToString())
    os.utime(path, (1e9, 1e9))
    return path


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch):
    monkeypatch.setattr(module, "_told", set())


def results(path, cache):
    found = [np.asarray(a) for a in tw.compile(path, cache=cache, threads=1).run({"x": X})]
    for thread in threading.enumerate():  # entries are written by threads of their own
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    return found


@pytest.mark.filterwarnings("ignore::tilewright.errors.TilewrightWarning")
@pytest.mark.parametrize("what", PLACES)
def test_whatever_lies_in_a_cache_a_model_is_compiled(what, path, tmp_path):
    folder = tmp_path / "cache"
    wanted = results(path, folder)
    for seed in range(4):
        put_in_place(what, random.Random(seed), folder)
        for entry in default_caches(folder).models.entries():  # kernels are asked for, too
            if what != "damaged" and seed % 2 and entry.path.is_file():
                entry.path.unlink()
        found = results(path, folder)
        if what != "damaged":  # nobody looks at weights unless asked to
            assert all(map(np.array_equal, found, wanted))


def test_entries_that_were_exchanged_are_not_found(path, tmp_path):
    """Each is right in itself, and belongs to something else."""
    folder = tmp_path / "cache"
    wanted = results(path, folder)
    other = two_outputs()
    other.graph.initializer[0].raw_data = bytes(len(other.graph.initializer[0].raw_data))
    (tmp_path / "other.onnx").write_bytes(other.SerializeToString())
    results(tmp_path / "other.onnx", folder)
    for cache in default_caches(folder):
        entries = [entry.path for entry in cache.entries()]
        contents = [entry.read_bytes() for entry in entries]
        for entry, content in zip(entries, contents[1:] + contents[:1], strict=True):
            entry.write_bytes(content)
    assert all(map(np.array_equal, results(path, folder), wanted))


def test_a_huge_entry_is_not_read(path, tmp_path):
    wanted = results(path, tmp_path / "cache")
    for cache in default_caches(tmp_path / "cache"):
        for entry in cache.entries():
            os.truncate(entry.path, 1 << 42)  # without a single block on the disk
    assert all(map(np.array_equal, results(path, tmp_path / "cache"), wanted))


def test_a_disk_that_takes_nothing_is_no_obstacle(path, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.warns(TilewrightWarning, match="cannot be kept"):
            found = results(path, tmp_path / "cache")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert all(map(np.array_equal, found, results(path, tmp_path / "cache")))


def test_a_link_in_place_of_a_lock_leads_nowhere(path, tmp_path):
    folder = tmp_path / "cache" / "models"
    folder.mkdir(parents=True, mode=0o700)
    for digits in range(256):
        (folder / f".turn-{digits:02x}").symlink_to(tmp_path / "made")
    results(path, tmp_path / "cache")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("name", [".", "models"])
def test_a_folder_that_others_can_write_is_not_used(path, tmp_path, name):
    """Neither what was kept before is taken, nor is anything put there."""
    folder = tmp_path / "cache"
    wanted = results(path, folder)
    (folder / name).chmod(0o777)
    for cache in default_caches(folder):
        for entry in cache.folder.glob("*.*"):
            entry.write_bytes(b"of a stranger")
    before = sorted(folder.rglob("*"))
    with pytest.warns(TilewrightWarning, match="can be written by others"):
        found = results(path, folder)
    assert all(map(np.array_equal, found, wanted))
    kept = {p.read_bytes() for p in (folder / "models").glob("*.tw")}
    assert kept == {b"of a stranger"}
    assert name != "." or sorted(folder.rglob("*")) == before


def test_a_cache_under_a_careless_umask_is_private(path, tmp_path):
    before = os.umask(0)
    try:
        results(path, tmp_path / "new" / "cache")
    finally:
        os.umask(before)
    made = [tmp_path / "new", *(p for p in (tmp_path / "new").rglob("*") if p.is_dir())]
    assert {p.stat().st_mode & 0o777 for p in made} == {0o700}
    assert len(default_caches(tmp_path / "new" / "cache").models.entries()) == 1
