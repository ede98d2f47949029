"""A cache that many processes share, that is full, damaged, of others, or in the wrong time."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from tests.expect import raises_code
from tests.unit.runtime.test_artefact import parts
from tilewright.errors import TilewrightWarning
from tilewright.options import CACHE_LIMIT, cache_limit
from tilewright.runtime import cache as module
from tilewright.runtime.artefact import read_artefact, write
from tilewright.runtime.cache import Cache, default_caches

KEYS = [f"{n:016x}" for n in range(20)]
DAY_S = 86400.0


def opened(file):
    return read_artefact(file, Path("entry"))


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "models", limit=1000)


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch):
    monkeypatch.setattr(module, "_told", set())


def bytes_of(content):
    return lambda file: file.write(content)


def bytes_in(file):
    return file.read()


def names(cache):
    return sorted(path.name for path in cache.folder.iterdir())


def test_what_is_put_is_found(cache):
    assert cache.get(KEYS[0]) is None
    path = cache.put(KEYS[0], bytes_of(b"content"))
    assert path == cache.get(KEYS[0])
    assert path.read_bytes() == b"content"
    assert cache.get(KEYS[1]) is None
    assert cache.size_bytes() == 7
    assert names(cache) == [f"{KEYS[0]}.tw"]


def test_folder_and_entries_are_private(cache):
    before = os.umask(0)
    try:
        path = cache.put(KEYS[0], bytes_of(b"content"))
    finally:
        os.umask(before)
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


def test_later_content_replaces_earlier(cache):
    for content in (b"one", b"two"):
        cache.put(KEYS[0], bytes_of(content))
    assert cache.get(KEYS[0]).read_bytes() == b"two"


@pytest.mark.parametrize("key", ["", "../../etc/passwd", "ABCDEF01", "1234567", "a" * 129, ".lock"])
def test_keys_are_hexadecimal(cache, key):
    with pytest.raises(ValueError, match="hexadecimal"):
        cache.get(key)
    with pytest.raises(ValueError, match="hexadecimal"):
        cache.put(key, bytes_of(b""))


def test_models_are_kept(cache):
    cache.limit = 1 << 20
    cache.put(KEYS[0], lambda file: write(file, parts()))
    assert cache.load(KEYS[0], opened).program_json == parts().program
    assert names(cache) == [f"{KEYS[0]}.tw"]


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_damaged_entries_are_misses_and_go(cache, damage):
    cache.limit = 1 << 20
    path = cache.put(KEYS[0], lambda file: write(file, parts()))
    path.write_bytes(path.read_bytes()[:-1] if damage is None else damage)
    assert cache.load(KEYS[0], opened) is None
    assert cache.get(KEYS[0]) is None


def test_entries_that_vanish_are_misses(cache):
    cache.put(KEYS[0], bytes_of(b"content"))

    def read(file):
        cache.get(KEYS[0]).unlink()
        return file.read()

    assert cache.load(KEYS[0], read) == b"content", "what is open stays"
    assert cache.load(KEYS[0], bytes_in) is None


def test_least_recently_used_go_first(cache):
    for n in range(4):
        path = cache.put(KEYS[n], bytes_of(bytes(240)))
        os.utime(path, (1000.0 + n, 1000.0 + n))
    cache.get(KEYS[0])
    cache.put(KEYS[4], bytes_of(bytes(240)))
    assert [entry.key for entry in cache.entries()] == [KEYS[n] for n in (2, 3, 0, 4)]
    cache.put(KEYS[5], bytes_of(bytes(900)))
    assert [entry.key for entry in cache.entries()] == [KEYS[5]]


def test_entry_beyond_the_limit_is_not_kept(cache):
    cache.put(KEYS[0], bytes_of(bytes(900)))
    assert cache.put(KEYS[1], bytes_of(bytes(1001))) is None
    assert names(cache) == [f"{KEYS[0]}.tw"]


def test_limit_of_zero_keeps_and_finds_nothing(cache):
    cache.put(KEYS[0], bytes_of(b"content"))
    off = Cache(cache.folder, limit=0)
    assert off.get(KEYS[0]) is None
    assert off.put(KEYS[1], bytes_of(b"content")) is None
    assert names(cache) == [f"{KEYS[0]}.tw"]


def test_prune_and_clear_count(cache):
    for n in range(4):
        cache.put(KEYS[n], bytes_of(bytes(200)))
    assert cache.prune() == 0
    assert Cache(cache.folder, limit=400).prune() == 2
    assert cache.clear() == 2
    assert cache.entries() == []
    assert Cache(cache.folder / "none", 10).clear() == 0


def test_clock_that_went_back_does_not_keep_entries_forever(cache):
    """Entries from the future are the first to go, and a new one is never sacrificed."""
    for n, age in enumerate([-3650 * DAY_S, -DAY_S, 5.0, DAY_S]):
        path = cache.put(KEYS[n], bytes_of(bytes(240)))
        os.utime(path, (time.time() - age,) * 2)
    order = [entry.key for entry in cache.entries()]
    assert order == [KEYS[n] for n in (1, 0, 3, 2)]
    cache.put(KEYS[4], bytes_of(bytes(500)))
    assert [entry.key for entry in cache.entries()] == [KEYS[n] for n in (3, 2, 4)]


def test_new_entry_stays_when_the_clock_says_1970(cache, monkeypatch):
    cache.put(KEYS[0], bytes_of(bytes(600)))
    monkeypatch.setattr(time, "time", lambda: 100.0)

    def write(file):
        file.write(bytes(600))
        file.flush()
        os.utime(file.fileno(), (100.0, 100.0))

    cache.put(KEYS[1], write)
    assert [entry.key for entry in cache.entries()] == [KEYS[1]]


def test_other_files_in_the_folder_are_left_alone(cache):
    cache.put(KEYS[0], bytes_of(b"content"))
    others = ["notes.txt", "openedME.tw", ".hidden", "0123.tw", f"{KEYS[1]}.o"]
    for name in others:
        (cache.folder / name).write_bytes(bytes(5000))
    assert cache.prune() == 0
    assert cache.clear() == 1
    assert names(cache) == sorted(others)


def test_failing_writer_leaves_nothing(cache):
    def write(file):
        file.write(b"half")
        raise KeyError("a bug of the writer")

    with pytest.raises(KeyError):
        cache.put(KEYS[0], write)
    assert names(cache) == []


CONTENT = bytes_of(b"content")


def refuses(cache, reason, writer=CONTENT):
    """Nothing is kept, and of two failures one is told."""
    with pytest.warns(TilewrightWarning, match=reason) as told:
        assert cache.put(KEYS[0], writer) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.put(KEYS[0], writer) is None
        assert cache.get(KEYS[0]) is None
        assert cache.entries() == []
        assert cache.prune() == cache.clear() == cache.size_bytes() == 0
    return len(told) == 1


def test_full_disk_is_a_miss(cache):
    def write(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert refuses(cache, "No space left", write)
    assert names(cache) == []


def test_full_disk_of_the_system_is_a_miss(cache):
    """The system itself refuses to make the file longer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        assert refuses(cache, "too large", bytes_of(bytes(500)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names(cache) == []


def test_tiny_disk_is_a_miss(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", str(disk)]
    try:
        subprocess.run(mount, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user cannot mount a disk")
    try:
        cache = Cache(disk / "models", 1 << 20)
        assert cache.put(KEYS[1], bytes_of(bytes(20_000)))
        with pytest.warns(TilewrightWarning, match="No space left"):
            assert cache.put(KEYS[0], bytes_of(bytes(200_000))) is None
        assert cache.get(KEYS[1]).stat().st_size == 20_000
        assert names(cache) == [f"{KEYS[1]}.tw"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_file_in_place_of_the_folder_is_a_miss(tmp_path):
    (tmp_path / "models").write_text("a file")
    assert refuses(Cache(tmp_path / "models", 1000), "File exists|Not a directory")
    assert refuses(Cache(tmp_path / "models" / "below", 1000), "Not a directory")


def test_folder_that_others_can_write_is_a_miss(cache):
    cache.put(KEYS[0], bytes_of(b"content"))
    cache.folder.chmod(0o770)
    assert refuses(cache, "written by others")


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")
def test_folder_of_somebody_else_is_a_miss(cache):
    cache.put(KEYS[0], bytes_of(b"content"))
    os.chown(cache.folder, 12345, 12345)
    assert refuses(cache, "written by others")


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")
def test_entry_of_somebody_else_is_a_miss(cache):
    os.chown(cache.put(KEYS[0], bytes_of(b"content")), 12345, 12345)
    assert cache.get(KEYS[0]) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may do anything")
def test_unreadable_folder_is_a_miss(cache):
    cache.put(KEYS[0], bytes_of(b"content"))
    cache.folder.chmod(0)
    assert refuses(cache, "Permission denied")
    cache.folder.chmod(0o700)


def test_unreadable_folder_is_a_miss_whoever_asks(cache, monkeypatch):
    cache.put(KEYS[0], bytes_of(b"content"))

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(module, "open_folder", refuse)
    assert refuses(cache, "Permission denied")


@pytest.mark.parametrize("kind", ["link", "folder", "loose"])
def test_entry_that_is_no_file_of_ours_is_a_miss(cache, kind, tmp_path):
    path = cache.put(KEYS[0], bytes_of(b"content"))
    if kind == "loose":
        path.chmod(0o666)
    else:
        path.unlink()
        (tmp_path / "other").write_bytes(b"content")
        path.mkdir(0o700) if kind == "folder" else path.symlink_to(tmp_path / "other")
    assert cache.get(KEYS[0]) is None


def test_folder_may_be_a_link_to_another_disk(cache, tmp_path):
    (tmp_path / "disk").mkdir(0o700)
    cache.folder.symlink_to(tmp_path / "disk")
    cache.put(KEYS[0], bytes_of(b"content"))
    assert cache.get(KEYS[0]).read_bytes() == b"content"


@pytest.fixture
def inner(tmp_path):
    """A cache as users have them: in a folder of the one that they named."""
    return Cache(tmp_path / "root" / "models", limit=1000, root=tmp_path / "root")


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777, 0o1777])
def test_folder_around_that_others_can_write_is_a_miss(inner, mode):
    inner.put(KEYS[0], bytes_of(b"content"))
    inner.root.chmod(mode)
    assert refuses(inner, f"{re.escape(str(inner.root))} can be written by others")
    inner.root.chmod(0o755)
    assert inner.load(KEYS[0], bytes_in) == b"content"


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")
def test_folder_around_of_somebody_else_is_a_miss(inner):
    inner.put(KEYS[0], bytes_of(b"content"))
    os.chown(inner.root, 12345, 12345)
    assert refuses(inner, "written by others")


def test_nothing_is_made_in_a_folder_that_others_can_write(inner):
    inner.root.mkdir()
    inner.root.chmod(0o777)
    assert refuses(inner, "written by others")
    with inner.turn(KEYS[0]):
        assert list(inner.root.iterdir()) == []


def test_caches_of_one_folder_tell_of_it_once(tmp_path):
    tmp_path.chmod(0o777)
    models, *others = default_caches(tmp_path)
    with pytest.warns(TilewrightWarning, match="written by others"):
        models.put(KEYS[0], CONTENT)
    assert all(cache.put(KEYS[0], CONTENT) is None for cache in others)


@pytest.mark.parametrize("umask", [0, 0o002, 0o022])
def test_all_folders_that_are_made_are_private(tmp_path, umask):
    root = tmp_path / "new" / "below" / "root"
    before = os.umask(umask)
    try:
        path = Cache(root / "models", 1000, root=root).put(KEYS[0], bytes_of(b"content"))
    finally:
        os.umask(before)
    for made in (root / "models", root, root.parent, root.parent.parent):
        assert made.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


def test_folder_around_may_be_a_link_and_the_inner_one_may_not(inner, tmp_path):
    (tmp_path / "disk").mkdir(0o700)
    inner.root.symlink_to(tmp_path / "disk")
    assert inner.put(KEYS[0], bytes_of(b"content"))
    assert inner.load(KEYS[0], bytes_in) == b"content"
    (tmp_path / "disk" / "models").rename(tmp_path / "elsewhere")
    inner.folder.symlink_to(tmp_path / "elsewhere")
    assert refuses(inner, "Not a directory|symbolic links")


def exchange(cache, content):
    """Another folder in the place of one, with another entry of the first key."""
    cache.folder.rename(cache.folder.with_name("before"))
    cache.folder.mkdir(0o700)
    (cache.folder / f"{KEYS[0]}.tw").write_bytes(content)
    (cache.folder / f"{KEYS[0]}.tw").chmod(0o600)


def test_folder_that_is_exchanged_while_an_entry_is_read(inner):
    inner.put(KEYS[0], bytes_of(b"content"))

    def read(file):
        exchange(inner, b"other")
        return file.read()

    assert inner.load(KEYS[0], read) == b"content"


def test_folder_that_is_exchanged_while_damage_is_found(inner):
    inner.put(KEYS[0], bytes_of(b"content"))

    def read(_):
        exchange(inner, b"other")
        raise ValueError("damaged")

    assert inner.load(KEYS[0], read) is None
    assert names(inner) == [f"{KEYS[0]}.tw"]
    assert list(inner.folder.with_name("before").iterdir()) == []


def test_folder_that_is_exchanged_while_an_entry_is_written(inner):
    inner.put(KEYS[1], bytes_of(b"content"))

    def write(file):
        exchange(inner, b"other")
        file.write(b"content")

    inner.put(KEYS[0], write)
    assert inner.get(KEYS[0]).read_bytes() == b"other"
    assert (inner.folder.with_name("before") / f"{KEYS[0]}.tw").read_bytes() == b"content"


def test_pipe_in_place_of_an_entry_keeps_nobody_waiting(inner):
    path = inner.put(KEYS[0], bytes_of(b"content"))
    path.unlink()
    os.mkfifo(path, 0o600)
    assert inner.load(KEYS[0], bytes_in) is None


WRITER = """\
import sys, time
from pathlib import Path
from tilewright.runtime.cache import Cache
folder, ready = Path(sys.argv[1]), Path(sys.argv[2])
def write(file):
    file.write(b"half of it")
    ready.touch()
    time.sleep(600)
Cache(folder, 1 << 20).put(sys.argv[3], write)
"""


def start(program, *arguments):
    return subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)])


