"""A recording on the disk: an index of hashes, and the texts behind them, each once.

    index.json           {"records": {record: {target: {stage: hash}}}, "missing": […], …}
    texts/ab/cdef….z     a text, compressed, under its hash

A record is a program for a number of threads, a model, or a kernel of a model.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Final

__all__ = ["Index", "Records", "Stages", "Texts", "read_index", "write_index"]

FORMAT: Final = "tilewright-replay-1"
INDEX: Final = "index.json"

Stages = dict[str, str]
"""Texts or their hashes by stage, in the order of the path."""

Records = dict[str, dict[str, Stages]]
"""Hashes by record, target and stage."""


@dataclass(frozen=True)
class Index:
    """What was recorded, of which package, and which entry points that lacks."""

    records: Records
    package: str = ""
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Texts:
    """Texts by their hashes. Several processes may write: equal texts have equal files."""

    folder: Path

    def put(self, text: str) -> str:
        """Store a text; its hash."""
        data = text.encode()
        digest = blake2b(data, digest_size=16).hexdigest()
        path = self._path(digest)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(zlib.compress(data, 1))
            unfinished.replace(path)
        return digest

    def put_all(self, stages: Mapping[str, str]) -> Stages:
        """Store the texts of stages; their hashes."""
        return {stage: self.put(text) for stage, text in stages.items()}

    def get(self, digest: str) -> str:
        """The text of a hash."""
        return zlib.decompress(self._path(digest).read_bytes()).decode()

    def _path(self, digest: str) -> Path:
        return self.folder / "texts" / digest[:2] / f"{digest[2:]}.z"


def write_index(folder: Path, index: Index) -> None:
    """Finish a recording: a folder without an index is none."""
    records = {name: index.records[name] for name in sorted(index.records)}
    facts = {"format": FORMAT, "package": index.package, "missing": index.missing}
    text = json.dumps({**facts, "records": records}, indent=1)
    (folder / INDEX).write_text(text, encoding="utf-8")


def read_index(folder: Path) -> Index:
    """The index of a recording; `ValueError` for a folder that holds none."""
    try:
        data = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ValueError(f"{folder} holds no recording: {problem}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"{folder} holds no recording of the format {FORMAT}")
    return Index(data["records"], data["package"], data["missing"])
