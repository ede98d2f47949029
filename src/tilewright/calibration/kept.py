"""Calibrated models in the user's data folder, one JSON file for each kind of machine.

A file is named by the processor and by what the nominal model rests on, so that a disk that moves
to another machine brings no wrong numbers. Files are replaced in one step: whoever reads, while
another process calibrates, sees the old one or the new one. What cannot be read, or was written by
an older version with fewer figures, is measured anew; processes that would do so at the same time
wait for the first one, instead of disturbing it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tilewright import options
from tilewright.errors import TargetError
from tilewright.folders import make_folder, replace_json
from tilewright.target import MachineModel, Target

__all__ = ["alone", "load", "path_of", "store"]

FORMAT: Final = 3
MOST_SECONDS: Final = 20.0
"""To wait for another process that calibrates."""


def path_of(target: Target, folder: Path | None = None) -> Path:
    """The file of this machine's model."""
    name = f"{target.cpu}-{target.cores}-{target.fingerprint}.json"
    return (folder or options.data_dir()) / "machines" / name


@contextmanager
def alone(target: Target, folder: Path | None = None) -> Iterator[None]:
    """While no other process is here; at once where the folder cannot be written.

    A process that takes too long (it may have been stopped) is not waited for any longer.
    """
    place = path_of(target, folder).parent
    try:
        make_folder(place)
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        end = time.monotonic() + MOST_SECONDS
        while not _locked(descriptor) and time.monotonic() < end:
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def load(target: Target, folder: Path | None = None) -> MachineModel | None:
    """The model of this machine; None if there is none, or none that can be used."""
    try:
        data = json.loads(path_of(target, folder).read_text(encoding="utf-8"))
        if data["format"] != FORMAT or data["fingerprint"] != target.fingerprint:
            return None
        return MachineModel.from_dict(data["model"])
    except (OSError, ValueError, KeyError, TypeError, TargetError):
        return None


def store(target: Target, model: MachineModel, folder: Path | None = None) -> Path:
    """Keep a model; its file."""
    path = path_of(target, folder)
    data = {
        "format": FORMAT,
        "fingerprint": target.fingerprint,
        "machine": str(target),
        "model": model.to_dict(),
    }
    replace_json(path, data)
    return path