def wait_for(path):
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, "the other process does not get there"
        time.sleep(0.01)


def test_writer_killed_at_work_leaves_nothing_that_counts(cache, tmp_path):
    ready = tmp_path / "ready"
    process = start(WRITER, cache.folder, ready, KEYS[0])
    try:
        wait_for(ready)
        old = time.time() - 10
        for path in cache.folder.iterdir():
            os.utime(path, (old, old))
        assert cache.get(KEYS[0]) is None
        cache.prune()
        assert len(names(cache)) == 2, "a living writer keeps its files"
        assert cache.entries() == []
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert cache.get(KEYS[0]) is None
    assert len(names(cache)) == 2
    for path in cache.folder.iterdir():
        os.utime(path, (old, old))
    cache.put(KEYS[1], bytes_of(b"content"))
    assert names(cache) == [f"{KEYS[1]}.tw"]


def test_files_that_lost_their_lock_go_with_time(cache):
    cache.put(KEYS[0], bytes_of(b"content"))
    for name, age in [("old", 7200.0), ("new", 10.0)]:
        path = cache.folder / f".{name}.tmp"
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)
    cache.prune()
    assert names(cache) == [".new.tmp", f"{KEYS[0]}.tw"]


USER = """\
import random, sys
from pathlib import Path
from tilewright.runtime.cache import Cache
cache, seed = Cache(Path(sys.argv[1]), 40_000), int(sys.argv[2])
random.seed(seed)
def content(n):
    return bytes([n]) * (1000 + 997 * n)
for _ in range(60):
    n = random.randrange(16)
    key = f"{n:016x}"
    found = cache.load(key, lambda file: file.read())
    assert found is None or found == content(n), (n, len(found))
    if found is None or random.random() < 0.2:
        cache.put(key, lambda file: file.write(content(n)))
    if random.random() < 0.05:
        cache.clear() if random.random() < 0.3 else cache.prune()
"""


