"""Files that are not there, and files that are written in one step.

A reader sees the old one or the new one, never a half.

A link stays a link: the file that it leads to is replaced. What is no regular file (a folder, a
pipe, a device) is refused, because replacing it would destroy what others use.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from tilewright.errors import Code, MissingFileError

__all__ = ["missing_file", "replaced", "require_replaceable"]

K040 = Code("K040", "there is no file `{path}`")

_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def missing_file(path: str | os.PathLike[str], found: str = "") -> MissingFileError:
    """The error for a path that leads nowhere, or to something else than a file."""
    hint = "check the path; a model is a file `*.onnx`, or `*.tw` once it is compiled"
    facts = {"path": path, **({"found": found} if found else {})}
    error = MissingFileError(K040, facts, hint=hint)
    error.errno, error.filename = errno.ENOENT, os.fspath(path)
    return error


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write, which takes its place when the block ends, with the old one's permissions.

    Raises OSError if it cannot be written; whatever the block raises, nothing is left behind.
    """
    final, mode = _target(path)
    draft = final.with_name(f".{final.name}.{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("xb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            yield file
        draft.replace(final)
        _sync_folder(final.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def require_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise OSError if `replaced` is bound to fail: to be asked before long work."""
    final, _ = _target(path)
    if not final.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist")
    if not os.access(final.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "its folder cannot be written")


def _target(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """Behind all links, the file to replace and its permissions; None where there is none yet."""
    final = Path(os.path.realpath(path))
    try:
        mode = final.stat().st_mode
    except FileNotFoundError:
        return final, None
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file")
    return final, stat.S_IMODE(mode)


def _sync_folder(folder: Path) -> None:
    """Make a new name last; some file systems cannot, and need not."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
