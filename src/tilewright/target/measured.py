"""Measured numbers kept in a folder, one JSON file per machine, named by the target's fingerprint.

Files are replaced in one step, so that a reader sees the old or the new one. A file that cannot be
read, or that belongs to something else, counts as not there: the numbers can be measured again.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tilewright import options
from tilewright.errors import TargetError
from tilewright.folders import replace_json
from tilewright.target.description import Measured, Target

__all__ = ["load", "store"]

FORMAT: Final = 1


def path_of(target: Target, folder: Path | None = None) -> Path:
    """The file that holds this target's numbers; by default in the cache folder."""
    return (folder or options.cache_dir()) / "targets" / f"{target.fingerprint}.json"


def load(target: Target, folder: Path | None = None) -> Measured | None:
    """The stored numbers of this machine, or None."""
    try:
        data = json.loads(path_of(target, folder).read_text(encoding="utf-8"))
        if data["format"] != FORMAT or data["fingerprint"] != target.fingerprint:
            return None
        return Measured.from_dict(data["measured"])
    except (OSError, ValueError, KeyError, TypeError, TargetError):
        return None


def store(target: Target, measured: Measured, folder: Path | None = None) -> Path:
    """Keep the numbers for later; returns the file."""
    path = path_of(target, folder)
    data = {
        "format": FORMAT,
        "fingerprint": target.fingerprint,
        "target": str(target),
        "measured": asdict(measured),
    }
    replace_json(path, data)
    return path