def test_sixteen_processes_share_a_folder(cache):
    """All entries that are found are whole, and the folder stays within its limit."""
    processes = [start(USER, cache.folder, seed) for seed in range(16)]
    assert [process.wait(timeout=120) for process in processes] == [0] * 16
    cache.limit = 40_000
    cache.prune()
    assert cache.size_bytes() <= cache.limit
    assert all(name.endswith(".tw") for name in names(cache))


TAKER = """\
import sys, time
from pathlib import Path
from tilewright.runtime.cache import Cache
cache, made = Cache(Path(sys.argv[1]), 1000), Path(sys.argv[2])
with cache.turn(sys.argv[3]):
    if cache.get(sys.argv[3]) is None:
        with made.open("a") as file:
            file.write("made\\n")
        time.sleep(0.2)
        cache.put(sys.argv[3], lambda file: file.write(b"content"))
"""


def test_one_of_many_processes_makes_an_entry(cache, tmp_path):
    made = tmp_path / "made"
    processes = [start(TAKER, cache.folder, made, KEYS[0]) for _ in range(6)]
    assert [process.wait(timeout=120) for process in processes] == [0] * 6
    assert made.read_text() == "made\n"


def test_turns_do_not_last_forever(cache):
    order = []
    with cache.turn(KEYS[0]):
        waiting = threading.Thread(target=lambda: _take(cache, order, patience_s=0.05))
        waiting.start()
        waiting.join()
        order.append("first")
    assert order == ["impatient", "first"]


