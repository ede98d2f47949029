"""The memory of processes: after compiling, after loading a file or a small one; onnxruntime's too.

Each way has a process of its own that does nothing else: it opens the model, runs it once, and
says what the system counts for it. All of it counts, Python and libraries as well. `cache=False`:
what is compiled, nobody compiled before.
"""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks import machine
from benchmarks.models.footprint import ask_alone
from benchmarks.models.spec import Model
from benchmarks.models.workload import ModelWorkload
from benchmarks.report import SUBJECT, aligned, number

__all__ = ["Held", "measure", "table", "write"]

YARDSTICK: Final = "onnxruntime"
WAYS: Final = ("compile_model", "compile_small", "open_model", "open_small")
"""In an order in which each finds its file."""
OPEN: Final = "open_model"
FILES: Final = ("model.tw", "small.tw")


@dataclass(frozen=True)
class Held:
    """A model by one count of threads: figures by way, and bytes of files."""

    model: str
    threads: int
    model_bytes: int
    ways: dict[str, dict[str, Any]]
    files: dict[str, int]

    @property
    def is_complete(self) -> bool:
        return not any("why" in figures for figures in self.ways.values())

    def ratio(self, way: str) -> float | None:
        """Memory over that of onnxruntime."""
        own, other = (self.ways[name].get("resident") for name in (way, YARDSTICK))
        return own / other if own and other else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "threads": self.threads,
            "model_bytes": self.model_bytes,
            "file_bytes": self.files,
            "ways": self.ways,
            "resident_of_onnxruntime": {way: self.ratio(way) for way in WAYS},
        }


def measure(model: Model, path: Path, threads: int) -> Held:
    """All ways, one process after another."""
    workload = ModelWorkload(model.name, str(path), dict(model.sizes[0]))
    with tempfile.TemporaryDirectory() as scratch:
        ways = {YARDSTICK: ask_alone(YARDSTICK, threads, {}, "held", workload, scratch, way=OPEN)}
        for way in WAYS:
            ways[way] = ask_alone(SUBJECT, threads, {}, "held", workload, scratch, way=way)
        files = {name: _size(Path(scratch) / name) for name in FILES}
    return Held(model.name, threads, _size(path), ways, files)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def table(rows: Sequence[Held]) -> str:
    """MB that a process holds, and seconds to open the model."""
    head = ["model", "thr", "ort MB", "compiled", "of ort", "peak", "loaded", "of ort", "small"]
    lines = [[*head, "load ms", "small ms", "onnx MB", "tw MB", "small MB"]]
    for row in rows:
        ways = row.ways
        lines.append(
            [
                row.model,
                str(row.threads),
                number(ways[YARDSTICK].get("resident"), 1e-6, 0),
                number(ways["compile_model"].get("resident"), 1e-6, 0),
                number(row.ratio("compile_model"), digits=2),
                number(ways["compile_model"].get("peak"), 1e-6, 0),
                number(ways["open_model"].get("resident"), 1e-6, 0),
                number(row.ratio("open_model"), digits=2),
                number(ways["open_small"].get("resident"), 1e-6, 0),
                number(ways["open_model"].get("seconds"), 1e3, 0),
                number(ways["open_small"].get("seconds"), 1e3, 0),
                *(number(size, 1e-6, 0) for size in (row.model_bytes, *row.files.values())),
            ]
        )
    return "\n".join(aligned(lines))


def write(path: Path, arguments: Sequence[str], rows: Sequence[Held]) -> None:
    """All figures so far as JSON, with what is needed to cite them."""
    data = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": machine.commit(),
        "command": shlex.join(["python", "-m", "benchmarks.models", *arguments]),
        "machine": machine.describe(),
        "results": [row.to_dict() for row in rows],
    }
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
