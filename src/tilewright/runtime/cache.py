"""A folder of files that can be made again: compiled models and kernels, found by key.

A cache only ever saves time. Whatever is wrong with it (a full disk, a damaged or vanished entry, a
folder of somebody else) is a miss, and a user hears of it once at most. Several processes may use,
fill and prune one folder at the same time, and be killed at any moment:

* an entry appears in one step, complete and on the disk, under a name that only it has;
* a file that is being written has a lock file which its writer holds: the system frees the lock of
  a dead writer, however it died, and whoever prunes next removes what it left;
* code is run from here, so that folder and entries must belong to us and be writable by us alone.

The least recently used entries go first when the folder outgrows its limit; being found is a use.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from tilewright import options
from tilewright.errors import ArtefactError, TilewrightWarning

__all__ = ["Cache", "Caches", "Entry", "default_caches"]

T = TypeVar("T")

_KEY: Final = re.compile(r"[0-9a-f]{8,128}")
_UNFINISHED: Final = re.compile(r"\..*\.(?:tmp|lock)")
_PATIENCE_S: Final = 3600.0
"""Where files cannot be locked, a file that is being written for longer has lost its writer."""
_SKEW_S: Final = 60.0
"""Entries from later than this in the future tell nothing about when they were used."""

_SILENT: Final = (errno.ENOENT, errno.ESTALE)
_told: set[Path] = set()


@dataclass(frozen=True, slots=True)
class Entry:
    """One file; `used` is when it was made or found last, in seconds since 1970."""

    key: str
    path: Path
    size_bytes: int
    used: float


class Cache:
    """Entries of one kind in a folder, which need not exist; `limit` is in bytes, 0 for none."""

    def __init__(self, folder: Path, limit: int, suffix: str = ".tw") -> None:
        self.folder, self.limit, self.suffix = folder, limit, suffix

    def get(self, key: str) -> Path | None:
        """The file of a key. It may vanish at any time: see `load`."""
        path = self._path(key)
        try:
            if not self.limit or not _is_our_folder(self.folder):
                return None
            if not _is_our_file(path, self.limit):
                return None
            os.utime(path)
        except OSError:
            return None
        return path

    def load(self, key: str, reader: Callable[[Path], T]) -> T | None:
        """What `reader` makes of the file of a key; None if there is none that can be read.

        A reader says by ArtefactError or ValueError that a file is damaged, which is then removed.
        """
        path = self.get(key)
        if path is None:
            return None
        try:
            return reader(path)
        except (OSError, MemoryError):
            return None
        except (ArtefactError, ValueError):
            _remove(path)
            return None

    def put(
        self, key: str, writer: Callable[[Path], object], *, is_final: bool = True
    ) -> Path | None:
        """Keep a file: `writer` makes it at a path. None if it could not be kept.

        One of many small files, of which the reader notices any damage, is not final: it need not
        be on the disk at once, and whoever puts them prunes afterwards.
        """
        path = self._path(key)
        if not self.limit:
            return None
        try:
            self._make_folder()
            with _unfinished(self.folder, key) as draft:
                writer(draft)
                if _seal(draft, is_final=is_final) > self.limit:
                    return None
                draft.replace(path)
            if is_final:
                self.prune(keep=path)
        except OSError as problem:
            self._tell(problem)
            return None
        return path

    @contextlib.contextmanager
    def turn(self, key: str, patience_s: float = 120.0) -> Iterator[None]:
        """Wait while another process or thread makes the same entry; then it may be there.

        The lock of a dead process is free at once. Whoever has waited for `patience_s`, or cannot
        lock anything here, goes on all the same: work done twice is better than none.
        """
        name = f".turn-{self._path(key).name[:2]}"  # few files, which are never removed
        descriptor = -1
        with contextlib.suppress(OSError):
            self._make_folder()
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self.folder / name, flags, 0o600)
            _lock_within(descriptor, patience_s)
        try:
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def entries(self) -> list[Entry]:
        """All entries, the least recently used one first."""
        found = [entry for name in self._names() if (entry := self._entry(name)) is not None]
        horizon = time.time() + _SKEW_S
        return sorted(found, key=lambda entry: (entry.used <= horizon, entry.used, entry.key))

    def size_bytes(self) -> int:
        """Bytes of all entries."""
        return sum(entry.size_bytes for entry in self.entries())

    def prune(self, keep: Path | None = None) -> int:
        """Remove what dead writers left, and old entries beyond the limit; how many entries."""
        self._sweep()
        entries = self.entries()
        excess = sum(entry.size_bytes for entry in entries) - self.limit
        removed = 0
        for entry in entries:
            if excess <= 0:
                break
            if entry.path != keep:
                removed += _remove(entry.path)
                excess -= entry.size_bytes
        return removed

    def clear(self) -> int:
        """Remove all entries; how many there were."""
        self._sweep()
        return sum(_remove(entry.path) for entry in self.entries())

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"a key has 8 to 128 hexadecimal digits, unlike {key!r}")
        return self.folder / f"{key}{self.suffix}"

    def _names(self) -> list[str]:
        try:
            if not _is_our_folder(self.folder):
                return []
            return [path.name for path in self.folder.iterdir()]
        except OSError:
            return []

    def _entry(self, name: str) -> Entry | None:
        key = name.removesuffix(self.suffix)
        if key == name or not _KEY.fullmatch(key):
            return None
        path = self.folder / name
        try:
            state = path.lstat()
        except OSError:
            return None
        return Entry(key, path, state.st_size, state.st_mtime)

    def _make_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _is_our_folder(self.folder):
            raise PermissionError(errno.EPERM, "it can be written by others")

    def _sweep(self) -> None:
        """Remove unfinished files whose writers are dead."""
        names = [name for name in self._names() if _UNFINISHED.fullmatch(name)]
        locks = [name for name in names if name.endswith(".lock")]
        alive = []
        for lock in locks:
            token = lock.removeprefix(".").removesuffix(".lock")
            if not _is_abandoned(self.folder / lock):
                alive.append(token)
                continue
            for name in names:
                if token in name and name != lock:
                    _remove(self.folder / name)
            _remove(self.folder / lock)  # last: what is left of a writer stays known
        for name in names:
            if name.endswith(".tmp") and not any(token in name for token in alive):
                path = self.folder / name
                if _age_s(path) > _PATIENCE_S:
                    _remove(path)

    def _tell(self, problem: OSError) -> None:
        """Say once that nothing can be kept here."""
        if self.folder in _told or problem.errno in _SILENT:
            return
        _told.add(self.folder)
        reason = problem.strerror or str(problem)
        warnings.warn(
            f"compiled models cannot be kept in {self.folder}: {reason}. Set TILEWRIGHT_CACHE_DIR "
            "to a folder of your own, or TILEWRIGHT_CACHE_SIZE to 0",
            TilewrightWarning,
            stacklevel=3,
        )


class Caches(NamedTuple):
    """What is kept between processes: compiled models, single kernels, and digests of files."""

    models: Cache
    kernels: Cache
    digests: Cache


def default_caches(folder: Path | None = None) -> Caches:
    """The caches in a folder, by default this user's; together they keep the limit asked for."""
    folder, limit = folder or options.cache_dir(), options.cache_limit()
    digests = min(1 << 20, limit // 64)
    kernels = min(1 << 28, limit // 8)
    return Caches(
        Cache(folder / "models", limit - kernels - digests, ".tw"),
        Cache(folder / "kernels", kernels, ".kernel"),
        Cache(folder / "digests", digests, ".digest"),
    )


def _is_our_folder(path: Path) -> bool:
    """Whether nobody else could have put something there; it may be a link to another disk."""
    state = path.stat()
    return stat.S_ISDIR(state.st_mode) and _is_private(state)


def _is_our_file(path: Path, limit: int) -> bool:
    """Whether nobody else could have written it; links are not followed, and nothing is huge."""
    state = path.lstat()
    return stat.S_ISREG(state.st_mode) and _is_private(state) and state.st_size <= limit


def _is_private(state: os.stat_result) -> bool:
    return state.st_uid == os.geteuid() and not state.st_mode & 0o022


@contextlib.contextmanager
def _unfinished(folder: Path, key: str) -> Iterator[Path]:
    """A name for a file that is not an entry yet, under a lock; nothing of it is left behind."""
    token = f"{key}.{secrets.token_hex(8)}"
    lock, draft = folder / f".{token}.lock", folder / f".{token}.tmp"
    descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(OSError):  # where files cannot be locked, their age counts
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield draft
    finally:
        _remove(draft)
        _remove(lock)
        os.close(descriptor)


def _lock_within(descriptor: int, patience_s: float) -> None:
    end = time.monotonic() + patience_s
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return None
        time.sleep(0.01)


def _seal(path: Path, *, is_final: bool) -> int:
    """Make a file ours alone and bring it to the disk; its size."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o600)
        if is_final:
            os.fsync(descriptor)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def _is_abandoned(lock: Path) -> bool:
    """Whether the writer that made a lock file is dead."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return _age_s(lock) > _PATIENCE_S
    else:
        # A writer makes its lock file and then locks it: it gets a moment for that.
        return _age_s(lock) > 1.0
    finally:
        os.close(descriptor)


def _age_s(path: Path) -> float:
    """Seconds since a file was changed; a file from the future has no age worth waiting for."""
    try:
        age = time.time() - path.lstat().st_mtime
    except OSError:
        return 0.0
    return age if age > -_SKEW_S else _PATIENCE_S + 1.0


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