def _take(cache, order, patience_s):
    with cache.turn(KEYS[0], patience_s):
        order.append("impatient")


def test_turn_is_taken_where_nothing_can_be_locked(tmp_path):
    (tmp_path / "models").write_text("a file")
    with Cache(tmp_path / "models", 1000).turn(KEYS[0]):
        assert (tmp_path / "models").read_text() == "a file"


@pytest.mark.parametrize(
    ("value", "limit"),
    [("0", 0), ("1000", 1000), ("2G", 2 << 30), (" 512MiB ", 512 << 20), ("3KB", 3072)],
)
def test_limit_of_the_cache(value, limit):
    assert cache_limit({"TILEWRIGHT_CACHE_SIZE": value}) == limit
    assert cache_limit({}) == CACHE_LIMIT == 2 << 30


@pytest.mark.parametrize("value", ["", "-1", "much", "1.5G", "2g", "G", "٣"])
def test_limit_of_the_cache_rejects(value):
    with raises_code("O001", facts={"variable": "TILEWRIGHT_CACHE_SIZE", "found": repr(value)}):
        cache_limit({"TILEWRIGHT_CACHE_SIZE": value})


@pytest.mark.parametrize("value", ["0", "1000", "100M", "2G"])
def test_all_caches_together_keep_the_limit(value, tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILEWRIGHT_CACHE_SIZE", value)
    caches = default_caches()
    assert sum(cache.limit for cache in caches) == cache_limit()
    assert {cache.folder.parent for cache in caches} == {tmp_path}
    assert default_caches(tmp_path / "own").models.folder.parent == tmp_path / "own"
    assert len({(cache.folder, cache.suffix) for cache in caches}) == len(caches)
