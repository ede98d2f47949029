"""A folder of files that can be made again: compiled models and kernels, found by key.

A cache only ever saves time. Whatever is wrong with it (a full disk, a damaged or vanished entry, a
folder of somebody else) is a miss, and a user hears of it once at most. Several processes may use,
fill and prune one folder at the same time, and be killed at any moment:

* an entry appears in one step, complete and on the disk, under a name that only it has;
* what a dead writer left is known for it (`drafts.py`), and removed by whoever prunes next;
* code is run from here, so that the folder, the one around it and entries must belong to us and be
  writable by us alone; each is opened before it is looked at, and read by its descriptor.

The least recently used entries go first when the folder outgrows its limit; being found is a use.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeVar

from tilewright import options
from tilewright.errors import ArtefactError, TilewrightWarning
from tilewright.folders import is_private, make_folder, open_folder
from tilewright.runtime.drafts import SKEW_S, lock_within, remove, sweep, unfinished
from tilewright.shown import in_line

__all__ = ["Cache", "Caches", "Entry", "default_caches"]

T = TypeVar("T")

_KEY: Final = re.compile(r"[0-9a-f]{8,128}")
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
    """Entries of one kind in a folder, which need not exist; `limit` is in bytes, 0 for none.

    `root` is the folder that the user named, in which this one lies (or which it is). Whoever can
    write there can exchange what is inside: it must be ours alone, too.
    """

    def __init__(
        self, folder: Path, limit: int, suffix: str = ".tw", root: Path | None = None
    ) -> None:
        self.folder, self.limit, self.suffix = folder, limit, suffix
        self.root = folder if root is None else root

    def get(self, key: str) -> Path | None:
        """Where the file of a key is; `load` reads it."""
        return self.load(key, lambda _: self.folder / self._name(key))

    def load(self, key: str, reader: Callable[[BinaryIO], T]) -> T | None:
        """What `reader` makes of the file of a key; None if there is none that can be read.

        A reader says by ArtefactError or ValueError that a file is damaged, which is then removed.
        """
        name = self._name(key)
        if not self.limit:
            return None
        try:
            with self._opened() as at, _open_entry(at, name, self.limit) as file:
                try:
                    return reader(file)
                except (ArtefactError, ValueError):
                    remove(at, name)
                    return None
        except (OSError, MemoryError):
            return None

    def put(
        self, key: str, writer: Callable[[BinaryIO], object], *, is_final: bool = True
    ) -> Path | None:
        """Keep what `writer` puts into a file; where it is, or None if it could not be kept.

        One of many small files, of which the reader notices any damage, is not final: it need not
        be on the disk at once, and whoever puts them prunes afterwards.
        """
        name = self._name(key)
        if not self.limit:
            return None
        try:
            with self._opened(make=True) as at:
                with unfinished(at, key) as draft:
                    if _written(at, draft, writer, is_final=is_final) > self.limit:
                        return None
                    os.replace(draft, name, src_dir_fd=at, dst_dir_fd=at)
                if is_final:
                    self._prune(at, keep=name)
        except OSError as problem:
            if problem.errno not in _SILENT:
                self._tell(problem)
            return None
        return self.folder / name

    @contextlib.contextmanager
    def turn(self, key: str, patience_s: float = 120.0) -> Iterator[None]:
        """Wait while another process or thread makes the same entry; then it may be there.

        The lock of a dead process is free at once. Whoever has waited for `patience_s`, or cannot
        lock anything here, goes on all the same: work done twice is better than none.
        """
        name = f".turn-{self._name(key)[:2]}"  # few files, which are never removed
        descriptor = -1
        with contextlib.suppress(OSError), self._opened(make=True) as at:
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(name, flags, 0o600, dir_fd=at)
            lock_within(descriptor, patience_s)
        try:
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def problem(self) -> OSError | None:
        """Why nothing can be kept here; None if it can, or if nothing is wanted to be."""
        if not self.limit:
            return None
        try:
            with self._opened(make=True) as at:
                if not os.access(".", os.W_OK | os.X_OK, dir_fd=at):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as problem:
            return problem
        return None

    def tell_if_unusable(self) -> None:
        """Say once that nothing can be kept here, before it is compiled in vain."""
        if (problem := self.problem()) is not None:
            self._tell(problem)

    def entries(self) -> list[Entry]:
        """All entries, the least recently used one first."""
        with contextlib.suppress(OSError), self._opened() as at:
            return self._entries(at)
        return []

    def size_bytes(self) -> int:
        """Bytes of all entries."""
        return sum(entry.size_bytes for entry in self.entries())

    def prune(self) -> int:
        """Remove what dead writers left, and old entries beyond the limit; how many entries."""
        with contextlib.suppress(OSError), self._opened() as at:
            return self._prune(at)
        return 0

    def clear(self) -> int:
        """Remove all entries; how many there were."""
        with contextlib.suppress(OSError), self._opened() as at:
            sweep(at)
            return sum(remove(at, entry.path.name) for entry in self._entries(at))
        return 0

    @contextlib.contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """A descriptor of the folder; OSError if there is none, or others can write it."""
        with contextlib.ExitStack() as open_ones:
            if make:
                make_folder(self.root)
            at = open_folder(self.root)
            open_ones.callback(os.close, at)
            if self.folder != self.root:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(self.folder.name, 0o700, dir_fd=at)
                at = open_folder(self.folder.name, within=at)
                open_ones.callback(os.close, at)
            yield at

    def _prune(self, at: int, keep: str = "") -> int:
        sweep(at)
        entries = self._entries(at)
        excess = sum(entry.size_bytes for entry in entries) - self.limit
        removed = 0
        for entry in entries:
            if excess <= 0:
                break
            if entry.path.name != keep:
                removed += remove(at, entry.path.name)
                excess -= entry.size_bytes
        return removed

    def _name(self, key: str) -> str:
        if not _KEY.fullmatch(key):
            raise ValueError(f"a key has 8 to 128 hexadecimal digits, unlike {key!r}")
        return f"{key}{self.suffix}"

    def _entries(self, at: int) -> list[Entry]:
        found = [e for name in os.listdir(at) if (e := self._entry(at, name)) is not None]
        horizon = time.time() + SKEW_S
        return sorted(found, key=lambda entry: (entry.used <= horizon, entry.used, entry.key))

    def _entry(self, at: int, name: str) -> Entry | None:
        key = name.removesuffix(self.suffix)
        if key == name or not _KEY.fullmatch(key):
            return None
        try:
            state = os.stat(name, dir_fd=at, follow_symlinks=False)
        except OSError:
            return None
        return Entry(key, self.folder / name, state.st_size, state.st_mtime)

    def _tell(self, problem: OSError) -> None:
        """Say once that nothing can be kept here."""
        if self.root in _told:
            return
        _told.add(self.root)
        reason = problem.strerror or str(problem)
        warnings.warn(
            f"compiled models cannot be kept in {in_line(self.folder)}: {in_line(reason)}. Set "
            "TILEWRIGHT_CACHE_DIR to a folder of your own, or TILEWRIGHT_CACHE_SIZE to 0",
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
        Cache(folder / "models", limit - kernels - digests, ".tw", folder),
        Cache(folder / "kernels", kernels, ".kernel", folder),
        Cache(folder / "digests", digests, ".digest", folder),
    )


def _open_entry(at: int, name: str, limit: int) -> BinaryIO:
    """An entry of a folder, open, which was used just now; OSError if it is not to be trusted.

    Nobody else may have written it, links are not followed, and nothing is huge.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # of a pipe nobody writes to
    descriptor = os.open(name, flags, dir_fd=at)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or not is_private(state) or state.st_size > limit:
            raise PermissionError(errno.EPERM, "it is no entry of ours")
        os.utime(descriptor)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _written(at: int, name: str, writer: Callable[[BinaryIO], object], *, is_final: bool) -> int:
    """Make a file that is ours alone, and bring it to the disk; its size."""
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=at), "w+b") as file:
        writer(file)
        file.flush()
        os.fchmod(file.fileno(), 0o600)
        if is_final:
            os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size
