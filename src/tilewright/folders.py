"""Folders that nobody else can write: how they are made, and how one knows.

A path says little about what is found there later: whoever can write the folder around it may
exchange it at any time. What is open stays what it is. So a folder is opened first and looked at
then, and whatever is in it is reached through its descriptor.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["is_private", "make_folder", "open_folder", "replace_json"]


def make_folder(path: Path) -> None:
    """Make a folder where there is nothing, and those around it that are missing.

    Only its owner can enter what is made, whatever the umask: `Path.mkdir` promises that of the
    innermost one only.
    """
    try:
        path.mkdir(0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        if path.parent == path:
            raise
        make_folder(path.parent)
        path.mkdir(0o700, exist_ok=True)


def open_folder(path: str | Path, within: int | None = None) -> int:
    """A descriptor of a folder that we alone can write, for the caller to close; else OSError.

    `within` is the descriptor of a folder in which it lies: there it must not be a link. Others
    may be links, to another disk for example; what they lead to is looked at.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    flags |= os.O_NOFOLLOW if within is not None else 0
    descriptor = os.open(path, flags, dir_fd=within)
    if not is_private(os.fstat(descriptor)):
        os.close(descriptor)
        raise PermissionError(errno.EPERM, f"{path} can be written by others")
    return descriptor


def is_private(state: os.stat_result) -> bool:
    """Whether a file or folder is ours, and nobody else may write it."""
    return state.st_uid == os.geteuid() and not state.st_mode & 0o022


def replace_json(path: Path, data: object) -> None:
    """Write a file in one step, its folder included: a reader sees the old one or the new one."""
    make_folder(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
