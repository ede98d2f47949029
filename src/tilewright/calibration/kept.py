"""Calibrated models in the user's data folder, one JSON file for each kind of machine.

A file is named by the processor and by what the nominal model rests on, so that a disk that moves
to another machine brings no wrong numbers. Files are replaced in one step: whoever reads, while
another process calibrates, sees the old one or the new one. What cannot be read is measured anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tilewright import options
from tilewright.errors import TargetError
from tilewright.folders import replace_json
from tilewright.target import MachineModel, Target

__all__ = ["load", "path_of", "store"]

FORMAT: Final = 2


def path_of(target: Target, folder: Path | None = None) -> Path:
    """The file of this machine's model."""
    name = f"{target.cpu}-{target.cores}-{target.fingerprint}.json"
    return (folder or options.data_dir()) / "machines" / name


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
